import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Tasks that are cancelled while their write shares a commit.
@Suite(.againstHanging, .onOwnThreads) struct GroupCancellationTests: GroupCommitSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `a task cancelled as the first of its group takes nobody with it`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        let next = Task { try await store.write(Self.insert(3)) }
        try await yieldWhile { store.waitingWriteCount < 1 }
        first.cancel()
        hold.release()
        let result = await first.result
        try await next.value
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(try values(store) == [3])
    }

    @Test func `a task cancelled in a group is undone alone`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let inner = Hold()
        let before = Task { try await store.write(Self.insert(1)) }
        try await yieldWhile { store.waitingWriteCount < 1 }
        let cancelled = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (2)")
                inner.stay()
                try tx.execute("INSERT INTO t VALUES (3)")
            }
        }
        try await yieldWhile { store.waitingWriteCount < 2 }
        let after = Task { try await store.write(Self.insert(4)) }
        try await yieldWhile { store.waitingWriteCount < 3 }
        hold.release()
        try await first.value
        await inner.isEntered()
        cancelled.cancel()
        inner.release()
        let result = await cancelled.result
        try await before.value
        try await after.value
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(try values(store) == [1, 4])
    }

    @Test func `a task cancelled in a group during a statement is undone alone, in its commit`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let before = Task { try await store.write(Self.insert(4)) }
        try await yieldWhile { store.waitingWriteCount < 1 }
        let inner = Hold()
        let cancelled = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (5)")
                inner.stay()
                _ = try tx.rows(
                    """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
                        WHERE i < 50000) SELECT count(*) FROM n
                    """)
                try tx.execute("INSERT INTO t VALUES (6)")
            }
        }
        try await yieldWhile { store.waitingWriteCount < 2 }
        let after = Task { try await store.write(Self.insert(7)) }
        try await yieldWhile { store.waitingWriteCount < 3 }
        let count = store.statistics.writes.commitCount
        hold.release()
        try await first.value
        await inner.isEntered()
        cancelled.cancel()
        inner.release()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await before.value
        try await after.value
        #expect(try values(store) == [4, 7])
        // That of the first, and one for the three.
        #expect(store.statistics.writes.commitCount == count + 2)
    }
}
