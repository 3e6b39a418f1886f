import Coffer
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An access key of a storage service, and the time it is valid for.
///
/// The secret and the token are in locked memory, and no description shows them.
final class S3Keys: Sendable {
    let accessKeyID: String
    let expiration: Date?
    private let secret: SecretBytes
    private let token: SecretBytes?

    /// - Parameters:
    ///   - secret: The secret access key; the caller wipes the source.
    ///   - token: The session token of temporary credentials.
    ///   - source: The place, as messages name it.
    /// - Throws: `.misuse` if the identifier or the secret is empty, or one of all has a character
    ///   that no header can have.
    init(
        accessKeyID: String, secret: some Collection<UInt8>, token: (some Collection<UInt8>)?,
        expiration: Date? = nil, source: String
    ) throws(StoreError) {
        let isPlain = { (byte: UInt8) in (0x21...0x7e).contains(byte) }
        guard !accessKeyID.isEmpty, !secret.isEmpty, accessKeyID.utf8.allSatisfy(isPlain),
            secret.allSatisfy(isPlain), token?.allSatisfy(isPlain) != false
        else {
            throw StoreError(
                .misuse, "\(source) has no whole access key of a storage service",
                hint: "It needs the identifier of the key and its secret, without blanks.")
        }
        self.accessKeyID = accessKeyID
        self.expiration = expiration
        self.secret = SecretBytes(secret)
        if let token, !token.isEmpty {
            self.token = SecretBytes(token)
        } else {
            self.token = nil
        }
    }

    /// The token as the header has it, for the time of one request.
    var tokenText: String? {
        guard token != nil else { return nil }
        return token?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// The first key of the chain of a signature: a word and the secret.
    func signingKey(after word: String) -> SymmetricKey {
        secret.withUnsafeBytes { secret in
            var bytes = [UInt8](unsafeUninitializedCapacity: word.utf8.count + secret.count) {
                buffer, count in
                let raw = UnsafeMutableRawBufferPointer(buffer)
                raw.copyBytes(from: word.utf8)
                raw[word.utf8.count...].copyBytes(from: secret)
                count = raw.count
            }
            defer { bytes.withUnsafeMutableBytes { $0.wipe() } }
            return SymmetricKey(data: bytes)
        }
    }
}

extension S3Keys: CustomStringConvertible, CustomReflectable {
    /// The identifier of the key, which is not secret.
    var description: String { "access key \(accessKeyID)" }

    var customMirror: Mirror { Mirror(self, children: []) }
}
