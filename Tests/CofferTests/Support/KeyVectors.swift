import Foundation
import Testing

@testable import Coffer

/// The files of Tests/Vectors about keys and pages, and their decoding.
enum KeyVectors {
    /// What Python's hashlib derived from a passphrase.
    struct Derivation: Decodable, Sendable, CustomTestStringConvertible {
        let profile: String
        let name: String
        let passphrase: String
        let salt: String
        let key: String

        var testDescription: String { "\(profile), \(name)" }
    }

    static let derivations: [Derivation] = decode("derivation.json") ?? []

    static let profiles: [CipherProfile] = [.sqlcipher4, .portable, .sqlcipher3]

    static func profile(named name: String) throws -> CipherProfile {
        try #require(profiles.first { $0.name == name })
    }

    static func decode<T: Decodable>(_ name: String) -> T? {
        let folder = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let data = try? Data(contentsOf: folder.appending(path: "Vectors/\(name)"))
        return data.flatMap { try? JSONDecoder().decode(T.self, from: $0) }
    }

    static func bytes(hex: String) throws -> [UInt8] {
        let digits = Array(hex.utf8).map { Character(UnicodeScalar($0)).hexDigitValue }
        try #require(digits.count.isMultiple(of: 2) && !digits.contains(nil))
        let nibbles = digits.compactMap { $0 }
        return stride(from: 0, to: nibbles.count, by: 2).map {
            UInt8(nibbles[$0] << 4 | nibbles[$0 + 1])
        }
    }

    static func secret(_ bytes: [UInt8]) -> SecretBytes {
        SecretBytes(byteCount: bytes.count) { $0.copyBytes(from: bytes) }
    }

    static func rawKey(hex: String, salt: String) throws -> RawKey {
        RawKey(bytes: secret(try bytes(hex: hex)), salt: try bytes(hex: salt))
    }
}

/// Copies a secret out, for comparison in a test.
func plainBytes(_ secret: borrowing SecretBytes) -> [UInt8] {
    secret.withUnsafeBytes { Array($0) }
}
