import Coffer
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The signature of a request, in version 4 of Amazon's scheme or of Google's, which differs in
/// words only.
///
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>
/// <https://cloud.google.com/storage/docs/authentication/signatures>
struct RequestSignature {
    enum Scheme {
        case amazon, google

        /// What the names of the scheme's own headers begin with.
        var headerPrefix: String { self == .amazon ? "x-amz-" : "x-goog-" }
        fileprivate var algorithm: String {
            self == .amazon ? "AWS4-HMAC-SHA256" : "GOOG4-HMAC-SHA256"
        }
        fileprivate var keyPrefix: String { self == .amazon ? "AWS4" : "GOOG4" }
        fileprivate var service: String { self == .amazon ? "s3" : "storage" }
        fileprivate var ending: String { self == .amazon ? "aws4_request" : "goog4_request" }
    }

    /// A request, as far as its signature covers it.
    struct Request {
        let method: String
        /// Not encoded; it begins with a slash.
        let path: String
        /// Neither names nor values are encoded.
        var query: [String: String] = [:]
        /// Names in lower case. All are signed.
        var headers: [String: String]
        /// The SHA-256 of the body, in lower-case hexadecimal digits.
        let bodyHash: String
    }

    let scheme: Scheme
    let region: String

    /// The value of the header `Authorization`.
    ///
    /// - Parameter date: The value of the scheme's header for the date, such as `20130524T000000Z`.
    func authorization(of request: Request, at date: String, by keys: S3Keys) -> String {
        let day = String(date.prefix(8))
        let scope = "\(day)/\(region)/\(scheme.service)/\(scheme.ending)"
        let names = request.headers.keys.sorted().joined(separator: ";")
        let hash = SHA256.hash(data: Array(canonical(request, names).utf8)).hexDigits
        let text = "\(scheme.algorithm)\n\(date)\n\(scope)\n\(hash)"
        var key = keys.signingKey(after: scheme.keyPrefix)
        for part in [day, region, scheme.service, scheme.ending] {
            let code = HMAC<SHA256>.authenticationCode(for: Array(part.utf8), using: key)
            key = SymmetricKey(data: code)
        }
        let signature = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)
        return "\(scheme.algorithm) Credential=\(keys.accessKeyID)/\(scope),"
            + "SignedHeaders=\(names),Signature=\(signature.hexDigits)"
    }

    private func canonical(_ request: Request, _ names: String) -> String {
        let headers = request.headers.sorted { $0.key < $1.key }.map { name, value in
            "\(name):\(value.trimmed)\n"
        }
        return [
            request.method, Self.encoded(path: request.path), Self.encoded(query: request.query),
            headers.joined(), names, request.bodyHash,
        ].joined(separator: "\n")
    }

    /// The date as the header and the signature have it.
    static func text(of date: Date) -> String {
        date.formatted(
            Date.ISO8601FormatStyle(
                dateSeparator: .omitted, timeSeparator: .omitted,
                timeZone: .gmt))
    }

    // MARK: Encoding

    /// The path of a URL, in the one form that a signature is valid for.
    static func encoded(path: String) -> String {
        encoded(path, besides: "/")
    }

    /// The query of a URL, in the one form that a signature is valid for.
    static func encoded(query: [String: String]) -> String {
        query.map { (encoded($0), encoded($1)) }.sorted { $0 < $1 }
            .map { "\($0)=\($1)" }.joined(separator: "&")
    }

    private static func encoded(_ text: String, besides others: String = "") -> String {
        let plain = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~\(others)".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte in
            plain.contains(byte)
                ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
