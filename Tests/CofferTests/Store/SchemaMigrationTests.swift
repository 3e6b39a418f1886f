import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Named, ordered changes of a file, each run once.
@Suite(.againstHanging, .onOwnThreads) struct SchemaMigrationTests {
    private struct Odd: Error {}

    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(_ mode: OpenMode = .createIfMissing) throws -> Store {
        try Store(path: path, key: .numbered(1), mode: mode, configuration: .testing())
    }

    private func connection(_ mode: OpenMode = .createIfMissing) throws -> Connection {
        try Connection(path: path, key: .numbered(1), mode: mode, configuration: .testing())
    }

    /// Each migration adds a table of its name, so one that runs twice fails.
    private func migrations(_ names: String...) -> [Migration] {
        names.map { name in
            Migration(name) { tx in
                try tx.table("t \(name)").create([ColumnDefinition("a", .text)])
            }
        }
    }

    private func tables(_ store: Store) throws -> [String] {
        try store.read { tx in
            try tx.rows(
                """
                SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 't %'
                ORDER BY name
                """
            ).map { try $0.get("name") }
        }
    }

    private func recorded(_ store: Store) throws -> [String] {
        try store.read { tx in
            try tx.rows("SELECT name FROM \"coffer:migrations\" ORDER BY number")
                .map { try $0.get("name") }
        }
    }

    @Test func `a new file runs all, an older one the later ones, each once`() throws {
        let store = try open()
        #expect(try store.migrate([]) == 0)
        #expect(try store.pendingMigrations(migrations("a", "b")) == ["a", "b"])
        #expect(try tables(store).isEmpty)
        let before = Date()
        #expect(try store.migrate(migrations("a", "b")) == 2)
        #expect(try store.migrate(migrations("a", "b")) == 0)
        #expect(try store.pendingMigrations(migrations("a", "b", "c")) == ["c"])
        #expect(try store.migrate(migrations("a", "b", "c")) == 1)
        #expect(try tables(store) == ["t a", "t b", "t c"])
        #expect(try recorded(store) == ["a", "b", "c"])
        let dates: [Date] = try store.read { tx in
            try tx.rows("SELECT completed FROM \"coffer:migrations\" ORDER BY number")
                .map { try $0.get("completed") }
        }
        #expect(dates == dates.sorted() && (dates.first ?? .distantPast) >= before - 1)
    }

