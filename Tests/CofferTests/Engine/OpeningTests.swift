import CSQLCipher
import Foundation
import Testing
import Workload

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct OpeningTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ profile: CipherProfile? = nil, rowCount: Int = 50) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(profile: profile))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<rowCount {
                try connection.execute(
                    "INSERT INTO t(v) VALUES (\([UInt8](repeating: 7, count: 500)))")
            }
        }
        connection.close()
    }

    private func open(_ mode: OpenMode = .mustExist, key: UInt8 = 1) throws {
        _ = try Connection(path: path, key: .numbered(key), mode: mode)
    }

    // MARK: What opens

    @Test(arguments: supportedProfiles)
    func `a file of every profile opens without naming it`(profile: CipherProfile) throws {
        try make(profile)
        let connection = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        #expect(connection.profile == profile)
        #expect(try connection.rows("SELECT * FROM t").count == 50)
    }

    @Test(arguments: supportedProfiles)
    func `a file that the engine made from a passphrase opens with one derivation outside it`(
        profile: CipherProfile
    ) throws {
        let raw = try RawConnection(path)
        #expect(raw.setKey("open sesame") == SQLITE_OK)
        raw.run("PRAGMA cipher_page_size = \(profile.pageByteCount)")
        raw.run("PRAGMA kdf_iter = \(profile.roundCount)")
        if profile != .sqlcipher4 {
            raw.run("PRAGMA cipher_hmac_algorithm = HMAC_SHA1")
            raw.run("PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1")
        }
        #expect(raw.run("CREATE TABLE t(v); INSERT INTO t VALUES (42)") == SQLITE_OK)
        let connection = try Connection(
            path: path, key: .passphrase("open sesame"), mode: .mustExist,
            configuration: .testing(.delete, profile: profile))
        #expect(try connection.firstRow("SELECT v FROM t")?[0] == .integer(42))
    }

    @Test func `the engine opens a file that Coffer made from a passphrase`() throws {
        let connection = try Connection(
            path: path, key: .passphrase("open sesame"),
            configuration: .testing(.delete, profile: .sqlcipher3))
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (42)")
        connection.close()
        let raw = try RawConnection(path)
        #expect(raw.setKey("open sesame") == SQLITE_OK)
        if try Engine.capabilities.cipherMajorVersion >= 4 {
            raw.run("PRAGMA cipher_compatibility = 3")
        }
        #expect(raw.first("SELECT v FROM t") == "42")
    }

    @Test func `a raw key with its salt makes and opens a file`() throws {
        let key = [UInt8](repeating: 5, count: 32) + [UInt8](repeating: 6, count: 16)
        try Connection(path: path, key: .raw(key)).close()
        let connection = try Connection(path: path, key: .raw(key), mode: .mustExist)
        #expect(try connection.current().rawBytes(at: 0, count: 16) == Array(key[32...]))
        connection.close()
        _ = try Connection(path: path, key: .raw(key.prefix(32)), mode: .mustExist)
    }

    @Test(arguments: journalModes)
    func `an existing file is converted to the configured journal mode`(
        mode: Configuration.JournalMode
    ) throws {
        let other: Configuration.JournalMode = mode == .wal ? .delete : .wal
        try Connection(path: path, key: .numbered(1), configuration: .testing(other)).close()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        #expect(
            try connection.current().firstText("PRAGMA journal_mode") == mode.description)
    }

    /// 1 is NORMAL, 2 FULL and 3 EXTRA.
    @Test(arguments: [(Configuration.JournalMode.wal, 1, 2), (.delete, 3, 3)])
    func `only with a WAL is a commit less than fully synced, also in an attached file`(
        mode: Configuration.JournalMode, process: Int, power: Int
    ) throws {
        let other = folder.path("other.db")
        try Connection(path: other, key: .numbered(2), configuration: .testing(mode)).close()
        for (durability, expected) in [(.process, process), (.power, power)]
            as [(Configuration.Durability, Int)]
        {
            var configuration = Configuration.testing(mode)
            configuration.durability = durability
            let connection = try Connection(
                path: path, key: .numbered(1), configuration: configuration)
            defer { connection.close() }
            try connection.attach(other, as: "other", key: .numbered(2))
            let handle = try connection.current()
            #expect(try handle.firstInteger("PRAGMA synchronous") == expected)
            // With a WAL, EXTRA is FULL.
            let attached = try handle.firstInteger("PRAGMA other.synchronous")
            #expect(attached == (expected == 2 ? 3 : expected))
        }
    }

    @Test func `creating leaves only the store`() throws {
        try Connection(path: path, key: .numbered(1)).close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names == ["store.db"])
    }

    @Test func `sixteen creators of one file all get in`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { [path] group in
            for number in 0..<16 {
                group.addTask {
                    let connection = try Connection(
                        path: path, key: .numbered(1),
                        configuration: .testing())
                    try connection.execute("CREATE TABLE IF NOT EXISTS t(v)")
                    try connection.execute("INSERT INTO t VALUES (\(number))")
                }
            }
            try await group.waitForAll()
        }
        let connection = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        #expect(try connection.rows("SELECT * FROM t").count == 16)
    }

    // MARK: What does not

    @Test func `a wrong raw key and a wrong passphrase are .wrongKey`() throws {
        try make(.sqlcipher3)
        expect(.wrongKey) { try open(key: 2) }
        let error = expect(.wrongKey) {
            _ = try Connection(
                path: path, key: .passphrase("wrong"), mode: .mustExist,
                configuration: .testing(profile: .sqlcipher3))
        }
        #expect(error?.hint != nil)
        try open()
    }

    @Test func `a plaintext database is .notEncrypted and stays as it is`() throws {
        _ = try RawConnection(path).run("CREATE TABLE t(v)")
        let before = try Data(contentsOf: URL(filePath: path))
        expect(.notEncrypted) { try open() }
        expect(.notEncrypted) { try open(.createIfMissing) }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test(arguments: [OpenMode.createIfMissing, .mustExist, .readOnly])
    func `an empty file is .truncated, never a fresh store`(mode: OpenMode) throws {
        try Data().write(to: URL(filePath: path))
        expect(.truncated) { try open(mode) }
        #expect(try Damage.byteCount(path) == 0)
    }

    @Test func `a handful of bytes and a text are .notAStore`() throws {
        try Data("short".utf8).write(to: URL(filePath: path))
        expect(.notAStore) { try open() }
        let text = String(repeating: "Dear diary, today nothing happened. ", count: 400)
        try Data(text.utf8).write(to: URL(filePath: path))
        expect(.notAStore) { try open() }
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(text.utf8))
    }

    @Test func `garbage looks like any file under another key`() throws {
        var random = SeededGenerator(for: #function)
        let bytes = (0..<40_960).map { _ in UInt8.random(in: 0...255, using: &random) }
        try Data(bytes).write(to: URL(filePath: path))
        expect(.wrongKey) { try open() }
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(bytes))
    }

    @Test(arguments: supportedProfiles)
    func `a file cut after any page is .truncated`(profile: CipherProfile) throws {
        try make(profile)
        let size = profile.pageByteCount
        let pageCount = try Damage.byteCount(path) / size
        for kept in stride(from: pageCount - 1, through: 1, by: -1) {
            try Damage.truncate(path, to: kept * size)
            expect(.truncated) { try open() }
        }
    }

    @Test(arguments: supportedProfiles)
    func `a file cut inside any page is .truncated`(profile: CipherProfile) throws {
        try make(profile)
        let size = profile.pageByteCount
        let byteCount = try Damage.byteCount(path)
        for kept in [byteCount - 1, byteCount - size + 1, byteCount - size / 2, size + 77] {
            try Damage.truncate(path, to: kept)
            let error = expect(.truncated) { try open() }
            #expect(error?.hint?.lowercased().contains("end is missing") == true, "\(kept)")
        }
    }

    @Test func `a cut first page may be a wrong key's, and the hint says so`() throws {
        try make()
        for kept in [4095, 2000, 1024] {
            try Damage.truncate(path, to: kept)
            let error = expect(.wrongKey) { try open() }
            #expect(error?.hint?.contains("end is missing") == true)
            #expect(error?.message.contains("\(kept) bytes") == (kept != 1024))
        }
    }

    @Test func `a wrong key of a small store with bytes after its end is .wrongKey`() throws {
        try make(.sqlcipher3, rowCount: 0)
        try Damage.append(path, byteCount: 3)
        try open()
        expect(.wrongKey) { try open(key: 2) }
    }

    @Test func `a file cut inside its last page opens while its WAL has that page`() throws {
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE t(v)")
        _ = try connection.checkpoint(.truncate)
        try connection.execute("INSERT INTO t VALUES (1)")
        let copy = folder.path("copy.db")
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        connection.close()
        try Damage.truncate(copy, to: try Damage.byteCount(copy) - 77)
        let reopened = try Connection(path: copy, key: .numbered(1), mode: .mustExist)
        #expect(try reopened.rows("SELECT v FROM t").count == 1)
    }

    @Test(arguments: supportedProfiles)
    func `a damaged first page is distinguished from a wrong key`(profile: CipherProfile) throws {
        try make(profile)
        try Damage.flip(path, at: 500)
        let error = expect(.damaged) { try open() }
        #expect(error?.pages == [1])
        expect(.wrongKey) { try open(key: 2) }
    }

    @Test func `a missing file and a missing folder are .notFound`() throws {
        expect(.notFound) { try open(.mustExist) }
        expect(.notFound) { try open(.readOnly) }
        #expect(!FileManager.default.fileExists(atPath: path))
        expect(.notFound) {
            _ = try Connection(path: folder.path("no/such/store.db"), key: .numbered(1))
        }
    }

    @Test func `a folder and a device are .notAStore`() throws {
        expect(.notAStore) { _ = try Connection(path: folder.url.path, key: .numbered(1)) }
        expect(.notAStore) { _ = try Connection(path: "/dev/null", key: .numbered(1)) }
    }

    @Test func `an empty key, path or raw key of a wrong length is .misuse and makes no file`()
        throws
    {
        expect(.misuse) { _ = try Connection(path: path, key: .passphrase("")) }
        expect(.misuse) { _ = try Connection(path: path, key: .raw([])) }
        expect(.misuse) {
            _ = try Connection(path: path, key: .raw([UInt8](repeating: 1, count: 33)))
        }
        expect(.misuse) { _ = try Connection(path: "", key: .numbered(1)) }
        expect(.misuse) { _ = try Connection(path: path + "\0x", key: .numbered(1)) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
    }

    @Test func `a WAL without its file is never replayed into a new one`() throws {
        try Data(repeating: 1, count: 100).write(to: URL(filePath: path + "-wal"))
        expect(.damaged) { try open(.createIfMissing) }
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try Damage.byteCount(path + "-wal") == 100)
    }

    @Test func `a file in a profile of SQLCipher 4 is .needsNewerEngine on SQLCipher 3`() throws {
        guard try Engine.capabilities.cipherMajorVersion < 4 else { return }
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Vectors/sqlcipher4.db").standardized
        try FileManager.default.copyItem(at: file, to: URL(filePath: path))
        expect(.needsNewerEngine) { try open() }
        expect(.wrongKey) { try open(key: 2) }
        expect(.needsNewerEngine) {
            _ = try Connection(
                path: folder.path("new.db"), key: .numbered(1),
                configuration: .testing(profile: .sqlcipher4))
        }
    }

    @Test func `a file without write permission opens for reading only`() throws {
        try make()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        connection.close()
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: folder.url.path)
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
        // The other user owns neither file nor folder.
        #expect(
            try Peer.run(["open-as-nobody", "must-exist", path, "1", "delete"]) == ["readOnly"])
        #expect(try Peer.run(["open-as-nobody", "read-only", path, "1", "delete"]) == ["rows 50"])
    }
}
