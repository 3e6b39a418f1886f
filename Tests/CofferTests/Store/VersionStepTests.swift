import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Programs that come to Coffer with a file whose schema they number themselves.
@Suite(.againstHanging, .onOwnThreads) struct VersionStepTests {
    private struct Odd: Error {}

    private struct Note: Record {
        let id: Int
        let title: String
    }

    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func connection(_ mode: OpenMode = .createIfMissing) throws -> Connection {
        try Connection(path: path, key: .numbered(1), mode: mode, configuration: .testing())
    }

    /// Each step adds a table of its number, so one that runs twice fails.
    private func steps(_ versions: Int32...) -> [VersionStep] {
        versions.map { version in
            VersionStep(version) { tx in
                try tx.table("t\(version)").create([ColumnDefinition("a", .text)])
            }
        }
    }

    private func tables(_ connection: Connection) throws -> [String] {
        try connection.schemaObjects().map(\.name)
    }

    @Test func `a new file runs every step, an older one the later ones, once`() throws {
        let connection = try connection()
        #expect(try connection.migrate(byUserVersion: []) == 0)
        #expect(try connection.migrate(byUserVersion: steps(1, 3)) == 2)
        #expect(try connection.userVersion == 3)
        #expect(try connection.migrate(byUserVersion: steps(1, 3)) == 0)
        #expect(try connection.migrate(byUserVersion: steps(1, 2, 3, 7)) == 1)
        // A version between two steps belongs to a file that has run the first.
        try connection.setUserVersion(8)
        #expect(try connection.migrate(byUserVersion: steps(1, 3, 7, 9, .max)) == 2)
        #expect(try tables(connection) == ["t1", "t2147483647", "t3", "t7", "t9"])
        #expect(try connection.userVersion == .max)
    }

    @Test
    func `a step that throws is rolled back, the earlier ones remain, and the version is true`()
        throws
    {
        let connection = try connection()
        var plan = steps(1, 2)
        plan.append(
            VersionStep(3) { tx in
                try tx.execute("DROP TABLE t1")
                try tx.execute("PRAGMA user_version = 99")
                throw Odd()
            })
        plan += steps(4)
        #expect(throws: Odd.self) { try connection.migrate(byUserVersion: plan) }
        #expect(try connection.userVersion == 2)
        #expect(try tables(connection) == ["t1", "t2"])
        #expect(!connection.isInTransaction)
        // The corrected program continues from there.
        plan[2] = VersionStep(3) { tx in try tx.insert(Note(id: 1, title: "a")) }
        #expect(try connection.migrate(byUserVersion: plan) == 2)
        #expect(try tables(connection) == ["note", "t1", "t2", "t4"])
    }

    @Test func `a file of a newer program is not changed`() throws {
        let connection = try connection()
        try connection.migrate(byUserVersion: steps(1, 5))
        for plan in [steps(1), steps(1, 4), []] {
            expect(.needsNewerProgram) { try connection.migrate(byUserVersion: plan) }
        }
        #expect(try connection.userVersion == 5)
        #expect(try tables(connection) == ["t1", "t5"])
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        expect(.needsNewerProgram) { try store.migrate(byUserVersion: steps(1)) }
        try store.close()
    }

    @Test func `steps out of order, and steps inside a transaction, run nothing`() throws {
        let connection = try connection()
        for plan in [steps(2, 1), steps(1, 1), steps(0), steps(-1, 1)] {
            expect(.misuse) { try connection.migrate(byUserVersion: plan) }
        }
        let plan = steps(1)
        try connection.transaction {
            expect(.misuse) { try connection.migrate(byUserVersion: plan) }
        }
        try connection.begin()
        expect(.misuse) { try connection.migrate(byUserVersion: plan) }
        try connection.rollback()
        #expect(try connection.userVersion == 0)
        #expect(try tables(connection).isEmpty)
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        expect(.misuse) { try store.write { _ in try store.migrate(byUserVersion: plan) } }
        expect(.misuse) { try store.read { _ in try store.migrate(byUserVersion: plan) } }
        try store.close()
    }

    @Test func `a file that is up to date is only read`() throws {
        let first = try connection()
        try first.migrate(byUserVersion: steps(1))
        // Another connection's write lock does not matter.
        try first.begin(.immediate)
        let reader = try connection(.readOnly)
        #expect(try reader.migrate(byUserVersion: steps(1)) == 0)
        try first.rollback()
        expect(.readOnly) { try reader.migrate(byUserVersion: steps(1, 2)) }
        #expect(try first.userVersion == 1)
    }

    @Test func `two connections that race run each step once`() async throws {
        let path = path
        try connection().close()
        let runCount = Mutex(0)
        let plan = (1...20).map { (version: Int32) in
            VersionStep(version) { tx in
                try tx.execute(SQL(text: "CREATE TABLE t\(version)(a)"))
                runCount.withLock { $0 += 1 }
            }
        }
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    try Connection(path: path, key: .numbered(1), configuration: .testing())
                        .migrate(byUserVersion: plan)
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(counts == 20)
        #expect(runCount.withLock { $0 } == 20)
        #expect(try connection().userVersion == 20)
    }

    @Test(arguments: journalModes)
    func `a store runs steps as well`(mode: Configuration.JournalMode) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        #expect(try store.migrate(byUserVersion: steps(1, 2)) == 2)
        #expect(try store.migrate(byUserVersion: steps(1, 2)) == 0)
        let plan = steps(1, 2, 3) + [VersionStep(4) { _ in throw Odd() }]
        #expect(throws: Odd.self) { try store.migrate(byUserVersion: plan) }
        #expect(try store.read { tx in try tx.scalar("PRAGMA user_version") } == 3)
        try store.close()
    }

    @Test func `a store runs steps without blocking, and a cancelled task runs none`() async throws
    {
        let store = try await Store(path: path, key: .numbered(1), configuration: .testing())
        #expect(try await store.migrate(byUserVersion: steps(1, 2)) == 2)
        let plan = steps(1, 2, 3)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await store.migrate(byUserVersion: plan)
        }
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(try await store.read { tx in try tx.scalar("PRAGMA user_version") } == 2)
        try await store.close()
    }

    @Test func `a handle owned by someone else is migrated, outside its transactions`() throws {
        let host = try RawConnection(path, key: 1)
        host.run("CREATE TABLE old(a)")
        host.run("PRAGMA user_version = 4")
        let connection = try Connection(adopting: host.db)
        let plan = steps(4, 5)
        host.run("BEGIN")
        expect(.misuse) { try connection.migrate(byUserVersion: plan) }
        host.run("ROLLBACK")
        #expect(try connection.migrate(byUserVersion: plan) == 1)
        #expect(host.first("PRAGMA user_version") == "5")
        #expect(try tables(connection) == ["old", "t5"])
    }
}
