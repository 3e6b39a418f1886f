import Foundation
import Testing

@testable import Coffer

/// Which stores of a pool are open: the places, parking, and the end.
@Suite(.againstHanging, .onOwnThreads) struct StorePoolParkingTests: StorePoolSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Begins a use that lasts until the test lets it go.
    private func hold(_ pool: StorePool, _ name: String, _ hold: Hold) -> Task<Void, any Error> {
        let path = folder.path(name)
        return onThread {
            try pool.withStore(at: path) { store in
                hold.stay()
                try store.write { tx in _ = try tx.execute("INSERT INTO t VALUES (7)") }
            }
        }
    }

    private func use(_ pool: StorePool, _ name: String) async throws {
        try await pool.insert(1, at: folder.path(name))
    }

    /// Opens a store whose opening may take longer than a use waits.
    private func openPatiently(_ pool: StorePool, _ name: String) async throws {
        try await yieldWhile {
            do {
                try await use(pool, name)
                return false
            } catch {
                return true
            }
        }
    }

    @Test func `a store in use is not parked for another one, which waits`() async throws {
        let pool = try makePool(configuration(1))
        try await use(pool, "1.db")
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        let second = Task { try await use(pool, "2.db") }
        #expect(await comes { pool.statistics.waitingUseCount == 1 })
        #expect(pool.statistics.openStoreCount == 1)
        #expect(pool.statistics.counts.parkedCount == 0)
        held.release()
        try await first.value
        try await second.value
        #expect(pool.statistics.counts.parkedCount == 1)
        #expect(try await pool.values(at: folder.path("1.db")) == [1, 7])
    }

    @Test func `the store that was used least recently is parked`() async throws {
        let pool = try makePool(configuration(2))
        for name in ["1.db", "2.db", "1.db", "3.db"] { try await use(pool, name) }
        #expect(isOpenElsewhere("1.db"))
        #expect(!isOpenElsewhere("2.db"))
        #expect(isOpenElsewhere("3.db"))
        #expect(!FileManager.default.fileExists(atPath: folder.path("2.db-wal")))
    }

    @Test func `an idle store is parked in time, and a used one is not`() async throws {
        let pool = try makePool(configuration(idleDuration: .milliseconds(1)))
        try await use(pool, "1.db")
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        try await use(pool, "2.db")
        #expect(await comes { pool.statistics.openStoreCount == 1 })
        #expect(isOpenElsewhere("1.db"))
        #expect(!isOpenElsewhere("2.db"))
        held.release()
        try await first.value
        #expect(await comes { pool.statistics.openStoreCount == 0 })
    }

    @Test func `a nested use without a place is .busy in time, and the outer one goes on`()
        async throws
    {
        var configuration = configuration(1)
        configuration.waitTimeout = .seconds(2)
        let pool = try makePool(configuration)
        let other = folder.path("2.db")
        let path = folder.path("1.db")
        try await openPatiently(pool, "1.db")
        let error: StoreError? = try await pool.withStore(at: path) { store in
            defer { #expect((try? store.write { _ in }) != nil) }
            // The same store needs no second place.
            try await pool.withStore(at: path) { inner in #expect(inner === store) }
            do {
                try await pool.insert(1, at: other)
                return nil
            } catch {
                return error as? StoreError
            }
        }
        #expect(error?.code == .busy)
        #expect(error?.message.contains("1 stores of the pool are in use") == true)
        try await openPatiently(pool, "2.db")
    }

    /// A configuration whose set-up fails as if the process had its limit of files open while more
    /// than so many stores are.
    private func limited(
        _ count: Int, _ pool: Shared<StorePool?>,
        _ error: StoreError = .system(EMFILE, "cannot open the file")
    ) -> StorePool.Configuration {
        var configuration = configuration(10)
        let setUp = configuration.setUp
        configuration.setUp = { store in
            guard pool.value.map({ $0.statistics.openStoreCount <= count }) ?? true else {
                throw error
            }
            try setUp?(store)
        }
        return configuration
    }

    /// SQLite tells of the limit so, if it meets it at a journal.
    @Test func `a store whose file cannot be opened is tried again once, when one was parked`()
        async throws
    {
        let unclear = StoreError(.io, "unable to open database file", resultCode: 14)
        for (limit, tellsOf) in [(2, nil), (0, StoreError.Code.io)] {
            let shared = Shared<StorePool?>(nil)
            let pool = try makePool(limited(limit, shared, unclear))
            for name in ["1.db", "2.db"] { try await use(pool, name) }
            shared.value = pool
            let third = Task { try await use(pool, "3.db") }
            #expect(await code(third) == tellsOf)
            #expect(pool.statistics.counts.tooManyFilesCount == 1)
            shared.value = nil
            try await pool.close()
        }
    }

    @Test func `a store that the limit of files refuses lets others pass`() async throws {
        var configuration = configuration(10)
        let (isFull, setUp) = (Shared(true), configuration.setUp)
        let refused = folder.path("2.db")
        configuration.setUp = { store in
            guard store.path != refused || !isFull.value else {
                throw StoreError.system(EMFILE, "cannot open the file")
            }
            try setUp?(store)
        }
        let pool = try makePool(configuration)
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        let second = Task { try await use(pool, "2.db") }
        #expect(await comes { pool.statistics.counts.tooManyFilesCount == 1 })
        isFull.value = false
        // The second waits until a store is parked. The third opens beside it, is parked for it at
        // the end of its use, and the second opens while the first is in use.
        try await use(pool, "3.db")
        try await second.value
        held.release()
        try await first.value
    }

    @Test func `a store that the limit of files refuses opens when an idle one was parked`()
        async throws
    {
        let shared = Shared<StorePool?>(nil)
        let pool = try makePool(limited(2, shared))
        shared.value = pool
        for name in ["1.db", "2.db", "3.db"] { try await use(pool, name) }
        #expect(pool.statistics.counts.tooManyFilesCount == 1)
        #expect(!isOpenElsewhere("1.db"))
        #expect(isOpenElsewhere("2.db"))
        shared.value = nil
    }

    @Test func `a store that the limit of files refuses waits for the end of a use`() async throws {
        let shared = Shared<StorePool?>(nil)
        let pool = try makePool(limited(1, shared))
        shared.value = pool
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        let second = Task { try await use(pool, "2.db") }
        #expect(await comes { pool.statistics.counts.tooManyFilesCount == 1 })
        #expect(isOpenElsewhere("1.db"))
        held.release()
        try await first.value
        try await second.value
        #expect(pool.statistics.counts.tooManyFilesCount == 1)
        shared.value = nil
    }

    @Test func `without a store to park, the limit of files is the caller's error`() async throws {
        let shared = Shared<StorePool?>(nil)
        let pool = try makePool(limited(0, shared))
        shared.value = pool
        let refused = Task { try await use(pool, "1.db") }
        #expect(await code(refused) == .tooManyFiles)
        #expect(pool.statistics.openStoreCount == 0)
        shared.value = nil
        try await use(pool, "1.db")
    }

    @Test func `closing refuses new uses and waits for running ones`() async throws {
        let pool = try makePool(configuration(1))
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        let queued = Task { try await use(pool, "2.db") }
        #expect(await comes { pool.statistics.waitingUseCount == 1 })
        let isClosed = Shared(false)
        let closing = Task {
            try await pool.close()
            isClosed.value = true
        }
        #expect(await code(queued) == .closed)
        // Also for the store that is still open.
        #expect(await code(Task { try await use(pool, "1.db") }) == .closed)
        #expect(!isClosed.value)
        held.release()
        try await first.value
        try await closing.value
        #expect(!isOpenElsewhere("1.db"))
        try await pool.close()
    }

    @Test func `closing while a use does not end is .busy, and its store closes with it`()
        async throws
    {
        var configuration = configuration()
        configuration.waitTimeout = .milliseconds(20)
        let pool = try makePool(configuration)
        try await openPatiently(pool, "1.db")
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        expect(.busy) { try pool.close() }
        #expect(await code(Task { try await pool.close() }) == .busy)
        held.release()
        try await first.value
        #expect(await comes { pool.statistics.openStoreCount == 0 })
        try await pool.close()
        #expect(!isOpenElsewhere("1.db"))
    }

    @Test func `a store is parked on request, unless it is in use`() async throws {
        let pool = try makePool(configuration())
        let path = folder.path("1.db")
        try await pool.park(at: path)
        let held = Hold()
        let first = hold(pool, "1.db", held)
        await held.isEntered()
        #expect(await code(Task { try await pool.park(at: path) }) == .busy)
        held.release()
        try await first.value
        try await pool.park(at: path)
        #expect(!isOpenElsewhere("1.db"))
        #expect(try await pool.values(at: path) == [7])
    }

    @Test func `a file that another one has replaced is not the store any more`() async throws {
        let pool = try makePool(configuration())
        let path = folder.path("1.db")
        try await use(pool, "1.db")
        try await Store(path: folder.path("new.db"), key: .numbered(1)).close()
        func replace() throws {
            for suffix in ["", "-wal", "-shm"] { unlinkIfPresent(path + suffix) }
            try FileManager.default.copyItem(atPath: folder.path("new.db"), toPath: path)
        }
        try replace()
        #expect(try await pool.values(at: path) == [])
        try await pool.withStore(at: path) { _ in
            try replace()
            #expect(await code(Task { try await pool.values(at: path) }) == .alreadyOpen)
        }
        #expect(try await pool.values(at: path) == [])
    }

    @Test func `a file that was a store's before the store took another one is found by its name`()
        async throws
    {
        let pool = try makePool(configuration())
        let (path, old) = (folder.path("1.db"), folder.path("old.db"))
        try await pool.insert(1, at: path)
        try await pool.withStore(at: path) { store in
            try await store.suspend()
            try FileManager.default.moveItem(atPath: path, toPath: old)
            let next = try await Store(path: path, key: .numbered(1))
            try await next.write { tx in _ = try tx.execute("CREATE TABLE t(v)") }
            try await next.close()
            try await store.reopen(with: .numbered(1))
        }
        #expect(try await pool.values(at: old) == [1])
        #expect(try await pool.values(at: path) == [])
    }

    @Test func `a store that a body leaves suspended is opened again`() async throws {
        let pool = try makePool(configuration())
        let path = folder.path("1.db")
        try await pool.insert(1, at: path)
        try await pool.withStore(at: path) { store in try await store.suspend() }
        #expect(try await pool.values(at: path) == [1])
    }

    @Test func `after a use that finds another key the store opens with a new one`() async throws {
        let keys = KeySource()
        let pool = try StorePool(configuration: configuration()) { try await keys.key($0) }
        let path = folder.path("1.db")
        try await pool.insert(1, at: path)
        let failed = Task {
            try await pool.withStore(at: path) { _ in
                throw StoreError(.wrongKey, "another process has changed the key")
            }
        }
        #expect(await code(failed) == .wrongKey)
        #expect(try await pool.values(at: path) == [1])
        #expect(keys.paths == [path, path])
    }

    @Test func `a store that a body closed is opened again`() async throws {
        let pool = try makePool(configuration(1))
        let path = folder.path("1.db")
        try await use(pool, "1.db")
        let next = try await pool.withStore(at: path) { store in
            try await store.close()
            // The closed store has the only place.
            let next = Task { try await pool.values(at: path) }
            #expect(await comes { pool.statistics.waitingUseCount == 1 })
            return next
        }
        #expect(try await next.value == [1])
        #expect(pool.statistics.openStoreCount == 1)
    }

    @Test func `a store whose snapshot outlives the use goes on, and is parked later`() async throws
    {
        var configuration = configuration(1)
        configuration.store.waitTimeout = .milliseconds(20)
        let pool = try makePool(configuration)
        try await use(pool, "1.db")
        let snapshot = try await pool.withStore(at: folder.path("1.db")) { try $0.snapshot() }
        let second = Task { try await use(pool, "2.db") }
        #expect(await comes { pool.statistics.waitingUseCount == 1 })
        try await use(pool, "1.db")
        try snapshot.close()
        try await second.value
    }

    @Test func `a pool that is let go closes its stores`() async throws {
        do {
            let pool = try makePool(configuration(idleDuration: .seconds(600)))
            try await use(pool, "1.db")
            withExtendedLifetime(pool) { #expect(isOpenElsewhere("1.db")) }
        }
        #expect(await comes { !isOpenElsewhere("1.db") })
    }

    @Test func `nothing grows with the number of stores that were used`() async throws {
        let pool = try makePool(configuration(2))
        for number in 0..<20 { try await use(pool, "\(number).db") }
        #expect(pool.statistics.counts.openedCount == 20)
        #expect(pool.statistics.openStoreCount == 2)
        #expect(try await pool.values(at: folder.path("0.db")) == [1])
    }
}