    @Test func `progress names each migration as it begins`() throws {
        let store = try open()
        try store.migrate(migrations("a"))
        var progress: [MigrationProgress] = []
        try store.migrate(migrations("a", "b", "c")) { progress.append($0) }
        #expect(
            progress == [
                MigrationProgress(name: "b", completedCount: 1, totalCount: 3),
                MigrationProgress(name: "c", completedCount: 2, totalCount: 3),
            ])
    }

    @Test func `a migration that throws is rolled back, and the earlier ones remain`() throws {
        let store = try open()
        let bad = Migration("bad") { tx in
            try tx.execute("DROP TABLE \"t a\"")
            throw Odd()
        }
        #expect(throws: Odd.self) {
            try store.migrate(migrations("a", "b") + [bad] + migrations("c"))
        }
        #expect(try tables(store) == ["t a", "t b"])
        #expect(try recorded(store) == ["a", "b"])
        // The corrected program continues from there.
        #expect(try store.migrate(migrations("a", "b", "bad", "c")) == 2)
        #expect(try recorded(store) == ["a", "b", "bad", "c"])
    }

    @Test func `a file of a newer program is refused, and the migration named`() throws {
        let store = try open()
        try store.migrate(migrations("a", "b", "c"))
        for known in [migrations("a", "b"), migrations("a", "b", "x"), []] {
            let error = expect(.needsNewerProgram) { try store.migrate(known) }
            #expect(error?.message.contains(known.isEmpty ? "“a”" : "“c”") == true)
            _ = expect(.needsNewerProgram) { try store.pendingMigrations(known) }
        }
        let error = expect(.needsNewerProgram) {
            try store.migrate(migrations("a", "new", "b", "c"))
        }
        #expect(error?.message.contains("“b” as number 2, but here it is number 3") == true)
        #expect(try tables(store) == ["t a", "t b", "t c"])
    }

    @Test func `empty or equal names, and the store's bodies, run nothing`() throws {
        let store = try open()
        let plan = migrations("a")
        for names in [migrations("a", "a"), migrations("")] {
            _ = expect(.misuse) { try store.migrate(names) }
        }
        _ = expect(.misuse) { try store.write { _ in try store.migrate(plan) } }
        _ = expect(.misuse) { try store.read { _ in try store.migrate(plan) } }
        #expect(try tables(store).isEmpty)
        try store.close()
        let connection = try connection()
        try connection.transaction {
            _ = expect(.misuse) { try connection.migrate(plan) }
        }
        #expect(try connection.schemaObjects().isEmpty)
    }

    @Test func `a dry run finds failures and leaves the file unchanged`() throws {
        let store = try open()
        try store.migrate(migrations("a"))
        var names: [String] = []
        let good = migrations("a", "b", "c")
        #expect(try store.migrate(good, isDryRun: true) { names.append($0.name) } == 2)
        #expect(names == ["b", "c"])
        #expect(try tables(store) == ["t a"])
        let bad = Migration("bad") { tx in try tx.execute("INSERT INTO \"t b\" VALUES (1, 2)") }
        _ = expect(.sql) { try store.migrate(good + [bad], isDryRun: true) }
        #expect(try recorded(store) == ["a"])
        // A later migration sees what an earlier one did.
        let fill = Migration("fill") { tx in try tx.execute("INSERT INTO \"t c\" VALUES (1)") }
        #expect(try store.migrate(good + [fill], isDryRun: true) == 3)
        #expect(try store.migrate(good + [fill]) == 3)
        #expect(try store.migrate(good + [fill], isDryRun: true) == 0)
    }

    @Test func `a file that is up to date is only read`() throws {
        let first = try connection()
        try first.migrate(migrations("a"))
        // Another connection's write lock does not matter.
        try first.begin(.immediate)
        let reader = try connection(.readOnly)
        #expect(try reader.migrate(migrations("a")) == 0)
        #expect(try reader.migrate(migrations("a"), isDryRun: true) == 0)
        try first.rollback()
        _ = expect(.readOnly) { try reader.migrate(migrations("a", "b")) }
    }

    @Test func `a connection runs them as well, also as a dry run`() throws {
        let connection = try connection()
        var names: [String] = []
        #expect(try connection.migrate(migrations("a", "b"), isDryRun: true) == 2)
        #expect(try connection.schemaObjects().isEmpty)
        #expect(try connection.migrate(migrations("a", "b")) { names.append($0.name) } == 2)
        #expect(names == ["a", "b"])
        #expect(try connection.rows("PRAGMA foreign_keys").map { $0[0] } == [1])
        #expect(throws: Odd.self) {
            try connection.migrate(migrations("a", "b") + [Migration("c") { _ in throw Odd() }])
        }
        #expect(try connection.rows("PRAGMA foreign_keys").map { $0[0] } == [1])
        #expect(!connection.isInTransaction)
    }

    @Test func `two connections that race run each migration once`() async throws {
        let path = path
        try connection().close()
        let runCount = Mutex(0)
        let plan = (1...20).map { number in
            Migration("m\(number)") { tx in
                try tx.execute(SQL(text: "CREATE TABLE t\(number)(a)"))
                runCount.withLock { $0 += 1 }
            }
        }
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    try Connection(path: path, key: .numbered(1), configuration: .testing())
                        .migrate(plan)
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(count == 20)
        #expect(runCount.withLock { $0 } == 20)
        let store = try open()
        #expect(try recorded(store) == plan.map(\.name))
    }

    @Test func `a store runs them without blocking, and a cancelled task runs none`() async throws {
        let store = try await Store(path: path, key: .numbered(1), configuration: .testing())
        let names = Mutex<[String]>([])
        let plan = migrations("a", "b")
        let dryCount = try await store.migrate(plan, isDryRun: true)
        #expect(dryCount == 2)
        let count = try await store.migrate(plan) { progress in
            names.withLock { $0.append(progress.name) }
        }
        #expect(count == 2)
        #expect(names.withLock { $0 } == ["a", "b"])
        let more = migrations("a", "b", "c")
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await store.migrate(more)
        }
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(try await store.pendingMigrations(more) == ["c"])
        try await store.close()
    }

    // MARK: Foreign keys

    private func makeFamily(_ store: Store) throws {
        try store.write { tx throws in
            try tx.execute("CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT)")
            try tx.execute(
                """
                CREATE TABLE child(id INTEGER PRIMARY KEY,
                parent INTEGER REFERENCES parent(id) ON DELETE CASCADE)
                """)
            try tx.execute("INSERT INTO parent VALUES (1, 'a'), (2, 'b')")
            try tx.execute("INSERT INTO child VALUES (1, 1), (2, 2)")
        }
    }

    private let rebuild = Migration("rebuild") { tx in
        try tx.execute("CREATE TABLE parent_new(id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        try tx.execute("INSERT INTO parent_new SELECT * FROM parent")
        try tx.execute("DROP TABLE parent")
        try tx.execute("ALTER TABLE parent_new RENAME TO parent")
    }

    private func childCount(_ store: Store) throws -> Value? {
        try store.read { tx in try tx.firstRow("SELECT count(*) FROM child")?[0] }
    }

    @Test(arguments: journalModes)
    func `a table that rows refer to is rebuilt, and the rows stay`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        try makeFamily(store)
        #expect(try store.migrate([rebuild], isDryRun: true) == 1)
        #expect(try store.migrate([rebuild]) == 1)
        #expect(try childCount(store) == 2)
        // Foreign keys are enforced again.
        _ = expect(.constraint) {
            try store.write { tx in try tx.execute("INSERT INTO child VALUES (3, 99)") }
        }
        try store.write { tx in _ = try tx.execute("DELETE FROM parent WHERE id = 1") }
        #expect(try childCount(store) == 1)
        try store.close()
    }

    /// The reason why migrations pause foreign keys: otherwise nobody would notice the loss.
    @Test func `in any other write a rebuild deletes the rows that refer to the table`() throws {
        let store = try open()
        try makeFamily(store)
        try store.write { tx throws in
            try tx.execute("PRAGMA defer_foreign_keys = ON")
            try rebuild.body(&tx)
        }
        #expect(try childCount(store) == 0)
    }

    @Test func `a migration that leaves a reference to nothing is rolled back`() throws {
        let store = try open()
        try makeFamily(store)
        let bad = Migration("bad") { tx in try tx.execute("DELETE FROM parent WHERE id = 2") }
        let mended = Migration("mended") { tx in
            try tx.execute("DELETE FROM parent WHERE id = 2")
            try tx.execute("DELETE FROM child WHERE parent = 2")
        }
        for isDryRun in [true, false] {
            let error = expect(.constraint) { try store.migrate([bad], isDryRun: isDryRun) }
            #expect(error?.table == "child")
            #expect(error?.message.contains("parent") == true)
        }
        #expect(try childCount(store) == 2)
        #expect(try store.pendingMigrations([mended]) == ["mended"])
        // They are enforced again after a failure, too.
        _ = expect(.constraint) {
            try store.write { tx in try tx.execute("INSERT INTO child VALUES (3, 99)") }
        }
        try store.migrate([mended])
        #expect(try childCount(store) == 1)
        try store.close()
        let connection = try connection()
        let orphan = Migration("orphan") { tx in try tx.execute("DELETE FROM parent") }
        _ = expect(.constraint) { try connection.migrate([mended, orphan]) }
    }

    /// Makes rows that refer to nothing, left by a program that did not check.
    private func makeOrphans() throws {
        let connection = try connection()
        try connection.execute("PRAGMA foreign_keys = OFF")
        try connection.execute(
            """
            CREATE TABLE toy(name TEXT PRIMARY KEY, parent INTEGER REFERENCES parent(id))
            WITHOUT ROWID
            """)
        try connection.execute("INSERT INTO child VALUES (7, 70), (8, 80)")
        try connection.execute("INSERT INTO toy VALUES ('ball', 70), ('doll', 80)")
        connection.close()
    }

    @Test func `a row that referred to nothing before stops no migration`() throws {
        let store = try open()
        try makeFamily(store)
        try makeOrphans()
        #expect(try store.migrate([rebuild], isDryRun: true) == 1)
        #expect(try store.migrate([rebuild]) == 1)
        let fewer = Migration("fewer") { tx in
            try tx.execute("DELETE FROM child WHERE id = 7")
            try tx.execute("DELETE FROM toy WHERE name = 'ball'")
        }
        #expect(try store.migrate([rebuild, fewer]) == 1)
        #expect(try childCount(store) == 3)
    }

    @Test(arguments: [
        "DELETE FROM parent WHERE id = 2", "INSERT INTO child VALUES (9, 80)",
        "INSERT INTO toy VALUES ('bear', 80)", "UPDATE child SET id = 9 WHERE id = 8",
    ])
    func `one more row that refers to nothing stops the migration`(sql: String) throws {
        let store = try open()
        try makeFamily(store)
        try makeOrphans()
        let bad = Migration("bad") { tx in
            // This holds even where another such row is deleted.
            try tx.execute("DELETE FROM child WHERE id = 7")
            try tx.execute(SQL(text: sql))
        }
        for isDryRun in [true, false] {
            let error = expect(.constraint) { try store.migrate([bad], isDryRun: isDryRun) }
            #expect(error?.table == (sql.contains("toy") ? "toy" : "child"))
        }
        #expect(try childCount(store) == 4)
    }

    @Test func `a reference to columns that are not unique can be repaired`() throws {
        let store = try open()
        try store.write { tx throws in
            try tx.execute("CREATE TABLE parent(name TEXT)")
            try tx.execute("CREATE TABLE child(parent TEXT REFERENCES parent(name))")
            try tx.execute("INSERT INTO parent VALUES ('a')")
        }
        let orphan = Migration("mend") { tx in
            try tx.execute("CREATE UNIQUE INDEX names ON parent(name)")
            try tx.execute("INSERT INTO child VALUES ('a'), ('b')")
        }
        _ = expect(.constraint) { try store.migrate([orphan]) }
        let mend = Migration("mend") { tx in
            try tx.execute("CREATE UNIQUE INDEX names ON parent(name)")
            try tx.execute("INSERT INTO child VALUES ('a')")
        }
        #expect(try store.migrate([mend]) == 1)
        #expect(try childCount(store) == 1)
    }

    @Test func `a connection that has switched foreign keys off keeps them off`() throws {
        let store = try open()
        try makeFamily(store)
        try store.close()
        let connection = try connection()
        try connection.execute("PRAGMA foreign_keys = OFF")
        try connection.migrate([Migration("a") { tx in try tx.execute("DELETE FROM parent") }])
        try connection.execute("INSERT INTO child VALUES (3, 99)")
        #expect(try connection.rows("PRAGMA foreign_keys").map { $0[0] } == [0])
    }

    @Test func `a step that rolls back is misuse and ends the migration`() throws {
        let folder = try TemporaryFolder()
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        let steps = [Migration("one") { tx in try tx.rollback() }]
        expect(.misuse) { try store.migrate(steps) }
        expect(.misuse) { try store.migrate(steps, isDryRun: true) }
        expect(.misuse) {
            try store.migrate(byUserVersion: [VersionStep(1) { tx in try tx.rollback() }])
        }
        #expect(try store.pendingMigrations(steps).count == 1)
    }

    @Test func `foreign keys are enforced again after a migration, however it ended`() throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        struct Wrong: Error {}
        func isOn() throws -> Bool {
            try connection.firstRow("PRAGMA foreign_keys")?.get(0, as: Int.self) == 1
        }
        try connection.migrate([Migration("one") { tx in try tx.execute("CREATE TABLE t(v)") }])
        #expect(try isOn())
        #expect(throws: Wrong.self) {
            try connection.migrate([
                Migration("one") { _ in }, Migration("two") { _ in throw Wrong() },
            ])
        }
        #expect(try isOn())
        try connection.execute("INSERT INTO t VALUES (1), (2)")
        let statement = try connection.prepare("SELECT v FROM t")
        try connection.migrate([
            Migration("one") { _ in },
            Migration("two") { tx in _ = try tx.rows("SELECT 1") },
        ]) { _ in _ = try? statement.step() }
        try connection.transaction { _ = try connection.rows("SELECT 1") }
        #expect(try isOn())
    }
}
