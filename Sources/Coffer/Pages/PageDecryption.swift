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

    /// Whether page 1 under this key starts as each database does. A wrong key passes once in 16
    /// million, and so may a forged page: authenticate the page next.
    ///
    /// > "21 1 Maximum embedded payload fraction. Must be 64. 22 1 Minimum embedded payload
    /// > fraction. Must be 32. 23 1 Leaf payload fraction. Must be 32."
    /// > <https://www.sqlite.org/fileformat2.html#the_database_header>
    ///
    /// - Parameter page: Page 1 as it is in the file, after whose salt the ciphertext starts.
    /// - Complexity: O(1): one block of AES.
    func startsADatabase(_ page: [UInt8], under key: SymmetricKey) -> Bool {
        let start = ciphertextOffset(ofPage: 1)
        guard page.count == pageByteCount, start == RawKey.saltByteCount else { return false }
        var block = Array(page[start..<start + 16])
        guard (try? AES.inversePermute(&block, key: key)) != nil else { return false }
        return zip(5..., [64, 32, 32] as [UInt8]).allSatisfy { offset, fraction in
            block[offset] ^ page[ivOffset + offset] == fraction
        }
    }
}
