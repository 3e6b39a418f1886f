import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Writes that wait together and share one commit.
@Suite(.againstHanging, .onOwnThreads) struct GroupCommitTests: GroupCommitSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: journalModes)
    func `writes that wait together share a commit, in their order`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let outcome = try await run(
            store, isSynchronous: { $0 % 3 == 1 }, (0..<20).map(Self.insert))
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(try values(store) == Array(0..<20))
        #expect(outcome.commitCount <= 2, "the first may commit before it is asked for the count")
        #expect(store.statistics.writes.maximumGroupWriteCount == 20)
        // The table, the write that they waited for, and they.
        #expect(store.statistics.writes.groupCountMean == 22.0 / 3)
    }

    @Test(arguments: [false, true])
    func `a body that throws undoes only its own work`(isSynchronous: Bool) async throws {
        let store = try make()
        let bodies = [
            Self.fail(0), Self.insert(1), Self.fail(2), Self.insert(3), Self.fail(4),
        ]
        let outcome = try await run(store, isSynchronous: { _ in isSynchronous }, bodies)
        for (index, result) in outcome.results.enumerated() {
            guard case .failure(let error) = result else {
                #expect(index % 2 == 1)
                continue
            }
            #expect(error is Undo && index % 2 == 0)
        }
        #expect(try values(store) == [1, 3])
        #expect(store.statistics.writes.undoneCount == 3)
    }

    @Test func `a foreign key that is left open undoes that body alone`() async throws {
        let store = try make()
        try await store.write { tx in
            try tx.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
            try tx.execute("CREATE TABLE c(p REFERENCES p)")
        }
        let isAtOnce = Mutex(false)
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { tx in
                    try tx.execute("PRAGMA defer_foreign_keys = ON")
                    try tx.execute("INSERT INTO t VALUES (2)")
                    try tx.execute("INSERT INTO c VALUES (42)")
                },
                { tx in
                    try tx.execute("PRAGMA defer_foreign_keys = ON")
                    try tx.execute("INSERT INTO c VALUES (7)")
                    try tx.execute("INSERT INTO p VALUES (7)")
                },
                { tx in
                    // The wish of those before does not hold here.
                    do { try tx.execute("INSERT INTO c VALUES (43)") } catch {
                        isAtOnce.withLock { $0 = true }
                    }
                    try tx.execute("INSERT INTO t VALUES (4)")
                },
            ])
        #expect(outcome.codes == [nil, .constraint, nil, nil])
        #expect(isAtOnce.withLock { $0 })
        #expect(try values(store) == [1, 4])
        let count = try await store.read { tx in try tx.rows("SELECT * FROM c").count }
        #expect(count == 1)
    }

    @Test func `without group commit each write has a commit of its own`() async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .off
        let store = try make(configuration)
        let before = store.statistics.writes.commitCount
        let outcome = try await run(store, (0..<8).map(Self.insert))
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(store.statistics.writes.maximumGroupWriteCount == 1)
        #expect(store.statistics.writes.commitCount - before == 9, "with the one they wait for")
    }

    @Test(arguments: [1, 4])
    func `a group takes as many bodies as it may`(maximumCount: Int) async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .init(
            maximumWriteCount: maximumCount, maximumDuration: .seconds(60))
        let store = try make(configuration)
        _ = try await run(store, (0..<8).map(Self.insert))
        #expect(store.statistics.writes.maximumGroupWriteCount == maximumCount)
        #expect(try values(store) == Array(0..<8))
    }

    @Test func `a group takes no further body after its time`() async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .init(maximumWriteCount: 100, maximumDuration: .milliseconds(1))
        let store = try make(configuration)
        let outcome = try await run(
            store,
            (0..<6).map { number in
                { tx in
                    try tx.execute("INSERT INTO t VALUES (\(number))")
                    usleep(2000)
                }
            })
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(store.statistics.writes.maximumGroupWriteCount == 1)
        #expect(try values(store) == Array(0..<6))
    }

    @Test func `who does not share has its turn between those who do, and each runs once`()
        async throws
    {
        let store = try make()
        let order = Shared<[Int]>([])
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let tasks = (0..<9).map { number in
            Task {
                try await yieldWhile { store.waitingWriteCount != number }
                try await store.write(mode: number == 4 ? .exclusive : .immediate) { tx in
                    order.update { $0.append(number) }
                    try tx.execute("INSERT INTO t VALUES (\(number))")
                }
            }
        }
        try await yieldWhile { store.waitingWriteCount < 9 }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        #expect(order.value == Array(0..<9))
        #expect(store.statistics.writes.maximumGroupWriteCount == 4)
    }
}
