import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Asks the service of the machine or of the container for the access key of its role.
struct InstanceCredentials {
    let transport: any HTTPTransport
    var environment = ProcessInfo.processInfo.environment

    private static let machine = "http://169.254.169.254/latest/"
    private static let timeout: Duration = .seconds(5)

    /// - Throws: `.remoteDenied` if there is no role, `.remoteUnavailable` if nothing answers,
    ///   `.misuse` for a service that the environment must not name.
    func keys() async throws -> S3Keys {
        guard let url = try containerURL() else { return try await keysOfMachine() }
        return try await keys(
            from: url, headers: try containerHeaders(), source: "the service of the container")
    }

    // MARK: Containers
    // https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html

    private func containerURL() throws -> String? {
        if let path = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"], !path.isEmpty {
            guard path.hasPrefix("/") else {
                throw StoreError(
                    .misuse, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with a slash")
            }
            return "http://169.254.170.2" + path
        }
        let name = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
        guard let text = environment[name], !text.isEmpty else { return nil }
        let parts = URLComponents(string: text)
        let host = S3Location.plainHost(parts?.host)
        let local = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"]
        switch parts?.scheme {
        case "https" where host?.isEmpty == false: return text
        case "http" where host.map({ S3Location.isLoopback($0) || local.contains($0) }) == true:
            return text
        default:
            throw StoreError(
                .misuse, "\(name) names a host that secrets must not be sent to unencrypted",
                hint: "It may be https, or the container's own host.")
        }
    }

    private func containerHeaders() throws -> [String: String] {
        if let path = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"], !path.isEmpty {
            // Read each time: the token in it is replaced.
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                throw StoreError(.notFound, "cannot read the token of the container in \(path)")
            }
            return ["authorization": text.trimmed]
        }
        guard let token = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] else { return [:] }
        return ["authorization": token]
    }

    // MARK: Machines
    // https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-v2-how-it-works.html

    private func keysOfMachine() async throws -> S3Keys {
        let source = "the service of the machine"
        let token = try await text(
            HTTPRequest(
                method: "PUT", url: Self.machine + "api/token",
                headers: ["x-aws-ec2-metadata-token-ttl-seconds": "300"], timeout: Self.timeout),
            source)
        let headers = ["x-aws-ec2-metadata-token": token]
        let roles = Self.machine + "meta-data/iam/security-credentials/"
        let names = try await text(
            HTTPRequest(method: "GET", url: roles, headers: headers, timeout: Self.timeout), source)
        let role = names.split(separator: "\n").first.map(String.init) ?? ""
        guard !role.isEmpty, role.utf8.allSatisfy(Self.isPlain) else { throw Self.noRole(source) }
        return try await keys(from: roles + role, headers: headers, source: source)
    }

    /// The characters of the name of a role.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "_+=,.@-".utf8.contains(byte)
        }
    }

    // MARK: Requests

    private func keys(
        from url: String, headers: [String: String], source: String
    ) async throws -> S3Keys {
        var document = try await body(
            HTTPRequest(method: "GET", url: url, headers: headers, timeout: Self.timeout), source)
        defer { document.withUnsafeMutableBytes { $0.wipe() } }
        return try CredentialDocument.keys(in: document, isOfCommand: false, source: source)
    }

    private func text(_ request: HTTPRequest, _ source: String) async throws -> String {
        String(decoding: try await body(request, source), as: UTF8.self).trimmed
    }

    private func body(_ request: HTTPRequest, _ source: String) async throws -> [UInt8] {
        let response: HTTPResponse
        do {
            response = try await transport.send(request)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw StoreError(
                .remoteUnavailable, "\(source) does not answer a request for credentials",
                hint: "Use other credentials where the machine has no role.")
        }
        switch response.status {
        case 200: return response.body
        case 404: throw Self.noRole(source)
        case 429, 500...:
            throw StoreError(.remoteUnavailable, "\(source) has no credentials just now")
        default:
            throw StoreError(
                .remoteDenied, "\(source) refuses credentials with status \(response.status)")
        }
    }

    private static func noRole(_ source: String) -> StoreError {
        StoreError(
            .remoteDenied, "\(source) has no role, and so no credentials",
            hint: "Give the machine a role that may use the bucket, or use other credentials.")
    }
}
