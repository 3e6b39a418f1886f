import Crypto
import CryptoExtras

extension CipherProfile {
    /// Decrypts a page, or the start of one. Authenticate the page first.
    ///
    /// - Parameters:
    ///   - page: One page as it is in the file.
    ///   - number: The page's number, from 1.
    ///   - end: The offset to stop at, in whole AES blocks; `nil` for the end of the ciphertext.
    ///   - key: The key of the pages.
    /// - Returns: The bytes at SQLite's own offsets, without the bytes that the cipher reserves. On
    ///   page 1 the first 16 bytes are zeros, because the file has the salt there. `nil` if the
    ///   buffer is not one page.
    /// - Complexity: O(*bytes up to `end`*).
    func decrypt(
        _ page: UnsafeRawBufferPointer, number: Int, upTo end: Int? = nil, key: borrowing RawKey
    ) -> [UInt8]? {
        guard page.count == pageByteCount else { return nil }
        let start = ciphertextOffset(ofPage: number)
        let ciphertext = UnsafeRawBufferPointer(rebasing: page[start..<(end ?? ivOffset)])
        let plaintext = try? AES._CBC.decrypt(
            ciphertext, using: key.bytes.withUnsafeBytes { SymmetricKey(data: $0) },
            iv: AES._CBC.IV(ivBytes: page[ivOffset..<macOffset]), noPadding: true)
        return plaintext.map { [UInt8](repeating: 0, count: start) + $0 }
    }
}
