/// How SQLCipher lays out and protects the pages of a file.
///
/// A file is opened with the profile that it was written with. Coffer finds out which one that
/// is, unless a profile is named.
///
/// | profile | read by SQLCipher | MAC and KDF | page | PBKDF2 rounds |
/// |---|---|---|---|---|
/// | ``sqlcipher4`` | 4 | SHA-512 | 4096 bytes | 256 000 |
/// | ``portable`` | 3 and 4 | SHA-1 | 4096 bytes | 256 000 |
/// | ``sqlcipher3`` | 3 and 4 | SHA-1 | 1024 bytes | 64 000 |
///
/// All encrypt with AES-256 in CBC mode. The design is Zetetic's:
/// <https://www.zetetic.net/sqlcipher/design/>.
public struct CipherProfile: Sendable, Hashable, CustomStringConvertible {
    /// What SQLCipher 4 writes by default, and what it alone can read.
    public static let sqlcipher4 = CipherProfile(
        name: "sqlcipher4", pageByteCount: 4096, roundCount: 256_000, hash: .sha512)

    /// What both engines can write and read, as strong as SQLCipher 3 allows.
    public static let portable = CipherProfile(
        name: "portable", pageByteCount: 4096, roundCount: 256_000, hash: .sha1)

    /// What SQLCipher 3 writes by default. Slower than ``portable`` and its passphrases are
    /// cheaper to guess: for files that exist already.
    public static let sqlcipher3 = CipherProfile(
        name: "sqlcipher3", pageByteCount: 1024, roundCount: 64_000, hash: .sha1)

    /// The hash function of the page MAC and of PBKDF2.
    enum Hash {
        case sha1
        case sha512
    }

    /// The profile's name, as written in this source: `sqlcipher4`.
    public let name: String
    /// Bytes per page, with what the cipher reserves at its end.
    public let pageByteCount: Int
    /// Rounds of PBKDF2 that turn a passphrase into a key. A raw key costs none.
    public let roundCount: Int
    /// The hash function of the page MAC and of PBKDF2.
    let hash: Hash

    /// The profile's name.
    public var description: String { name }

    /// Bytes of the MAC at the end of each page.
    var macByteCount: Int {
        switch hash {
        case .sha1: 20
        case .sha512: 64
        }
    }

    /// Bytes at the end of each page that are the cipher's: IV, MAC, and what fills the last
    /// block of 16 bytes. With SHA-1 16 + 20 + 12 = 48, with SHA-512 16 + 64 + 0 = 80.
    ///
    /// > "calculate the amount of reserve needed in even increments of the cipher block size"
    /// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L726>
    var reserveByteCount: Int {
        (Self.blockByteCount + macByteCount + Self.blockByteCount - 1)
            / Self.blockByteCount * Self.blockByteCount
    }

    /// Bytes of an AES block, and so of an IV.
    static let blockByteCount = 16
}
