import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct AttachTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(v)")
    }

    /// Makes a closed file with a table `t` whose big value spans pages; returns its last page's
    /// offset.
    @discardableResult
    private func make(
        _ name: String, _ profile: CipherProfile? = nil, mode: Configuration.JournalMode = .delete
    ) throws -> Int {
        let other = try Connection(
            path: folder.path(name), key: .numbered(2),
            configuration: .testing(mode, profile: profile))
        let size = try #require(other.profile).pageByteCount
        try other.execute("CREATE TABLE t(v, big, flag)")
        try other.execute(
            "INSERT INTO t VALUES ('there', \([UInt8](repeating: 7, count: size * 3)), 7)")
        try other.checkpoint(.truncate)
        return (try other.current().firstInteger("PRAGMA page_count") - 1) * size
    }

    @Test(arguments: supportedProfiles, journalModes)
    func `a file of any profile is attached under its own key`(
        profile: CipherProfile, mode: Configuration.JournalMode
    ) throws {
        try make("other.db", profile, mode: mode)
        try connection.attach(folder.path("other.db"), as: "it's \"x\"", key: .numbered(2))
        #expect(connection.attachedNames == ["it's \"x\""])
        let name = "it's \"x\""
        #expect(try connection.firstRow("SELECT v FROM \(identifier: name).t")?[0] == "there")
        try connection.transaction {
            try connection.execute("INSERT INTO main.t SELECT v FROM \(identifier: name).t")
            try connection.execute("INSERT INTO \(identifier: name).t(v) VALUES ('new')")
        }
        #expect(try connection.tableExists("t", in: name))
        #expect(try connection.columns(of: "t", in: name).count == 3)
        #expect(try connection.schemaObjects().filter { $0.schema == name }.count == 1)
        let frames = try connection.checkpoint(.truncate, in: name)
        #expect((frames != nil) == (mode == .wal))
        #expect(try connection.checkpoint() == nil, "main has a rollback journal")
        expect(.notFound) { try connection.checkpoint(in: "elsewhere") }
        try connection.execute("VACUUM")
        expect(.misuse) { try connection.rekey(to: .numbered(3)) }
        try connection.detach("IT'S \"x\"")
        #expect(connection.attachedNames.isEmpty)
        expect(.notFound) { try connection.detach(name) }
        expect(.sql) { try connection.rows("SELECT * FROM \(identifier: name).t") }
        let other = try Connection(
            path: folder.path("other.db"), key: .numbered(2), configuration: .testing(mode))
        #expect(try other.rows("SELECT * FROM t").count == 2)
        #expect(other.profile == profile)
        // The process-wide defaults are restored.
        let fresh = try RawConnection(folder.path("fresh.db"), key: 5)
        fresh.run("CREATE TABLE t(v)")
        #expect(fresh.first("PRAGMA cipher_page_size") == (isEngine4 ? "4096" : "1024"))
        #expect(fresh.first("PRAGMA kdf_iter") == (isEngine4 ? "256000" : "64000"))
    }

    @Test func `what cannot be attached is refused, and nothing stays attached`() throws {
        try make("other.db")
        let path = folder.path("other.db")
        expect(.wrongKey) { try connection.attach(path, as: "a", key: .numbered(9)) }
        expect(.notFound) {
            try connection.attach(folder.path("none.db"), as: "a", key: .numbered(2))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path("none.db")))
        for name in ["main", "TEMP"] {
            expect(.misuse) { try connection.attach(path, as: name, key: .numbered(2)) }
        }
        expect(.sql) { try connection.attach(path, as: "", key: .numbered(2)) }
        expect(.misuse) { try connection.attach(folder.path(), as: "a", key: .numbered(1)) }
        expect(.misuse) { try connection.attach(path, as: "a", key: .passphrase("")) }
        try connection.begin()
        expect(.misuse) { try connection.attach(path, as: "a", key: .numbered(2)) }
        try connection.rollback()
        #expect(connection.attachedNames.isEmpty)
        #expect(try connection.rows("PRAGMA database_list").count == 1)
        try connection.attach(path, as: "a", key: .numbered(2))
        expect(.misuse) { try connection.attach(path, as: "b", key: .numbered(2)) }
        try make("third.db")
        expect(.misuse) {
            try connection.attach(folder.path("third.db"), as: "A", key: .numbered(2))
        }
        try connection.attach(folder.path("third.db"), as: "c", key: .numbered(2))
        try connection.begin()
        expect(.misuse) { try connection.detach("a") }
        try connection.rollback()
        // Both stay refused in SQL text, so a key is never part of it.
        expect(.misuse) { try connection.execute("DETACH a") }
        expect(.misuse) { try connection.execute("ATTACH 'x.db' AS x KEY 'hunter2'") }
    }

    @Test func `a read-only connection reads what it attaches, and does not write it`() throws {
        try make("other.db")
        let reader = try Connection(
            path: folder.path(), key: .numbered(1), mode: .readOnly,
            configuration: .testing(.delete))
        try reader.attach(folder.path("other.db"), as: "a", key: .numbered(2))
        #expect(try reader.rows("SELECT v FROM a.t").count == 1)
        expect(.readOnly) { try reader.execute("INSERT INTO a.t(v) VALUES (1)") }
    }

    @Test(arguments: [false, true])
    func `no result over a damaged page of an attached file leaves the connection`(
        isZeroed: Bool
    ) throws {
        let offset = try make("other.db")
        if isZeroed {
            try Damage.zero(folder.path("other.db"), at: offset, count: 4096)
        } else {
            try Damage.flip(folder.path("other.db"), at: offset + 10)
        }
        try connection.attach(folder.path("other.db"), as: "a", key: .numbered(2))
        let queries: [SQL] = [
            "SELECT flag FROM a.t", "SELECT big FROM a.t",
            "SELECT count(*) FROM a.t WHERE flag = 7",
        ]
        for query in queries {
            expect(.damaged) { _ = try connection.rows(query) }
            expect(.damaged) { try connection.transaction { _ = try connection.rows(query) } }
            let cursor = try connection.prepare(query.text)
            expect(.damaged) { while try cursor.step() {} }
        }
        expect(.damaged) { try connection.execute("INSERT INTO main.t SELECT flag FROM a.t") }
        #expect(try connection.rows("SELECT * FROM main.t").isEmpty)
        try connection.detach("a")
        try connection.execute("INSERT INTO t VALUES (1)")
    }
}
