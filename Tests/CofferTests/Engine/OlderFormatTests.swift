import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite struct OlderFormatTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ version: OlderVersion) throws {
        let raw = try RawConnection(path)
        // The key is a passphrase, because 2.x and 3.x are the same with a raw key.
        #expect(raw.setKey("open sesame") == SQLITE_OK)
        for pragma in version.pragmas { raw.run(pragma) }
        try #require(raw.run("CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(9000))") == 0)
    }

    /// Names the profile, so that a passphrase is derived once and not for every profile.
    private func open(_ passphrase: String, _ profile: CipherProfile? = .sqlcipher3) throws {
        _ = try Connection(
            path: path, key: .passphrase(passphrase), mode: .mustExist,
            configuration: .testing(.delete, profile: profile))
    }

    @Test(arguments: OlderVersion.allCases)
    func `a file of SQLCipher 1 or 2 is .needsUpgrade and stays as it is`(
        version: OlderVersion
    ) throws {
        try make(version)
        let before = try Data(contentsOf: URL(filePath: path))
        let error = expect(.needsUpgrade) { try open("open sesame") }
        #expect(error?.message.contains(version == .one ? "SQLCipher 1" : "SQLCipher 2") == true)
        #expect(error?.hint?.contains("Store.upgrade") == true)
        #expect(error?.hint?.contains("coffer upgrade") == true)
        if version == .one { expect(.needsUpgrade) { try open("open sesame", nil) } }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test(arguments: OlderVersion.allCases)
    func `a wrong key for an older file is .wrongKey`(version: OlderVersion) throws {
        try make(version)
        expect(.wrongKey) { try open("open says me") }
    }

    @Test func `a damaged first page of an older file is distinguished from a wrong key`() throws {
        try make(.two)
        try Damage.flip(path, at: 500)
        let error = expect(.damaged) { try open("open sesame") }
        #expect(error?.pages == [1])
        expect(.wrongKey) { try open("open says me") }
    }

    /// The test versions of SQLCipher 2 had another key for the MAC; here no MAC fits at all.
    @Test func `a file of a test version of SQLCipher 2 is .unsupported, not a wrong key`() throws {
        try make(.two)
        for page in 0..<(try Damage.byteCount(path) / 1024) {
            try Damage.flip(path, at: (page + 1) * 1024 - 20)
        }
        let error = expect(.unsupported) { try open("open sesame") }
        #expect(error?.hint != nil)
        expect(.wrongKey) { try open("open says me") }
    }

    @Test func `an older file under a raw key is recognised where it differs`() throws {
        let one = folder.path("one.db")
        try #require(RawConnection.older(one, .one, key: 1).run("CREATE TABLE t(v)") == SQLITE_OK)
        expect(.needsUpgrade) { try Connection(path: one, key: .numbered(1)) }
        expect(.wrongKey) { try Connection(path: one, key: .numbered(2)) }
        // The rounds do not matter to a raw key, so 2.x is 3.x.
        let two = folder.path("two.db")
        try #require(RawConnection.older(two, .two, key: 1).run("CREATE TABLE t(v)") == SQLITE_OK)
        #expect(try Connection(path: two, key: .numbered(1)).profile == .sqlcipher3)
    }

    @Test(arguments: [CipherProfile.sqlcipher1, .sqlcipher2])
    func `no store is opened or made in an older profile`(profile: CipherProfile) throws {
        try make(profile == .sqlcipher1 ? .one : .two)
        let error = expect(.misuse) { try open("open sesame", profile) }
        #expect(error?.hint?.contains("Store.upgrade") == true)
        expect(.misuse) {
            _ = try Store(
                path: folder.path("new.db"), key: .numbered(1),
                configuration: .testing(profile: profile))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path("new.db")))
    }

    // MARK: Damaged elsewhere

    @Test(arguments: supportedProfiles)
    func `a damaged schema page is reported with its number when the file is opened`(
        profile: CipherProfile
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        // The schema needs more than one page.
        try connection.transaction {
            for number in 0..<200 {
                try connection.execute(
                    SQL(text: "CREATE TABLE table_number_\(number)(some_column, another_column)"))
            }
        }
        let pages = try connection.rows("SELECT min(rootpage) FROM sqlite_master")
        #expect(pages.count == 1)
        connection.close()
        let size = profile.pageByteCount
        var foundCount = 0
        for page in 2...(try Damage.byteCount(path) / size) {
            let copy = try folder.copy(path, as: "page\(page).db")
            try Damage.flip(copy, at: (page - 1) * size + size / 2)
            do {
                _ = try Connection(path: copy, key: .numbered(1), mode: .mustExist)
            } catch let error as StoreError {
                #expect(error.code == .damaged && error.pages == [page], "\(error)")
                foundCount += 1
            }
        }
        #expect(foundCount > 1)
    }
}
