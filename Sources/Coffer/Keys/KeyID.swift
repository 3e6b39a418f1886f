import Crypto

/// The public name of a key: equal for two files only if their key and salt are equal.
///
/// It is derived when the key is known and stored nowhere, so that an inventory, a log and a store
/// of secrets can be matched. Nobody can compute the key from it, or test a passphrase faster than
/// on the file itself.
///
/// ```swift
/// logger.info("opened", metadata: ["key": "\(try store.keyID())"])
/// ```
///
/// The id is HKDF-Expand by [RFC 5869](https://www.rfc-editor.org/rfc/rfc5869#section-2.3) with
/// SHA-256: from the 32 bytes of the key, for "coffer1 key id" and the 16 bytes of the salt.
public struct KeyID: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of an id.
    static let byteCount = 8

    /// The eight bytes.
    public let bytes: [UInt8]

    /// 16 hex digits, in lower case.
    public var description: String { bytes.hexDigits }
}

extension Sequence<UInt8> {
    /// Two hex digits for each byte, in lower case.
    package var hexDigits: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension RawKey {
    /// The key's id in the file that has its salt.
    ///
    /// - Complexity: O(1): four hash blocks.
    borrowing func id() -> KeyID {
        let derived = HKDF<SHA256>.expand(
            pseudoRandomKey: bytes.withUnsafeBytes { SymmetricKey(data: $0) },
            info: Array("coffer1 key id".utf8) + salt, outputByteCount: KeyID.byteCount)
        return KeyID(bytes: derived.withUnsafeBytes(Array.init))
    }
}
