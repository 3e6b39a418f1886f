import Foundation
import Testing

@testable import Coffer

/// A caller that would wait for a body that waits for it gets an error instead, whatever it waits
/// for.
@Suite(.againstHanging, .onOwnThreads) struct DeadlockTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(
        _ configuration: Configuration = .testing(), name: String = "a.db"
    ) throws -> Store {
        let store = try Store(
            path: folder.path(name), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        return store
    }

    private func makeOther() throws -> Store { try make(name: "b.db") }

    private static func count(_ tx: borrowing some Reading & ~Copyable) throws -> Int {
        try tx.rows("SELECT * FROM t").count
    }

    /// The body waits for the test, and then for the other store.
    private static func stay(_ hold: Hold, thenInsertInto store: Store) throws {
        hold.stay()
        try store.write { tx in _ = try tx.execute("INSERT INTO t VALUES (1)") }
    }

    /// Expects that one of the tasks got `.wouldDeadlock` and the others went on.
    private func expectOneTold(
        _ tasks: Task<Void, any Error>..., sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        var codes: [StoreError.Code?] = []
        for task in tasks { codes.append(await code(task)) }
        #expect(codes.count { $0 == .wouldDeadlock } == 1, sourceLocation: sourceLocation)
        #expect(codes.count { $0 == nil } == tasks.count - 1, sourceLocation: sourceLocation)
    }

    @Test func `bodies of tasks that wait for each other's stores get an error instead`()
        async throws
    {
        let (a, b) = (try make(), try makeOther())
        let (inA, inB) = (Hold(), Hold())
        let one = Task {
            try await a.write { _ in try Self.stay(inA, thenInsertInto: b) }
        }
        let other = Task {
            try await b.read { _ in try Self.stay(inB, thenInsertInto: a) }
        }
        let third = Task {
            try await b.write { _ in try Self.stay(inB, thenInsertInto: a) }
        }
        await inA.isEntered()
        await inB.isEntered()
        await inB.isEntered()
        for hold in [inA, inB, inB] { hold.release() }
        await expectOneTold(one, other, third)
    }

    @Test(arguments: [false, true])
    func `stores whose reads wait for each other get an error instead`(
        isSnapshot: Bool
    ) async throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        let a = try make(configuration)
        let b = try makeOther()
        let (inA, inB) = (Hold(), Hold())
        let one = onThread {
            try a.read { _ in try Self.stay(inA, thenInsertInto: b) }
        }
        let other = onThread {
            try b.write { _ in
                inB.stay()
                if isSnapshot { return try a.snapshot().close() }
                _ = try a.read { tx in try Self.count(tx) }
            }
        }
        await inA.isEntered()
        await inB.isEntered()
        inA.release()
        inB.release()
        await expectOneTold(one, other)
    }

    /// Verbs that wait until nobody else uses the store.
    enum Change: CaseIterable {
        case close, suspend, rekey, reopen

        func callAsFunction(_ store: Store) throws {
            switch self {
            case .close: try store.close()
            case .suspend: try store.suspend()
            case .rekey: try store.rekey(to: .numbered(2))
            case .reopen: try store.reopen(with: .numbered(1))
            }
        }
    }

    @Test(arguments: Change.allCases, [false, true])
    func `a close, suspend, rekey or reopen that would wait for its own body gets an error`(
        change: Change, isRead: Bool
    ) async throws {
        let (a, b) = (try make(), try makeOther())
        let (inA, inB) = (Hold(), Hold())
        let one = onThread {
            let body = { try Self.stay(inA, thenInsertInto: b) }
            if isRead { try a.read { _ in try body() } } else { try a.write { _ in try body() } }
        }
        let other = onThread {
            try b.write { _ in
                inB.stay()
                try change(a)
            }
        }
        await inA.isEntered()
        await inB.isEntered()
        inA.release()
        inB.release()
        await expectOneTold(one, other)
        if change == .suspend { try await a.resume() }
        if change != .close { _ = try await a.read { tx in try Self.count(tx) } }
    }

    /// A read of `a` that stays in `hold` and then writes to `b`, and a rekey that waits for it.
    private func rekeyBehindReader(
        of a: Store, into b: Store, _ hold: Hold
    ) async throws -> (reader: Task<Void, any Error>, rekey: Task<Void, any Error>) {
        let reader = onThread {
            try a.read { _ in try Self.stay(hold, thenInsertInto: b) }
        }
        await hold.isEntered()
        let rekey = onThread { try a.rekey(to: .numbered(2)) }
        try await yieldWhile { a.statistics.waitingReadCount == 0 }
        return (reader, rekey)
    }

    @Test(arguments: Change.allCases)
    func `one that would wait for another one, which waits for its body, gets an error`(
        change: Change
    ) async throws {
        let (a, b) = (try make(), try makeOther())
        let (inA, inB) = (Hold(), Hold())
        // The rekey is in no body, so it could wait if it were the only one.
        let (reader, rekey) = try await rekeyBehindReader(of: a, into: b, inA)
        let nested = onThread {
            try b.write { _ in
                inB.stay()
                try change(a)
            }
        }
        await inB.isEntered()
        inA.release()
        inB.release()
        var codes = [await code(reader), await code(rekey)]
        #expect(codes.count { $0 == .wouldDeadlock } <= 1)
        codes.append(await code(nested))
        #expect(codes.count { $0 == .wouldDeadlock } == 1)
        #expect(!codes.contains(.busy))
    }

    @Test(arguments: [false, true])
    func `a caller that waits for a rekey, which waits for the caller's body, gets an error`(
        isRead: Bool
    ) async throws {
        let (a, b) = (try make(), try makeOther())
        let (inA, inB) = (Hold(), Hold())
        let (reader, rekey) = try await rekeyBehindReader(of: a, into: b, inA)
        let nested = onThread {
            try b.write { _ in
                inB.stay()
                if isRead { return try a.read { _ in } }
                try a.write { _ in }
            }
        }
        await inB.isEntered()
        inA.release()
        inB.release()
        await expectOneTold(reader, rekey, nested)
    }

    @Test func `a pause that would wait indefinitely is not announced to anybody else`()
        async throws
    {
        let (a, b) = (try make(), try makeOther())
        let (inA, first, inB) = (Hold(), Hold(), Hold())
        let reader = onThread {
            try a.read { _ in try Self.stay(inA, thenInsertInto: b) }
        }
        await inA.isEntered()
        let writer = Task { try await a.write { _ in first.stay() } }
        await first.isEntered()
        let next = Task { try await a.write { tx in try tx.execute("INSERT INTO t VALUES (2)") } }
        try await yieldWhile { a.waitingWriteCount == 0 }
        let nested = onThread {
            try b.write { _ in
                inB.stay()
                // The reader already waits.
                try waitUntil { b.waitingWriteCount > 0 }
                try a.suspend()
            }
        }
        await inB.isEntered()
        inA.release()
        inB.release()
        #expect(await code(nested) == .wouldDeadlock)
        first.release()
        try await writer.value
        #expect(try await next.value == 1)
        try await reader.value
    }

    @Test func `a rekey in another store's body waits for a read that ends by itself`()
        async throws
    {
        let (a, b) = (try make(), try makeOther())
        let inA = Hold()
        let read = onThread { try a.read { _ in inA.stay() } }
        await inA.isEntered()
        let nested = onThread { _ = try b.write { _ in try a.rekey(to: .numbered(2)) } }
        try await yieldWhile { canWrite(a) }
        inA.release()
        try await read.value
        try await nested.value
    }

    @Test(arguments: [false, true])
    func `snapshots whose reads wait for each other's stores get an error instead`(
        isClose: Bool
    ) async throws {
        let (a, b) = (try make(), try makeOther())
        let snapshot = try await a.snapshot()
        let (inA, inB) = (Hold(), Hold())
        let one = onThread {
            try snapshot.read { _ in try Self.stay(inA, thenInsertInto: b) }
        }
        let other = onThread {
            try b.write { _ in
                inB.stay()
                if isClose { return try snapshot.close() }
                _ = try snapshot.read { tx in try Self.count(tx) }
            }
        }
        await inA.isEntered()
        await inB.isEntered()
        inA.release()
        inB.release()
        await expectOneTold(one, other)
    }
}
