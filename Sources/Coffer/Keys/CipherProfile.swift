/// How SQLCipher lays out and protects the pages of a file.
///
/// A file must be opened with the profile it was written with. Coffer detects that profile unless
/// the caller names one.
///
/// | profile | read by SQLCipher | MAC and KDF | page | PBKDF2 rounds |
/// |---|---|---|---|---|
/// | ``sqlcipher4`` | 4 | SHA-512 | 4096 bytes | 256 000 |
/// | ``portable`` | 3 and 4 | SHA-1 | 4096 bytes | 256 000 |
/// | ``sqlcipher3`` | 3 and 4 | SHA-1 | 1024 bytes | 64 000 |
///
/// ``sqlcipher2`` and ``sqlcipher1`` describe older files, which are read only to be upgraded. A
/// file may have another page size than its family: ``with(pageByteCount:)``.
///
/// All encrypt with AES-256 in CBC mode. The design is Zetetic's:
/// <https://www.zetetic.net/sqlcipher/design/>.
public struct CipherProfile: Sendable, Hashable, CustomStringConvertible {
    /// The default of SQLCipher 4. Older versions cannot read it.
    public static let sqlcipher4 = CipherProfile(
        name: "sqlcipher4", pageByteCount: 4096, roundCount: 256_000, hash: .sha512)

    /// Written and read by SQLCipher 3 and 4, as strong as SQLCipher 3 allows.
    public static let portable = CipherProfile(
        name: "portable", pageByteCount: 4096, roundCount: 256_000, hash: .sha1)

    /// The default of SQLCipher 3, for existing files. It is slower than ``portable`` and its
    /// passphrases are cheaper to guess.
    public static let sqlcipher3 = CipherProfile(
        name: "sqlcipher3", pageByteCount: 1024, roundCount: 64_000, hash: .sha1)

    /// The format of SQLCipher 2: 4 000 rounds, pages of 1024 bytes with a MAC. A store cannot be
    /// opened in it; `Store.upgrade` reads it. Under a raw key it is the same as ``sqlcipher3``.
    public static let sqlcipher2 = CipherProfile(
        name: "sqlcipher2", pageByteCount: 1024, roundCount: 4000, hash: .sha1)

    /// The format of SQLCipher 1: 4 000 rounds, pages of 1024 bytes without a MAC. Changed pages
    /// cannot be detected. A store cannot be opened in it; `Store.upgrade` reads it.
    public static let sqlcipher1 = CipherProfile(
        name: "sqlcipher1", pageByteCount: 1024, roundCount: 4000, hash: .sha1, pageMAC: .none)

    /// The format of the first versions of SQLCipher 2. It differs from ``sqlcipher2`` in the byte
    /// order of the page number that the MAC covers.
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

    /// The profile's name, as spelled in this type: `sqlcipher4`. The same for every page size.
    public let name: String
    /// Bytes per page, including the bytes that the cipher reserves at its end.
    public let pageByteCount: Int
    /// Rounds of PBKDF2 that turn a passphrase into a key. A raw key needs none.
    public let roundCount: Int
    /// The hash function of the page MAC and of PBKDF2.
    let hash: Hash
    /// Whether pages carry a MAC, and how.
    let pageMAC: PageMAC
    /// The family's usual page size, which `description` leaves out.
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

    /// The profile with this name that a store can be in; `nil` if there is no such profile.
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
    /// - Throws: `StoreError` `.misuse` for any other number. SQLite also has pages of 512 bytes,
    ///   but the cipher leaves too few of them to SQLite, except in ``sqlcipher1``.
    public func with(pageByteCount: Int) throws -> CipherProfile {
        guard let profile = resized(to: pageByteCount) else {
            throw StoreError(
                .misuse, "\(name) does not support pages of \(pageByteCount) bytes",
                hint: "Use a power of two from 1024 to 65536.")
        }
        return profile
    }

    /// The same profile with pages of another size; `nil` if it cannot have such pages.
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

    /// The profile's name, with the page size if that is not the family's usual one.
    public var description: String {
        pageByteCount == familyPageByteCount ? name : "\(name) with \(pageByteCount)-byte pages"
    }

    /// Whether a store can be in this profile; files in the others must be upgraded.
    var isOpenable: Bool { Self.all.contains { $0.name == name } }

    /// Whether both profiles derive the same key from a passphrase and a salt.
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

    /// Bytes at the end of each page that the cipher reserves: IV, MAC, and padding to whole blocks
    /// of 16 bytes. With SHA-1 16 + 20 + 12 = 48, with SHA-512 16 + 64 + 0 = 80, without a MAC 16.
    ///
    /// > "calculate the amount of reserve needed in even increments of the cipher block size"
    /// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L726>
    var reserveByteCount: Int {
        (Self.blockByteCount + macByteCount + Self.blockByteCount - 1)
            / Self.blockByteCount * Self.blockByteCount
    }

    /// Bytes of an AES block and of an IV.
    static let blockByteCount = 16
}
