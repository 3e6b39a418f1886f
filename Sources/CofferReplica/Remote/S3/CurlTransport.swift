import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends requests by libcurl.
///
/// ```swift
/// let transport = CurlTransport()
/// let remote = try S3Remote(url, credentials: .instance, transport: transport)
/// ```
///
/// libcurl 7.68 or later is loaded when the first request is sent. Where it is not installed,
/// `send(_:)` throws `.unsupported`. Several remotes may share one transport, and with it the
/// connections to a host.
///
/// The server's certificate must be one that libcurl trusts by default. The environment variables
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others, as they do for OpenSSL. The variables
/// `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` choose a proxy.
///
/// A thread waits for answers while there are requests, and none does otherwise.
public final class CurlTransport: HTTPTransport {
    private let connections: CurlConnections

    /// Nothing is loaded or sent yet.
    ///
    /// - Parameter connectionCountMax: How many requests may be under way at once, each over a
    ///   connection of its own. Further ones wait, and their time-out begins before that.
    public init(connectionCountMax: Int = 16) {
        connections = CurlConnections(
            countMax: connectionCountMax, trust: CurlTrust(), libraries: Curl.usualNames)
    }

    /// A transport with other certificates, or another libcurl.
    ///
    /// - Parameter libraries: File names of libcurl, of which the first that can be loaded is used.
    init(
        connectionCountMax: Int = 16, trust: CurlTrust = CurlTrust(),
        libraries: [String] = Curl.usualNames
    ) {
        connections = CurlConnections(
            countMax: connectionCountMax, trust: trust, libraries: libraries)
    }

    /// - Throws: `.remoteUnavailable` if there was no answer in time, `.remoteUnfit` for one that
    ///   is too long, `.misuse` for a request that has no form in HTTP, `.unsupported` without
    ///   libcurl, `CancellationError` if the task was cancelled.
    public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        try Self.require(request)
        let exchange = HTTPExchange(request)
        return try await withTaskCancellationHandler {
            try await exchange.response { connections.add(exchange) }
        } onCancel: {
            exchange.fail(CancellationError())
            connections.wake()
        }
    }

    /// A line that ends early would begin another header.
    private static func require(_ request: HTTPRequest) throws(StoreError) {
        let isURL = ["http://", "https://"].contains { request.url.lowercased().hasPrefix($0) }
        guard isURL, request.url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw StoreError(.misuse, "\(request.url) is no URL of http or https")
        }
        let isToken = { (text: String) in
            !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x3a }
        }
        let isValue = { (text: String) in
            text.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7f) || $0 == 0x09 }
        }
        guard isToken(request.method), request.headers.keys.allSatisfy(isToken),
            request.headers.values.allSatisfy(isValue)
        else {
            throw StoreError(
                .misuse, "the method or a header of \(request) has a character that none can have")
        }
    }
}

/// The certificates that a connection trusts, if not those that libcurl was built with.
struct CurlTrust {
    /// The path of a file of certificates.
    var file: String?
    /// The path of a folder of certificates.
    var folder: String?

    /// As the environment says.
    ///
    /// libcurl itself does not read these variables, but OpenSSL and the program `curl` do.
    /// <https://curl.se/docs/sslcerts.html>
    init(_ environment: [String: String] = ProcessInfo.processInfo.environment) {
        let path = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        (file, folder) = (path("SSL_CERT_FILE"), path("SSL_CERT_DIR"))
    }
}
