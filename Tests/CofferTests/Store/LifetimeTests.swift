import Foundation
import Testing

@testable import Coffer

/// The effect on readers, writers, waiting callers and observers when a store is paused, rekeyed or
/// closed.
@Suite(.againstHanging, .onOwnThreads) struct LifetimeTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ configuration: Configuration = .testing()) throws -> Store {
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE IF NOT EXISTS t(v)")
            try tx.execute("INSERT INTO t VALUES (0)")
        }
        return store
    }

    private static func count(_ tx: borrowing some Reading & ~Copyable) throws -> Int {
        try tx.rows("SELECT * FROM t").count
    }

    private func isClosed(_ store: Store) -> Bool {
        let read = expect(.closed) { try store.read { _ in } }
        guard store.journalMode == .wal else { return read != nil }
        let snapshot = expect(.closed) { try store.snapshot() }
        return read != nil && snapshot != nil
    }

    // MARK: Close

    @Test(arguments: journalModes)
    func `close waits for earlier work and refuses later work`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        let (writing, reading) = (Hold(), Hold())
        let write = Task {
            try await store.write { tx in
                writing.stay()
                try tx.execute("INSERT INTO t VALUES (1)")
            }
        }
        await writing.isEntered()
        let next = Task {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        }
        try await yieldWhile { store.waitingWriteCount < 1 }
        let read = Task {
            try await store.read { tx in
                if mode == .wal { reading.stay() }
                return try Self.count(tx)
            }
        }
        if mode == .wal { await reading.isEntered() }
        // Without WAL it waits in the same queue.
        try await yieldWhile { mode == .delete && store.waitingWriteCount < 2 }
        let hasClosed = Shared(false)
        let waiting = store.waitingWriteCount
        let close = onThread {
            try store.close()
            hasClosed.value = true
        }
        try await yieldWhile { store.waitingWriteCount <= waiting }
        let late = Task { try await store.write { _ in } }
        try await yieldWhile { store.waitingWriteCount <= waiting + 1 }
        writing.release()
        try await write.value
        _ = try await next.value
        #expect(mode == .delete || !hasClosed.value)
        reading.release()
        _ = try await read.value
        try await close.value
        #expect(await code(late) == .closed)
        #expect(isClosed(store))
        let again = try await Store(path: folder.path(), key: .numbered(1), mode: .mustExist)
        #expect(try await again.read { tx in try Self.count(tx) } == 3)
    }

    // MARK: Rekey

    @Test func `a close that waits in vain leaves the store open`() async throws {
        var configuration = Configuration.testing()
        configuration.waitTimeout = .milliseconds(50)
        let store = try make(configuration)
        let hold = Hold()
        let read = Task {
            try await store.read { tx in
                hold.stay()
                return try Self.count(tx)
            }
        }
        await hold.isEntered()
        let closing = Task { try await store.close() }
        #expect(await code(closing) == .busy)
        hold.release()
        #expect(try await read.value == 1)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        try await store.close()
        #expect(isClosed(store))
    }

    @Test func `a pause waits for a running write, and keeps its work`() async throws {
        let store = try make()
        let hold = Hold()
        let write = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        let pause = Task { try await store.suspend() }
        try await yieldWhile { (try? await store.read { _ in }) != nil }
        hold.release()
        try await write.value
        try await pause.value
        expect(.suspended) { try store.read { _ in } }
        try await store.resume()
        #expect(try await store.read { tx in try Self.count(tx) } == 3)
    }

    @Test func `a read begun before a rekey ends with what it saw, and rekey waits for it`()
        async throws
    {
        let store = try make()
        let hold = Hold()
        let read = Task {
            try await store.read { tx in
                let before = try Self.count(tx)
                hold.stay()
                return try before + Self.count(tx)
            }
        }
        await hold.isEntered()
        let isRekeyed = Shared(false)
        let rekey = onThread {
            try store.rekey(to: .numbered(2))
            isRekeyed.value = true
        }
        // It has the write gate once a write cannot take it.
        try await yieldWhile { canWrite(store) }
        #expect(!isRekeyed.value)
        hold.release()
        #expect(try await read.value == 2)
        try await rekey.value
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try await store.read { tx in try Self.count(tx) } == 2)
        try await store.close()
        #expect(try await Store(path: folder.path(), key: .numbered(2)).path == store.path)
    }

    @Test(arguments: [false, true])
    func `a read that comes while a rekey waits begins after it`(isSynchronous: Bool) async throws {
        let store = try make()
        let first = try await store.snapshot()
        let rekey = onThread { try store.rekey(to: .numbered(2)) }
        try await yieldWhile { canWrite(store) }
        // The snapshot has a reader's slot, which the rekey waits for: it waits in that queue too.
        try await yieldWhile { store.statistics.waitingReadCount < 1 }
        let counts = Shared([Int]())
        let body: @Sendable (inout ReadTransaction) throws -> Void = { tx in
            let count = try Self.count(tx)
            counts.update { $0.append(count) }
        }
        let reads = (0..<3).map { _ in
            isSynchronous ? onThread { try store.read(body) } : Task { try await store.read(body) }
        }
        try await yieldWhile { store.statistics.waitingReadCount < 1 + 3 }
        #expect(counts.value == [])
        #expect(try await first.read { tx in try Self.count(tx) } == 1)
        try first.close()
        try await rekey.value
        for read in reads { try await read.value }
        #expect(counts.value == [1, 1, 1])
        try await store.close()
        #expect(try await Store(path: folder.path(), key: .numbered(2)).path == store.path)
    }

    // MARK: Pause

    #if os(Linux)
    @Test(arguments: journalModes)
    func `a rekey leaves no descriptor of what it replaced`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        _ = try await store.read { tx in try Self.count(tx) }
        let before = Set(openFiles())
        for number in [2, 3] as [UInt8] {
            try await store.rekey(to: .numbered(number))
            _ = try await store.read { tx in try Self.count(tx) }
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        #expect(Set(openFiles()) == before)
        // As before: the writer, and one reader in WAL mode.
        #expect(openFiles().count { $0 == store.path } == (mode == .wal ? 2 : 1))
    }

    @Test(arguments: journalModes)
    func `a suspended store has no descriptor of the file`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        _ = try await store.read { tx in try Self.count(tx) }
        #expect(openFiles().count >= (mode == .wal ? 2 : 1))
        try await store.suspend()
        #expect(openFiles() == [])
        try await store.resume()
        #expect(try await store.read { tx in try Self.count(tx) } == 1)
    }

    /// The files that this process has open in the folder.
    private func openFiles() -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return all.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }.filter { $0.hasPrefix(folder.path()) }
    }
    #endif

    @Test func `a pause rolls back a read and a group that do not end, and reports it to each`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.waitTimeout = .milliseconds(300)
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let member = Task {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        try await yieldWhile { store.waitingWriteCount < 1 }
        let endless = Hold()
        let stuck = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (2)")
                endless.stay()
                while true { _ = try Self.count(tx) }
            }
        }
        try await yieldWhile { store.waitingWriteCount < 2 }
        hold.release()
        try await first.value
        await endless.isEntered()
        let read = Task {
            try await store.read { tx in while true { _ = try Self.count(tx) } }
        }
        try await yieldWhile { store.statistics.readerInUseCount == 0 }
        endless.release()
        try await store.suspend()
        #expect(await code(read) == .suspended)
        #expect(await code(stuck) == .suspended)
        let ending = await code(member)
        #expect(ending == .rolledBack || ending == nil)
        try await store.resume()
        let count = try await store.read { tx in try Self.count(tx) }
        #expect(count == (ending == nil ? 2 : 1))
    }

    @Test func `a stream whose reader pauses ends with the store's pause`() async throws {
        var configuration = Configuration.testing()
        configuration.waitTimeout = .milliseconds(300)
        let store = try make(configuration)
        try await store.write { tx in try tx.execute("UPDATE t SET v = zeroblob(100000)") }
        let loop = store.chunks(of: "v", in: "t", row: 1, maximumByteCount: 1000)
            .makeAsyncIterator()
        #expect(try await loop.next()?.count == 1000)
        try await store.suspend()
        let rest = Task { while try await loop.next() != nil {} }
        #expect(await code(rest) == .suspended)
        try await store.resume()
    }

    @Test func `an observer goes on after a pause that came before the fetch`() async throws {
        let store = try make()
        let hold = Hold()
        let isHeld = Shared(false)
        let values = store.observe { tx in
            if isHeld.value { hold.stay() }
            return try Self.count(tx)
        }.makeAsyncIterator()
        #expect(try await values.next() == 1)
        isHeld.value = true
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        let next = Task { try await values.next() }
        await hold.isEntered()
        isHeld.value = false
        // The running fetch is interrupted; the one after it is refused.
        let pause = Task { try await store.suspend() }
        hold.release()
        try await pause.value
        try await store.resume()
        #expect(try await next.value == 2)
        let changes = store.changes(in: "t").makeAsyncIterator()
        try await store.suspend()
        let event = Task { try await changes.next() }
        try await store.resume()
        #expect(try await event.value == .rescan(.elsewhere))
    }

    // MARK: Waiting

    @Test func `reads queue for a connection, first in, first out`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        let store = try make(configuration)
        let hold = Hold()
        let first = Task { try await store.read { _ in hold.stay() } }
        await hold.isEntered()
        let order = Shared<[Int]>([])
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<12 {
            let body: @Sendable (inout ReadTransaction) throws -> Void = { _ in
                order.update { $0.append(number) }
            }
            tasks.append(
                number % 3 == 1
                    ? onThread { try store.read(body) } : Task { try await store.read(body) })
            try await yieldWhile { store.statistics.waitingReadCount <= number }
        }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        #expect(order.value == Array(0..<12))
        #expect(store.statistics.waitingReadCount == 0)
    }

    @Test func `each of many deadlines is kept, and callers served in time do not notice`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        let store = try make(configuration)
        let hold = Hold()
        let first = Task { try await store.read { _ in hold.stay() } }
        await hold.isEntered()
        let patient = (0..<20).map { _ in
            Task { try await store.read(timeout: .seconds(3600)) { tx in try Self.count(tx) } }
        }
        try await yieldWhile { store.statistics.waitingReadCount < 20 }
        let hurried = (0..<20).map { number in
            Task {
                try await store.read(timeout: .milliseconds(20 + number)) { tx in
                    try Self.count(tx)
                }
            }
        }
        for task in hurried { #expect(await code(task) == .busy) }
        #expect(store.statistics.waitingReadCount == 20)
        hold.release()
        try await first.value
        for task in patient { #expect(try await task.value == 1) }
    }

    @Test func `a write is reported as the running one until its commit has ended`() async throws {
        let disk = try FaultDisk()
        var configuration = Configuration.testing(.delete)
        configuration.vfs = disk.name
        let store = try make(configuration)
        disk.holdMainSyncs()
        defer { disk.release() }
        let write = Task {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        try await disk.isHolding()
        #expect(store.statistics.runningWrite?.fileID.hasSuffix("LifetimeTests.swift") == true)
        disk.release()
        _ = try await write.value
        #expect(store.statistics.runningWrite == nil)
        _ = expect(.constraint) {
            try store.write { tx throws in
                _ = try tx.execute("CREATE UNIQUE INDEX u ON t(v)")
                try tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
            }
        }
        #expect(store.statistics.runningWrite == nil)
    }

    @Test func `tasks go on next to reads that keep every core busy`() throws {
        do { try make().close() }
        // In its own process, because here other tests keep the threads of tasks.
        #expect(try Peer.run(["read-endlessly", "wal", folder.path(), "1"]) == ["tasks went on"])
    }

    @Test func `a task cancelled after its admission, and before its thread, begins nothing`()
        async throws
    {
        let store = try make()
        let gate = store.core.queue.gate
        let (inside, atEnd) = (Hold(), Hold())
        let ticket = Gate.Ticket(on: .shared) {
            inside.stay()
            WorkThread.willEnd()
            gate.leave()
            // The next admitted ticket has this thread as well, when it comes to its end.
            atEnd.stay()
        } onRefusal: { _ in
        }
        gate.enter(ticket)
        await inside.isEntered()
        let isRun = Shared(false)
        let task = Task {
            try await store.write { _ in isRun.value = true }
        }
        try await yieldWhile { store.waitingWriteCount == 0 }
        inside.release()
        await atEnd.isEntered()
        task.cancel()
        atEnd.release()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!isRun.value)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
    }

    // MARK: Modes

    @Test func `each mode takes its locks at its documented moment`() throws {
        let store = try make(.testing(.delete))
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        let isFree = { (mode: TransactionMode) in
            (try? other.transaction(mode) { _ = try other.rows("SELECT * FROM t") }) != nil
        }
        let found = try TransactionMode.allModes.map { mode in
            try store.write(mode: mode) { _ in TransactionMode.allModes.map { isFree($0) } }
        }
        #expect(found == [[true, true, true], [true, false, false], [false, false, false]])
    }
}

extension TransactionMode {
    fileprivate static let allModes: [TransactionMode] = [.deferred, .immediate, .exclusive]
}
