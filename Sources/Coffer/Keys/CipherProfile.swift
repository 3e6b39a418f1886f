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
/// Older files are read only to be migrated: ``sqlcipher2`` and ``sqlcipher1``. A file may have
/// other pages than its family: ``with(pageByteCount:)``.
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

    /// What SQLCipher 2 wrote: 4 000 rounds, pages of 1024 bytes with a MAC. No store is opened
    /// in it; `Store.migrate` reads it. Under a raw key it is the same as ``sqlcipher3``.
    public static let sqlcipher2 = CipherProfile(
        name: "sqlcipher2", pageByteCount: 1024, roundCount: 4000, hash: .sha1)

    /// What SQLCipher 1 wrote: 4 000 rounds, pages of 1024 bytes without a MAC, so that nobody
    /// can tell whether they were changed. No store is opened in it; `Store.migrate` reads it.
    public static let sqlcipher1 = CipherProfile(
        name: "sqlcipher1", pageByteCount: 1024, roundCount: 4000, hash: .sha1, pageMAC: .none)

    /// What the first versions of SQLCipher 2 wrote: as ``sqlcipher2``, with the page's number in
    /// the other byte order under the MAC.
    static let sqlcipher2BigEndian = CipherProfile(
        name: "sqlcipher2", pageByteCount: 1024, roundCount: 4000, hash: .sha1,
        pageMAC: .bigEndian)

    /// The profiles that a store can be in, the strongest first.
    public static let all: [CipherProfile] = [.sqlcipher4, .portable, .sqlcipher3]

    /// The hash function of the page MAC and of PBKDF2.
    enum Hash {
        case sha1
        case sha512
    }

    /// Whether pages carry a MAC, and in which byte order it covers the page's number.
    enum PageMAC {
        case none
        case littleEndian
        case bigEndian
    }

    /// The profile's name, as written in this source: `sqlcipher4`. The same for every page size.
    public let name: String
    /// Bytes per page, with what the cipher reserves at its end.
    public let pageByteCount: Int
    /// Rounds of PBKDF2 that turn a passphrase into a key. A raw key costs none.
    public let roundCount: Int
    /// The hash function of the page MAC and of PBKDF2.
    let hash: Hash
    /// Whether pages carry a MAC, and how.
    let pageMAC: PageMAC
    /// The page size that goes without saying.
    private let familyPageByteCount: Int

    private init(
        name: String, pageByteCount: Int, roundCount: Int, hash: Hash,
        pageMAC: PageMAC = .littleEndian, familyPageByteCount: Int? = nil
    ) {
        self.name = name
        self.pageByteCount = pageByteCount
        self.roundCount = roundCount
        self.hash = hash
        self.pageMAC = pageMAC
        self.familyPageByteCount = familyPageByteCount ?? pageByteCount
    }

    /// The profile of this name that a store can be in; `nil` if there is none.
    ///
    /// - Parameter name: `sqlcipher4`, `portable` or `sqlcipher3`.
    public init?(name: String) {
        guard let found = Self.all.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    /// The same profile with pages of another size.
    ///
    /// - Parameter pageByteCount: A power of two, from 1024 to 65 536 bytes.
    /// - Returns: A profile with the same name, for `Configuration.profile`.
    /// - Throws: `StoreError` `.misuse` for any other number. 512 bytes, which SQLite knows too,
    ///   leave less than it needs beside the cipher's own.
    public func with(pageByteCount: Int) throws -> CipherProfile {
        guard let profile = resized(to: pageByteCount) else {
            throw StoreError(
                .misuse, "\(name) has no pages of \(pageByteCount) bytes",
                hint: "Take a power of two from 1024 to 65536.")
        }
        return profile
    }

    /// `nil` if there are no such pages.
    func resized(to pageByteCount: Int) -> CipherProfile? {
        // "The size of a page is a power of two between 512 and 65536 inclusive." "the usable
        // size is not allowed to be less than 480" https://www.sqlite.org/fileformat2.html
        guard Self.pageByteCounts.contains(pageByteCount),
            pageByteCount - reserveByteCount >= 480
        else { return nil }
        return CipherProfile(
            name: name, pageByteCount: pageByteCount, roundCount: roundCount, hash: hash,
            pageMAC: pageMAC, familyPageByteCount: familyPageByteCount)
    }

    /// The page sizes of SQLite, in bytes.
    static let pageByteCounts = (9...16).map { 1 << $0 }

    /// The profile's name, with the page size if that is not the usual one.
    public var description: String {
        pageByteCount == familyPageByteCount ? name : "\(name) with \(pageByteCount)-byte pages"
    }

    /// Whether a store can be in this profile; the others are migrated.
    var isOpenable: Bool { Self.all.contains { $0.name == name } }

    /// Whether a key derived for the other profile is the key for this one, with the same salt.
    func derivesLike(_ other: CipherProfile) -> Bool {
        hash == other.hash && roundCount == other.roundCount
    }

    /// Bytes of the MAC at the end of each page.
    var macByteCount: Int {
        guard pageMAC != .none else { return 0 }
        return switch hash {
        case .sha1: 20
        case .sha512: 64
        }
    }

    /// Bytes at the end of each page that are the cipher's: IV, MAC, and what fills the last
    /// block of 16 bytes. With SHA-1 16 + 20 + 12 = 48, with SHA-512 16 + 64 + 0 = 80, without
    /// a MAC 16.
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
