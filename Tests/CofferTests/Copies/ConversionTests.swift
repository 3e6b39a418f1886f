import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ConversionTests {
    private let folder: TemporaryFolder
    private let plain: String
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        plain = folder.path("plain.db")
        path = folder.path()
    }

    private func makePlain(_ settings: String = "", _ sql: String = OddSchema.sql) throws {
        let raw = try RawConnection(plain)
        raw.run(settings)
        let code = raw.run(sql)
        try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(raw.db)))")
    }

    private func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.url.path))
    }

    // MARK: There and back

    @Test(arguments: journalModes, supportedProfiles)
    func `a plaintext database becomes a store and plaintext again without a difference`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        try makePlain()
        let before = try Data(contentsOf: URL(filePath: plain))
        let expected = try Dump.plaintext(plain)
        let report = try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1),
            configuration: .testing(mode, profile: profile))
        #expect(report.profile == profile)
        #expect(report.rowCount > 20 && report.tableCount > 15)
        #expect(report.pageCount == (try Damage.byteCount(path)) / profile.pageByteCount)
        #expect(try Data(contentsOf: URL(filePath: plain)) == before)
        #expect(try names() == ["plain.db", "store.db"])
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        #expect(store.profile == profile)
        let verification = try store.verify()
        #expect(verification.damagedPages.isEmpty)
        let back = folder.path("back.db")
        let second = try store.decrypt(to: back)
        #expect(second.profile == nil && second.rowCount == report.rowCount)
        try store.close()
        #expect(try names() == ["plain.db", "store.db", "back.db"])
        #expect(try Dump.plaintext(back) == expected)
        #expect(try Dump.store(path, key: 1) == expected)
    }

    @Test func `what was copied works as before`() throws {
        try makePlain()
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        let connection = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        try OddSchema.expectAlive(connection)
        let report = try connection.rows("PRAGMA integrity_check")
        #expect(report.map { $0[0] } == ["ok"])
    }

    @Test(
        arguments: ["UTF-8", "UTF-16le", "UTF-16be"], ["NONE", "FULL", "INCREMENTAL"])
    func `encoding and auto_vacuum are copied`(encoding: String, vacuum: String) throws {
        try makePlain("PRAGMA encoding = \"\(encoding)\"; PRAGMA auto_vacuum = \(vacuum)")
        // Half of a surrogate pair: valid in no encoding.
        let raw = try RawConnection(plain)
        defer { withExtendedLifetime(raw) {} }
        raw.run("INSERT INTO bare VALUES (CAST(x'00d8' AS TEXT)), ('späße 🙂')")
        raw.run("DELETE FROM loose WHERE rowid = 7")
        let expected = try Dump.lines(raw.db)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing(.delete))
        #expect(try Dump.store(path, key: 1) == expected)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        let back = folder.path("back.db")
        try store.decrypt(to: back)
        #expect(try Dump.plaintext(back) == expected)
    }

    @Test(arguments: [512, 1024, 4096, 65536])
    func `pages of every size and a table of many rows are copied`(size: Int) throws {
        try makePlain(
            "PRAGMA page_size = \(size)",
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, v, w TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO t SELECT i * 3, zeroblob(i % 700), 'row ' || i FROM n;
            CREATE INDEX by_w ON t(w, v);
            """)
        var steps: Set<String> = []
        var isOrdered = true
        var last = (step: "", count: 0)
        let report = try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing(),
            progress: { progress in
                steps.insert("\(progress.step)")
                let step = "\(progress.step)"
                if step == last.step { isOrdered = isOrdered && progress.count >= last.count }
                isOrdered = isOrdered && progress.count <= progress.countTotal
                last = (step, progress.count)
            })
        #expect(report.rowCount == 3000 && report.tableCount == 1)
        #expect(steps == ["copyingRows", "verifyingPages", "verifyingRows"])
        #expect(isOrdered)
        #expect(try Dump.store(path, key: 1) == Dump.plaintext(plain))
    }

    @Test func `an empty database is copied`() throws {
        try makePlain("", "CREATE TABLE t(v); DROP TABLE t")
        let report = try Store.encrypt(plaintextAt: plain, to: path, key: .numbered(1))
        #expect(report.tableCount == 0 && report.rowCount == 0)
        let store = try Store(path: path, key: .numbered(1))
        #expect(try store.verify().isGood)
        try store.decrypt(to: folder.path("back.db"))
    }

    @Test func `a sequence without a table that needs it is copied`() throws {
        try makePlain(
            "",
            """
            CREATE TABLE gone(id INTEGER PRIMARY KEY AUTOINCREMENT);
            INSERT INTO gone VALUES (4);
            DROP TABLE gone;
            """)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        #expect(try Dump.store(path, key: 1) == Dump.plaintext(plain))
    }

    // MARK: The source

    @Test func `a source with a WAL that was not checkpointed is copied and stays as it is`()
        throws
    {
        let raw = try RawConnection(plain)
        raw.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
        raw.run("CREATE TABLE t(v); INSERT INTO t VALUES ('in the log only')")
        // The files as a crash leaves them: no connection is open on the copies.
        let crashed = try folder.copy(plain, as: "crashed.db")
        _ = try folder.copy(plain + "-wal", as: "crashed.db-wal")
        let before = try [crashed, crashed + "-wal"].map { try Data(contentsOf: URL(filePath: $0)) }
        try Store.encrypt(
            plaintextAt: crashed, to: path, key: .numbered(1), configuration: .testing())
        let after = try [crashed, crashed + "-wal"].map { try Data(contentsOf: URL(filePath: $0)) }
        #expect(after == before)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 1)
        // The copy runs while another connection has the source open.
        try Store.encrypt(plaintextAt: plain, to: folder.path("2.db"), key: .numbered(1))
        #expect(raw.run("INSERT INTO t VALUES ('goes on')") == SQLITE_OK)
    }

    @Test func `a source in WAL mode without a WAL is left without one`() throws {
        try makePlain("PRAGMA journal_mode = WAL")
        let before = try Data(contentsOf: URL(filePath: plain))
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        #expect(try Data(contentsOf: URL(filePath: plain)) == before)
        #expect(try names() == ["plain.db", "store.db"])
    }

    @Test func `a hot journal is rolled back before anything is copied`() throws {
        try makePlain("", "CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(50000))")
        let expected = try Dump.plaintext(plain)
        let raw = try RawConnection(plain)
        raw.run("PRAGMA cache_size = 1; PRAGMA cache_spill = 1")
        raw.run("BEGIN; UPDATE t SET v = randomblob(60000)")
        raw.run("INSERT INTO t VALUES (randomblob(90000))")
        let crashed = try folder.copy(plain, as: "crashed.db")
        _ = try folder.copy(plain + "-journal", as: "crashed.db-journal")
        raw.run("ROLLBACK")
        try Store.encrypt(
            plaintextAt: crashed, to: path, key: .numbered(1), configuration: .testing())
        #expect(try Dump.store(path, key: 1) == expected)
    }

    // MARK: What is refused

    @Test func `a file that is not a plaintext database is refused and nothing is made`() throws {
        func encrypt(_ name: String) throws {
            try Store.encrypt(
                plaintextAt: folder.path(name), to: path, key: .numbered(1),
                configuration: .testing())
        }
        try Connection(path: folder.path("store"), key: .numbered(1)).close()
        try Data().write(to: URL(filePath: folder.path("empty")))
        try Data("SQLite format 3\0 and no more".utf8).write(to: URL(filePath: folder.path("bad")))
        let text = String(repeating: "a text file. ", count: 100)
        try Data(text.utf8).write(to: URL(filePath: folder.path("text")))
        expect(.notAStore) { try encrypt("store") }
        expect(.notAStore) { try encrypt("text") }
        expect(.truncated) { try encrypt("empty") }
        expect(.damaged) { try encrypt("bad") }
        expect(.notFound) { try encrypt("missing") }
        expect(.notAStore) { try encrypt("") }
        #expect(try names() == ["store", "empty", "bad", "text"])
    }

    @Test func `an empty key, an older profile and a taken path are refused before any work`()
        throws
    {
        try makePlain()
        let before = try Data(contentsOf: URL(filePath: plain))
        expect(.misuse) {
            try Store.encrypt(plaintextAt: plain, to: path, key: .passphrase(""))
        }
        for profile in [CipherProfile.sqlcipher1, .sqlcipher2] {
            let error = expect(.misuse) {
                try Store.encrypt(
                    plaintextAt: plain, to: path, key: .numbered(1),
                    configuration: .testing(profile: profile))
            }
            #expect(error?.hint != nil)
        }
        if !isEngine4 {
            expect(.needsNewerEngine) {
                try Store.encrypt(
                    plaintextAt: plain, to: path, key: .numbered(1),
                    configuration: .testing(profile: .sqlcipher4))
            }
        }
        for taken in [plain, folder.url.path, "/dev/null"] {
            expect(.alreadyExists) {
                try Store.encrypt(plaintextAt: plain, to: taken, key: .numbered(1))
            }
        }
        expect(.notFound) {
            try Store.encrypt(plaintextAt: plain, to: folder.path("no/x.db"), key: .numbered(1))
        }
        try Data([1]).write(to: URL(filePath: path + "-wal"))
        expect(.damaged) { try Store.encrypt(plaintextAt: plain, to: path, key: .numbered(1)) }
        #expect(try Data(contentsOf: URL(filePath: plain)) == before)
        #expect(try names() == ["plain.db", "store.db-wal"])
    }

    @Test func `a store refuses to overwrite anything and to copy inside a body`() throws {
        try makePlain()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        expect(.alreadyExists) { try store.decrypt(to: plain) }
        expect(.alreadyExists) { try store.decrypt(to: path) }
        expect(.alreadyExists) { try store.backup(to: plain) }
        try store.read { _ in
            _ = expect(.misuse) { try store.decrypt(to: folder.path("a")) }
            _ = expect(.misuse) { try store.backup(to: folder.path("a")) }
        }
        expect(.misuse) { try store.backup(to: folder.path("a"), key: .passphrase("")) }
        try store.close()
        expect(.closed) { try store.decrypt(to: folder.path("a")) }
        expect(.closed) { try store.backup(to: folder.path("a")) }
        #expect(try names() == ["plain.db", "store.db"])
    }

    @Test func `what cannot be copied is named, and nothing is made`() throws {
        try makePlain("", "CREATE TABLE hidden(rowid, _rowid_, oid)")
        let error = expect(.unsupported) {
            try Store.encrypt(plaintextAt: plain, to: path, key: .numbered(1))
        }
        #expect(error?.table == "hidden")
        let raw = try RawConnection(plain)
        raw.run("DROP TABLE hidden")
        sqlite3_create_collation(raw.db, "mine", SQLITE_UTF8, nil) { _, _, _, _, _ in 0 }
        #expect(raw.run("CREATE TABLE t(v); CREATE INDEX odd ON t(v COLLATE mine)") == SQLITE_OK)
        let second = expect(.unsupported) {
            try Store.encrypt(plaintextAt: plain, to: path, key: .numbered(1))
        }
        #expect(second?.message.contains("odd") == true)
        #expect(try names() == ["plain.db"])
    }

    @Test func `a store's own verbs work off the pool`() async throws {
        try makePlain()
        try await Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        let store = try await Store(path: path, key: .numbered(1), configuration: .testing())
        try await store.decrypt(to: folder.path("back.db"))
        try await store.backup(to: folder.path("backup.db"))
        try await store.backup(to: folder.path("other.db"), key: .numbered(2))
        try await Store.upgrade(
            from: folder.path("other.db"), key: .numbered(2), to: folder.path("new.db"))
        try await store.close()
        let expected = try Dump.plaintext(plain)
        #expect(try Dump.plaintext(folder.path("back.db")) == expected)
        #expect(try Dump.store(folder.path("backup.db"), key: 1) == expected)
        #expect(try Dump.store(folder.path("new.db"), key: 2) == expected)
    }

    // MARK: Hostile and odd

    @Test func `a name that is not UTF-8 is refused, and not taken for a text`() throws {
        // SQLite reads an unknown "name" as a text: each value became the column's name once.
        for sql in ["CREATE TABLE t(caf\u{1}, b)", "CREATE TABLE t(b DEFAULT 'z\u{1}')"] {
            let raw = try RawConnection(plain)
            let bytes = sql.utf8.map { $0 == 1 ? 0xe9 : $0 } + [0]
            let code = bytes.withUnsafeBytes {
                sqlite3_exec(
                    raw.db, $0.bindMemory(to: CChar.self).baseAddress, nil, nil, nil)
            }
            #expect(code == SQLITE_OK)
            #expect(raw.run("INSERT INTO t VALUES ('precious')") == (sql.contains("caf") ? 1 : 0))
            expect(.unsupported) {
                try Store.encrypt(
                    plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
            }
            #expect(try names() == ["plain.db"])
            raw.run("DROP TABLE t")
        }
    }

    @Test func `a quote that a combining mark follows is still a quote`() throws {
        try makePlain(
            "",
            "CREATE TABLE \"t\"\"\u{301}\"(id INTEGER PRIMARY KEY, \"a\"\"\u{301} b\"); "
                + "INSERT INTO \"t\"\"\u{301}\" VALUES (1, 'kept')")
        let expected = try Dump.plaintext(plain)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        #expect(try Dump.store(path, key: 1) == expected)
    }

    @Test(arguments: [0o600, 0o640, 0o644])
    func `a copy has its source's permissions, and only its owner can read a plaintext copy`(
        permissions: Int
    ) throws {
        try makePlain()
        func set(_ path: String) throws {
            try FileManager.default.setAttributes(
                [.posixPermissions: permissions], ofItemAtPath: path)
        }
        func get(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        try set(plain)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        #expect(try get(path) == permissions)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.decrypt(to: folder.path("back.db"))
        try store.backup(to: folder.path("backup.db"))
        try store.close()
        #expect(try get(folder.path("back.db")) == 0o600)
        #expect(try get(folder.path("backup.db")) == permissions)
    }
}
