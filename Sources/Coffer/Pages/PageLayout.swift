/// The layout of an encrypted page.
///
/// ```
/// page 1     salt 16 | ciphertext | IV 16 | MAC 20 or 64 | padding 12 or 0
/// page 2...            ciphertext | IV 16 | MAC 20 or 64 | padding 12 or 0
/// ```
///
/// SQLCipher 1 ends its pages with the IV.
///
/// > "hmac will be written immediately after the initialization vector. the remainder of the page
/// > reserve will contain random bytes"
/// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L1203>
///
/// See also <https://www.zetetic.net/sqlcipher/design/>.
extension CipherProfile {
    /// Offset in bytes of the IV, where the ciphertext ends.
    var ivOffset: Int { pageByteCount - reserveByteCount }

    /// Offset in bytes of the MAC, where the bytes that it covers end.
    var macOffset: Int { ivOffset + Self.blockByteCount }

    /// Offset in bytes of the ciphertext. On page 1 the unencrypted salt comes first.
    func ciphertextOffset(ofPage number: Int) -> Int {
        number == 1 ? RawKey.saltByteCount : 0
    }
}
