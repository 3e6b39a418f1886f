import Foundation
import Testing

@testable import Coffer

/// The keyring of Tests/Vectors/keyring.json, which a Python program has made.
enum KeyringFixture {
    struct Vectors: Decodable, Sendable {
        let root: String
        let id: String
        let epoch: UInt32
        let dataKeys: [String: String]
        let keyID: String
        let rootID: String
        let recoveryKey: String
        let rootBackup: String
        /// By the number of the kind of slot.
        let credentials: [String: String]
        let derived: String
        let header: String
        let slots: [String]
        let mac: String
        let digest: String
    }

    static func vectors() throws -> Vectors {
        try #require(KeyVectors.decode("keyring.json") as Vectors?)
    }

    static func root() throws -> RootKey {
        RootKey(bytes: KeyVectors.secret(try KeyVectors.bytes(hex: vectors().root)))
    }

    /// The bytes of the area.
    static func bytes() throws -> [UInt8] {
        let vectors = try vectors()
        var bytes = [UInt8](repeating: 0, count: KeyringArea.byteCount)
        bytes.replace(from: 0, with: try KeyVectors.bytes(hex: vectors.header))
        for (index, slot) in vectors.slots.enumerated() {
            bytes.replace(from: 512 + 1024 * index, with: try KeyVectors.bytes(hex: slot))
        }
        bytes.replace(from: 16_320, with: try KeyVectors.bytes(hex: vectors.mac))
        bytes.replace(from: 16_352, with: try KeyVectors.bytes(hex: vectors.digest))
        return bytes
    }

    static func area() throws -> KeyringArea { try KeyringArea(stored: bytes()) }

    static func credential(_ kind: KeyringSlot.Kind) throws -> KeyCredential {
        let text = try #require(try vectors().credentials["\(kind.rawValue)"])
        return KeyCredential(
            kind: kind, secret: KeyVectors.secret(try KeyVectors.bytes(hex: text)),
            slotID: kind == .external ? 4 : nil)
    }

    static let kinds: [KeyringSlot.Kind] = [
        .passphrase, .keyFile, .recoveryKey, .external, .recipient,
    ]
    static let memoryMax = 160 << 20

    /// Makes the keyring that `enableKeyring` leaves if it is killed before it changes the key of
    /// the file. Its slot is for a key file whose bytes are all 7.
    static func leaveUnusedKeyring(at path: String) throws {
        let unlocked = try UnlockedKeyring.new(
            for: .keyFile([UInt8](repeating: 7, count: 32)),
            id: Array(Data(contentsOf: URL(filePath: path)).prefix(16)),
            profile: Engine.capabilities.defaultProfile, state: .isBeingEnabled, .testing())
        try KeyringFile(of: FileLocation(path)).makeNew(unlocked.area)
    }
}

extension KeyringArea {
    /// Opens the area, and wipes the root.
    func open(
        _ kind: KeyringSlot.Kind, memoryMax: Int = KeyringFixture.memoryMax
    ) throws -> (root: [UInt8], slotID: UInt16) {
        let unlocked = try unlocked(by: KeyringFixture.credential(kind), memoryMax: memoryMax)
        return (plainBytes(unlocked.root.bytes), unlocked.slotID)
    }
}
