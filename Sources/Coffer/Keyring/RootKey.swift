import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The 32 random bytes from which all data keys of one store are derived.
///
/// A keyring holds them wrapped, once per slot. Everything that depends on the root is derived by
/// HKDF-Expand of [RFC 5869](https://www.rfc-editor.org/rfc/rfc5869#section-2.3) with SHA-256. The
/// formulas stand in `Documentation/file-format.md`.
struct RootKey: ~Copyable, Sendable {
    static let byteCount = 32

    let bytes: SecretBytes

    /// A new root of the system's secure generator.
    static func random() -> RootKey {
        RootKey(bytes: .random(byteCount: byteCount))
    }

    borrowing func copy() -> RootKey { RootKey(bytes: bytes.copy()) }

    /// The key that encrypts the pages of a file in one epoch.
    ///
    /// - Parameter id: The file's 16 salt bytes.
    borrowing func dataKey(epoch: UInt32, id: [UInt8]) -> RawKey {
        RawKey(bytes: bytes.expanded(Self.info(ofDataKey: id) + epoch.bigEndianBytes), salt: id)
    }

    /// The keys of all epochs, for a search.
    ///
    /// - Parameter id: The file's 16 salt bytes.
    borrowing func trialKeys(for id: [UInt8]) -> TrialKeys {
        TrialKeys(root: bytes.symmetricKey(), info: Self.info(ofDataKey: id))
    }

    /// Data keys that are tried and dropped at once.
    ///
    /// They and the root are in memory that is not locked while a search lasts, because locking
    /// takes longer than a derivation. The crypto library wipes its keys, but not the schedule of
    /// AES on its stack.
    struct TrialKeys {
        fileprivate let root: SymmetricKey
        fileprivate let info: [UInt8]

        func key(ofEpoch epoch: UInt32) -> SymmetricKey {
            HKDF<SHA256>.expand(
                pseudoRandomKey: root, info: info + epoch.bigEndianBytes,
                outputByteCount: RawKey.byteCount)
        }
    }

    private static func info(ofDataKey id: [UInt8]) -> [UInt8] { Array("coffer1 data".utf8) + id }

    /// The public name of the root in a file: 16 bytes.
    borrowing func id(for id: [UInt8]) -> [UInt8] {
        expanded("coffer1 root id", id, byteCount: 16).withUnsafeBytes { [UInt8]($0) }
    }

    /// The authentication code of an area's bytes before it.
    borrowing func authenticationCode(for bytes: ArraySlice<UInt8>) -> [UInt8] {
        let key = expanded("coffer1 mac", []).symmetricKey()
        return [UInt8](HMAC<SHA256>.authenticationCode(for: bytes, using: key))
    }

    /// Whether `code` is the authentication code of the bytes, compared in constant time.
    borrowing func isAuthentic(_ code: ArraySlice<UInt8>, for bytes: ArraySlice<UInt8>) -> Bool {
        let key = expanded("coffer1 mac", []).symmetricKey()
        return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: key)
    }

    private borrowing func expanded(
        _ purpose: String, _ context: [UInt8], byteCount: Int = 32
    ) -> SecretBytes {
        bytes.expanded(Array(purpose.utf8) + context, byteCount: byteCount)
    }
}

extension SecretBytes {
    /// HKDF-Expand with SHA-256, from these bytes as the pseudorandom key.
    package borrowing func expanded(_ info: [UInt8], byteCount: Int = 32) -> SecretBytes {
        SecretBytes(
            copying: HKDF<SHA256>.expand(
                pseudoRandomKey: symmetricKey(), info: info, outputByteCount: byteCount),
            byteCount: byteCount)
    }

    /// Creates a secret with the bytes of a value of the crypto library.
    init(copying value: some ContiguousBytes, byteCount: Int) {
        self.init(byteCount: byteCount) { bytes in
            value.withUnsafeBytes { bytes.copyMemory(from: $0) }
        }
    }

    /// The bytes as a key of the crypto library, which wipes its own copy.
    package borrowing func symmetricKey() -> SymmetricKey {
        withUnsafeBytes { SymmetricKey(data: $0) }
    }
}
