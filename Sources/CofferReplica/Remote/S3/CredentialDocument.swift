import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Credentials in JSON, as commands and the services of machines and containers write them.
enum CredentialDocument {
    private struct Fields: Decodable {
        var version: Int?
        var code: String?
        var accessKeyID: String?
        var secretAccessKey: String?
        var sessionToken: String?
        var token: String?
        var expiration: String?

        enum CodingKeys: String, CodingKey {
            case version = "Version"
            case code = "Code"
            case accessKeyID = "AccessKeyId"
            case secretAccessKey = "SecretAccessKey"
            case sessionToken = "SessionToken"
            case token = "Token"
            case expiration = "Expiration"
        }
    }

    /// - Parameters:
    ///   - bytes: The caller wipes them.
    ///   - isOfCommand: Whether a command wrote them, which tells the version of the format.
    ///   - source: The source, as messages name it.
    /// - Throws: `.remoteDenied`, without a byte of the document.
    static func keys(
        in bytes: [UInt8], isOfCommand: Bool, source: String
    ) throws(StoreError) -> S3Keys {
        // Not the decoder's own error: it quotes what it read.
        guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(bytes)) else {
            throw StoreError(.remoteDenied, "\(source) gave no credentials in JSON")
        }
        guard !isOfCommand || fields.version == 1 else {
            throw StoreError(.remoteDenied, "\(source) gave credentials in an unknown version")
        }
        guard fields.code == nil || fields.code == "Success" else {
            throw StoreError(.remoteDenied, "\(source) says that it has no credentials")
        }
        var expiration: Date?
        if let text = fields.expiration {
            expiration = date(text)
            guard expiration != nil else {
                throw StoreError(
                    .remoteDenied, "\(source) gave credentials with an expiration that is no date",
                    hint: "It is written as 2030-01-31T12:00:00Z.")
            }
        }
        return try S3Keys(
            accessKeyID: fields.accessKeyID ?? "", secret: (fields.secretAccessKey ?? "").utf8,
            token: (fields.sessionToken ?? fields.token)?.utf8, expiration: expiration,
            source: source)
    }

    private static func date(_ text: String) -> Date? {
        let plain = Date.ISO8601FormatStyle()
        let exact = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return (try? plain.parse(text)) ?? (try? exact.parse(text))
    }
}
