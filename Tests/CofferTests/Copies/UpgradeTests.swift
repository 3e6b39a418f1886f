import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct UpgradeTests {
    private let folder: TemporaryFolder
    private let old: String
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        old = folder.path("old.db")
        path = folder.path()
    }

    private func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.url.path))
    }

    @Test(arguments: OlderVersion.allCases, journalModes)
    func `a file of SQLCipher 1 or 2 becomes a store, and the old file stays`(
        version: OlderVersion, mode: Configuration.JournalMode
    ) throws {
        let raw = try RawConnection.older(old, version, key: 1)
        try #require(raw.run(OddSchema.sql) == SQLITE_OK)
        let expected = try Dump.lines(raw.db)
        let before = try Data(contentsOf: URL(filePath: old))
        let report = try Store.upgrade(
            from: old, key: .numbered(1), to: path, newKey: .numbered(7),
            configuration: .testing(mode))
        #expect(try report.profile == Engine.capabilities.defaultProfile)
        #expect(report.rowCount > 20)
        #expect(try Data(contentsOf: URL(filePath: old)) == before)
        #expect(try names() == ["old.db", "store.db"])
        let store = try Store(path: path, key: .numbered(7), configuration: .testing(mode))
        let verification = try store.verify()
        #expect(verification.damagedPages.isEmpty)
        try store.close()
        #expect(try Dump.store(path, key: 7) == expected)
        #expect(raw.first("SELECT count(*) FROM loose") == "4", "the old file goes on")
    }

    @Test func `a passphrase opens an older file and is the key of the new one`() throws {
        let raw = try RawConnection(old)
        #expect(raw.setKey("open sesame") == SQLITE_OK)
        for pragma in OlderVersion.two.pragmas { raw.run(pragma) }
        try #require(raw.run("CREATE TABLE t(v); INSERT INTO t VALUES (42)") == SQLITE_OK)
        try Store.upgrade(
            from: old, key: .passphrase("open sesame"), to: path,
            configuration: .testing(profile: .sqlcipher3))
        let connection = try Connection(
            path: path, key: .passphrase("open sesame"), mode: .mustExist,
            configuration: .testing(profile: .sqlcipher3))
        #expect(try connection.firstRow("SELECT v FROM t")?[0] == 42)
    }

    @Test(arguments: supportedProfiles, supportedProfiles)
    func `a store of every profile becomes one of every other, with the same key if none is given`(
        from: CipherProfile, to: CipherProfile
    ) throws {
        let store = try Store(
            path: old, key: .numbered(1), configuration: .testing(profile: from))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(a, b)")
            try tx.execute("INSERT INTO t(rowid, a) VALUES (44, 'in the log')")
        }
        // The store is open, and its WAL was not checkpointed.
        try Store.upgrade(
            from: old, key: .numbered(1), to: path, configuration: .testing(profile: to))
        try store.write { tx in try tx.execute("INSERT INTO t(a) VALUES ('goes on')") }
        try store.close()
        let copy = try Store(path: path, key: .numbered(1), configuration: .testing())
        #expect(copy.profile == to)
        let rows = try copy.read { tx in try tx.rows("SELECT rowid, a FROM t").map { $0[0] } }
        #expect(rows == [44])
    }

    @Test func `pages of another size are read and written`() throws {
        let from = try CipherProfile.portable.with(pageByteCount: 16384)
        let to = try CipherProfile.sqlcipher3.with(pageByteCount: 2048)
        let connection = try Connection(
            path: old, key: .numbered(1), configuration: .testing(profile: from))
        try connection.execute("CREATE TABLE t(v)")
        connection.close()
        let report = try Store.upgrade(
            from: old, key: .numbered(1), to: path, configuration: .testing(profile: to))
        #expect(report.profile == to)
        let again = try Connection(path: path, key: .numbered(1))
        #expect(again.profile?.pageByteCount == 2048)
    }

    @Test func `a wrong key, a plaintext file and a text are refused, and nothing is made`() throws
    {
        try #require(RawConnection.older(old, .one, key: 1).run("CREATE TABLE t(v)") == SQLITE_OK)
        expect(.wrongKey) { try Store.upgrade(from: old, key: .numbered(2), to: path) }
        expect(.misuse) { try Store.upgrade(from: old, key: .passphrase(""), to: path) }
        expect(.misuse) {
            try Store.upgrade(from: old, key: .numbered(1), to: path, newKey: .raw([1]))
        }
        expect(.alreadyExists) { try Store.upgrade(from: old, key: .numbered(1), to: old) }
        let plain = folder.path("plain.db")
        _ = try RawConnection(plain).run("CREATE TABLE t(v)")
        expect(.notEncrypted) { try Store.upgrade(from: plain, key: .numbered(1), to: path) }
        try Data(String(repeating: "text ", count: 300).utf8).write(
            to: URL(filePath: folder.path("text")))
        expect(.notAStore) {
            try Store.upgrade(from: folder.path("text"), key: .numbered(1), to: path)
        }
        expect(.notFound) {
            try Store.upgrade(from: folder.path("none"), key: .numbered(1), to: path)
        }
        #expect(try names() == ["old.db", "plain.db", "text"])
    }

    @Test func `a file in a profile of SQLCipher 4 is .needsNewerEngine on SQLCipher 3`() throws {
        guard !isEngine4 else { return }
        let vector = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Vectors/sqlcipher4.db").standardized
        expect(.needsNewerEngine) {
            try Store.upgrade(from: vector.path, key: .numbered(1), to: path)
        }
        #expect(try names() == [])
    }

    /// Only the structure shows the damage, because such a file has no MAC.
    @Test func `a file of SQLCipher 1 with a damaged page is .damaged and nothing is made`() throws
    {
        do {
            let raw = try RawConnection.older(old, .one, key: 1)
            try #require(
                raw.run(
                    """
                    CREATE TABLE t(id INTEGER PRIMARY KEY, v); CREATE INDEX i ON t(v);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                    INSERT INTO t SELECT i, 'value ' || i FROM n;
                    """) == SQLITE_OK)
        }
        for page in 2...(try Damage.byteCount(old) / 1024) {
            let copy = try folder.copy(old, as: "copy.db")
            defer { try? FileManager.default.removeItem(atPath: copy) }
            // The first block holds the kind of the page and the offsets of its cells.
            try Damage.flip(copy, at: (page - 1) * 1024 + 5)
            expect(.damaged) { try Store.upgrade(from: copy, key: .numbered(1), to: path) }
        }
        #expect(try names() == ["old.db"])
    }
}
