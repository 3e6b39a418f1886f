import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The place of a remote in a storage service: a host, a bucket and what its names begin with.
struct S3Location {
    /// The scheme, the host and the port, if it is not the usual one.
    let origin: String
    /// The value of the header `Host`.
    let host: String
    let bucket: String
    /// Empty, or with a slash at its end.
    let prefix: String

    /// - Parameter url: For example `https://s3.example/bucket/prefix`.
    /// - Throws: `.misuse`, without the URL, which may have a password.
    init(_ url: String) throws(StoreError) {
        let example = "It is written as https://s3.example/bucket/prefix."
        guard let parts = URLComponents(string: url, encodingInvalidCharacters: false),
            let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = Self.plainHost(parts.host), !host.isEmpty,
            host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else {
            throw StoreError(.misuse, "this is no URL of a storage service", hint: example)
        }
        guard parts.user == nil, parts.password == nil, parts.query == nil, parts.fragment == nil
        else {
            throw StoreError(
                .misuse, "the URL of a storage service has a name, a password, a query or a mark",
                hint: "\(example) Credentials are given apart from it.")
        }
        guard scheme == "https" || Self.isLoopback(host) else {
            throw StoreError(
                .misuse, "http to \(host) would show names and sizes, and let others answer",
                hint: "Use https. Only this machine itself may be asked without it.")
        }
        var names = parts.path.split(separator: "/", omittingEmptySubsequences: false)
            .dropFirst()
        if names.last?.isEmpty == true { names.removeLast() }
        guard let bucket = names.first, names.allSatisfy({ !["", ".", ".."].contains($0) }),
            parts.path.utf8.count <= 800
        else {
            throw StoreError(
                .misuse, "the URL of a storage service has no bucket, or an unfit prefix",
                hint: "\(example) No part of it is empty, and it has at most 800 bytes.")
        }
        let isUsual = parts.port == nil || parts.port == (scheme == "https" ? 443 : 80)
        let bracketed = host.contains(":") ? "[\(host)]" : host
        self.host = isUsual ? bracketed : "\(bracketed):\(parts.port ?? 0)"
        origin = "\(scheme)://\(self.host)"
        self.bucket = String(bucket)
        prefix = names.dropFirst().map { "\($0)/" }.joined()
    }

    /// The place, as messages name it.
    var description: String {
        origin + RequestSignature.encoded(path: "/\(bucket)/\(prefix)").dropLast()
    }

    /// The path of an object, not encoded; of the bucket for `nil`.
    func path(of name: String?) -> String {
        name.map { "/\(bucket)/\(prefix)\($0)" } ?? "/\(bucket)"
    }

    /// A host in lower case, without the brackets of an address of IPv6.
    static func plainHost(_ host: String?) -> String? {
        guard let host = host?.lowercased() else { return nil }
        guard host.hasPrefix("["), host.hasSuffix("]") else { return host }
        return String(host.dropFirst().dropLast())
    }

    static func isLoopback(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1"].contains(host)
    }
}
