import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Rows that the update hook and the verbs report, and the statements for which a table gets
/// triggers.
@Suite(.againstHanging, .onOwnThreads) struct ReportedChangesTests {
    private struct Device: Record {
        var id: UUID
        var name: String
    }

    private struct Failure: Error {}

    /// What a loop over tables is told of one write.
    private func told(
        _ fixture: ObservationFixture, _ tables: [String],
        _ body: (inout WriteTransaction) throws -> Void
    ) async throws -> [String] {
        let loop = ObservedChanges(
            core: fixture.store.core, tables: tables, maximumWaitingRowCount: 100_000
        ).makeAsyncIterator()
        try fixture.write(body)
        return try await loop.rows()
    }

    // MARK: Verbs that report keys

    @Test func `entries of a bucket are reported without triggers`() async throws {
        let fixture = try ObservationFixture()
        let names = Bucket<String, Int>("names")
        try fixture.write { tx in try tx.set(0, for: "old", in: names) }
        let loop = fixture.store.changes(in: names).makeAsyncIterator()
        try fixture.write { tx in
            try tx.set(1, for: "new", in: names)
            try tx.set(2, for: "old", in: names)
            try tx.set(3, for: "gone", in: names)
            try tx.remove("gone", in: names)
        }
        #expect(
            try await loop.rows() == ["insert \(names.table) new", "update \(names.table) old"])
        try fixture.write { tx in try tx.remove("old", in: names) }
        #expect(try await loop.rows() == ["delete \(names.table) old"])
        #expect(try fixture.triggers() == [])
    }

    @Test func `records of any key are reported without triggers`() async throws {
        let fixture = try ObservationFixture()
        let kept = Device(id: UUID(), name: "kept")
        let old = Device(id: UUID(), name: "old")
        try fixture.write { tx in try tx.insert([kept, old]) }
        let loop = fixture.store.changes(in: Device.self).makeAsyncIterator()
        let new = Device(id: UUID(), name: "new")
        let short = Device(id: UUID(), name: "short")
        try fixture.write { tx in
            try tx.insert(new)
            try tx.update(Device(id: kept.id, name: "renamed"))
            try tx.insert(short)
            #expect(try tx.delete(short))
            #expect(try tx.delete(Device.self, key: old.id))
        }
        guard case .commit(let rows)? = try await loop.next() else {
            Issue.record("no commit was reported")
            return
        }
        let changes = try rows.map { "\($0.kind.rawValue) \(try $0.key(as: UUID.self))" }
        #expect(
            Set(changes) == ["insert \(new.id)", "update \(kept.id)", "delete \(old.id)"])
        #expect(changes.count == 3)
        #expect(try fixture.triggers() == [])
    }

    @Test func `a key is reported as the table has it`() async throws {
        let fixture = try ObservationFixture()
        struct Word: Record {
            static let table = "word"
            static var key: [String] { ["text"] }
            var text: String
            var count: Int
        }
        try fixture.run(
            """
            CREATE TABLE word(
                text TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, count INTEGER NOT NULL)
            """,
            "INSERT INTO word VALUES ('Word', 1)")
        let told = try await told(fixture, ["word"]) { tx in
            try tx.delete(Word(text: "wORD", count: 1))
        }
        #expect(told == ["delete word Word"])
    }

    // MARK: Statements that need triggers

    private static let statements: [(String, [String])] = [
        ("REPLACE INTO t(id, u) VALUES (9, 'b')", ["insert t 9", "delete t 2"]),
        ("UPDATE OR REPLACE t SET u = 'a' WHERE id = 2", ["update t 2", "delete t 1"]),
        ("REPLACE INTO log(rowid, m) VALUES (1, 'two')", ["update log 1"]),
        ("UPDATE t SET id = 7 WHERE id = 1", ["delete t 1", "insert t 7"]),
        ("UPDATE t SET rowid = 7 WHERE id = 1", ["delete t 1", "insert t 7"]),
        ("DELETE FROM log", ["delete log 1"]),
        ("DELETE FROM w WHERE k = 'k'", ["delete w k"]),
        ("INSERT INTO w(k) VALUES ('l')", ["insert w l"]),
        ("UPDATE w SET k = 'm'", ["delete w k", "insert w m"]),
        ("INSERT OR FAIL INTO t(id, u) VALUES (5, 'n'), (6, 'a')", ["insert t 5"]),
    ]

    @Test(arguments: statements.indices)
    func `rows of which no report tells are recorded by triggers`(index: Int) async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "INSERT INTO t(id, u) VALUES (1, 'a'), (2, 'b')", "INSERT INTO w(k) VALUES ('k')",
            "INSERT INTO log VALUES ('one')")
        let (sql, expected) = Self.statements[index]
        let loop = fixture.store.changes(in: "t", "w", "log").makeAsyncIterator()
        try fixture.write { tx in
            // The first rows are those of reports.
            try tx.execute("INSERT INTO t(id, u) VALUES (100, 'z')")
            try tx.execute("UPDATE t SET v = 1 WHERE id = 100")
            _ = try? tx.execute(SQL(text: sql))
        }
        #expect(try await Set(loop.rows()) == Set(expected + ["insert t 100"]))
        #expect(try fixture.triggers().count == 1)
        // The triggers record what comes later.
        try fixture.run("DELETE FROM t WHERE id = 100")
        #expect(try await loop.rows() == ["delete t 100"])
    }

    @Test func `a constraint that replaces rows is recorded by triggers`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE r(id INTEGER PRIMARY KEY ON CONFLICT REPLACE, v)",
            "INSERT INTO r VALUES (1, 1)")
        let told = try await told(fixture, ["r"]) { tx in
            try tx.execute("INSERT INTO r VALUES (1, 2)")
        }
        #expect(told == ["update r 1"])
    }

    @Test func `a trigger of the file that replaces rows needs triggers too`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE r(id INTEGER PRIMARY KEY, v UNIQUE)", "INSERT INTO r VALUES (1, 1)",
            """
            CREATE TRIGGER replacing AFTER INSERT ON log BEGIN
                INSERT OR REPLACE INTO r VALUES (2, 1);
            END
            """)
        let told = try await told(fixture, ["r"]) { tx in
            try tx.execute("INSERT INTO log VALUES ('x')")
        }
        #expect(Set(told) == ["delete r 1", "insert r 2"])
    }

    @Test func `a key that a foreign key changes is recorded by triggers`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE kid(id INTEGER PRIMARY KEY REFERENCES t(id) ON UPDATE CASCADE, v)",
            "INSERT INTO t(id) VALUES (1)", "INSERT INTO kid VALUES (1, 1)")
        let told = try await told(fixture, ["kid"]) { tx in
            try tx.execute("UPDATE t SET id = 7")
        }
        #expect(Set(told) == ["delete kid 1", "insert kid 7"])
    }

    // MARK: Undone changes

    @Test func `triggers that an undone savepoint has made are made again`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO t(id, u) VALUES (1, 'a'), (2, 'b')")
        let told = try await told(fixture, ["t"]) { tx in
            try? tx.savepoint { part in
                try part.execute("REPLACE INTO t(id, u) VALUES (3, 'a')")
                throw Undo()
            }
            try tx.execute("INSERT INTO t(id, u) VALUES (4, 'd')")
            try tx.execute("REPLACE INTO t(id, u) VALUES (5, 'b')")
        }
        #expect(Set(told) == ["insert t 4", "insert t 5", "delete t 2"])
    }

    @Test func `a statement that fails half-way reports nothing`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO t(id, u) VALUES (5, 'a')")
        let told = try await told(fixture, ["t"]) { tx in
            try tx.execute("INSERT INTO t(id) VALUES (1)")
            #expect(throws: StoreError.self) {
                try tx.execute("INSERT INTO t(id, u) VALUES (2, 'c'), (3, 'd'), (4, 'a')")
            }
        }
        #expect(told == ["insert t 1"])
        #expect(try fixture.triggers() == [])
    }

    @Test func `a function that fails half-way leads to a rescan, never to silence`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO t(id, v) VALUES (1, 1), (2, 2), (3, -9223372036854775808)")
        let told = try await told(fixture, ["t"]) { tx in
            // The absolute value of the last row is no integer: SQLite fails at it.
            #expect(throws: StoreError.self) { try tx.execute("UPDATE t SET u = abs(v)") }
        }
        #expect(told == ["rescan unknown"])
    }

    @Test func `a function that fails as a constraint does leads to a rescan as well`()
        async throws
    {
        let fixture = try ObservationFixture()
        try await fixture.store.prepareConnections { connection in
            try connection.register(function: "refuse", argumentCount: 1) {
                let value = try $0.get(0, as: Int64.self)
                if value == 3 { throw FunctionError("no", resultCode: 19) }
                return .integer(value)
            }
        }
        try fixture.run("INSERT INTO t(id) VALUES (1), (2), (3)")
        let told = try await told(fixture, ["t"]) { tx in
            #expect(throws: StoreError.self) { try tx.execute("UPDATE t SET v = refuse(id)") }
            try tx.execute("INSERT INTO other VALUES (1)")
        }
        #expect(told == ["rescan unknown"])
    }

    @Test func `rows that the FAIL of another table leaves are reported`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE once(x UNIQUE ON CONFLICT FAIL)",
            """
            CREATE TRIGGER noting AFTER INSERT ON t BEGIN INSERT INTO once VALUES (new.v); END
            """,
            "INSERT INTO t(id, v) VALUES (1, 'x')")
        let told = try await told(fixture, ["t"]) { tx in
            #expect(throws: StoreError.self) {
                try tx.execute("INSERT INTO t(id, v) VALUES (2, 'y'), (3, 'x')")
            }
        }
        #expect(told == ["insert t 2", "insert t 3"])
    }

    private struct Row: Record {
        static let table = "t"
        var id: Int64
        var v: String?
        var u: String?
    }

    @Test func `a cascade after a migration without cascades is reported`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE book(k TEXT NOT NULL PRIMARY KEY, t REFERENCES t(id) ON DELETE CASCADE)",
            "INSERT INTO t(id) VALUES (1), (2)", "INSERT INTO book VALUES ('b', 2)")
        let first = Migration("first") { _ in }
        try await fixture.store.migrate([first])
        let loop = fixture.store.changes(in: "book").makeAsyncIterator()
        // The statement has no cascade here, and the schema stays the same.
        let second = Migration("second") { tx in try tx.delete(Row.self, key: 1) }
        try await fixture.store.migrate([first, second])
        try fixture.write { tx in try tx.delete(Row.self, key: 2) }
        #expect(try await loop.rows() == ["delete book b"])
    }

    @Test func `the table of a virtual table is recorded by triggers`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE VIRTUAL TABLE words USING fts4(text)", "INSERT INTO words VALUES ('one')")
        let told = try await told(fixture, ["words_content"]) { tx in
            try tx.execute("DELETE FROM words WHERE docid = 1")
        }
        // SQLCipher 4 makes no triggers on such a table, because it is defensive.
        #expect([["delete words_content 1"], ["rescan unknown"]].contains(told))
    }

    @Test func `the write of another body that fails is not reported`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        let store = fixture.store
        let failures = await withTaskGroup(of: Bool.self) { group in
            for id in 1...3 {
                group.addTask {
                    do {
                        try await store.write { tx in
                            try tx.execute("INSERT INTO t(id) VALUES (\(id))")
                            if id == 2 { throw Failure() }
                        }
                        return false
                    } catch {
                        return true
                    }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(failures == 1)
        try fixture.run("INSERT INTO t(id) VALUES (4)")
        var told: [String] = []
        while !told.contains("insert t 4") { told += try await loop.rows() }
        #expect(told.sorted() == ["insert t 1", "insert t 3", "insert t 4"])
    }

    @Test func `rows beyond the most of one commit are a rescan, unless they are undone`()
        async throws
    {
        let fixture = try ObservationFixture()
        let fill = """
            WITH n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
            INSERT INTO t(id) SELECT i FROM n
            """
        let undone = try await told(fixture, ["t"]) { tx in
            try tx.execute("INSERT INTO t(id) VALUES (20000)")
            try? tx.savepoint { part in
                try part.execute(SQL(text: fill))
                throw Undo()
            }
        }
        #expect(undone == ["insert t 20000"])
        let filled = try await told(fixture, ["t"]) { tx in try tx.execute(SQL(text: fill)) }
        #expect(filled == ["rescan tooManyRows"])
        #expect(try fixture.triggers() == [])
    }

    // MARK: Observers by table

    @Test func `a commit wakes the observers of its tables, and those that may read any`() {
        final class Observer {}
        let (first, second, any) = (Observer(), Observer(), Observer())
        var index = ObserverIndex<Observer>()
        index.add(first, tables: TableSet(["a", "b"]))
        index.add(second, tables: TableSet(["b"]))
        index.add(any, tables: .everything)
        func concerned(_ tables: TableSet) -> Set<ObjectIdentifier> {
            Set(index.concerned(by: tables).map { ObjectIdentifier($0) })
        }
        func ids(_ observers: Observer...) -> Set<ObjectIdentifier> {
            Set(observers.map { ObjectIdentifier($0) })
        }
        #expect(concerned(TableSet(["a"])) == ids(first, any))
        #expect(concerned(TableSet(["b", "c"])) == ids(first, second, any))
        #expect(concerned(TableSet(["c"])) == ids(any))
        #expect(concerned(.everything) == ids(first, second, any))
        #expect(concerned(TableSet()) == ids())
        #expect(index.tables == Set(["a", "b"].map { SQLText($0) }))
        index.move(any, to: TableSet(["c"]))
        index.remove(ObjectIdentifier(first))
        #expect(concerned(TableSet(["a"])) == ids())
        #expect(concerned(TableSet(["b", "c"])) == ids(second, any))
        index.move(first, to: .everything)
        #expect(index.count == 2 && index.tables == Set(["b", "c"].map { SQLText($0) }))
    }

    @Test func `a fetch that reads another table than before is woken by it`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO log VALUES ('t')", "INSERT INTO t(id) VALUES (1)")
        let counts = fixture.store.observe { tx -> String in
            let name = try tx.firstRow("SELECT m FROM log")?.read("m", as: String.self) ?? ""
            let row = try tx.firstRow(SQL(text: "SELECT count(*) AS n FROM \(name)"))
            return "\(name) \(try row?.read("n", as: Int.self) ?? 0)"
        }.makeAsyncIterator()
        #expect(try await counts.next() == "t 1")
        try fixture.run("UPDATE log SET m = 'other'")
        #expect(try await counts.next() == "other 0")
        try fixture.run("INSERT INTO other VALUES (1)")
        #expect(try await counts.next() == "other 1")
    }

    @Test func `a commit during a fetch that reads another table than before is not missed`()
        async throws
    {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO log VALUES ('t')")
        let isWritten = Atomic(false)
        let counts = fixture.store.observe { [store = fixture.store] tx -> String in
            let name = try tx.firstRow("SELECT m FROM log")?.read("m", as: String.self) ?? ""
            if name == "child", !isWritten.exchange(true, ordering: .relaxed) {
                // The snapshot of the fetch is older than this commit.
                let written = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    _ = try? store.write { tx in try tx.execute("INSERT INTO child(v) VALUES (1)") }
                    written.signal()
                }
                written.wait()
            }
            let row = try tx.firstRow(SQL(text: "SELECT count(*) AS n FROM \(name)"))
            return "\(name) \(try row?.read("n", as: Int.self) ?? 0)"
        }.makeAsyncIterator()
        #expect(try await counts.next() == "t 0")
        try fixture.run("UPDATE log SET m = 'child'")
        #expect(try await counts.next() == "child 0")
        #expect(try await counts.next() == "child 1")
    }
}
