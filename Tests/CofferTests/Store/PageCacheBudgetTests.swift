import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Many stores do not take more memory for pages than the process may use.
@Suite(.againstHanging, .onOwnThreads) struct PageCacheBudgetTests {
    private static let mega = 1 << 20

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    // MARK: Shares

    @Test func `shares are halved alike until they fit, and grow again`() {
        let budget = PageCacheBudget(maximumByteCount: 64 * Self.mega)
        let first = budget.join(byteCount: 32 * Self.mega, connectionCount: 4)
        let second = budget.join(byteCount: 16 * Self.mega, connectionCount: 2)
        #expect(first.byteCount == 32 * Self.mega && second.byteCount == 16 * Self.mega)
        let third = budget.join(byteCount: 32 * Self.mega, connectionCount: 1)
        #expect(
            [first, second, third].map(\.byteCount)
                == [16 * Self.mega, 8 * Self.mega, 16 * Self.mega])
        budget.maximumByteCount = 10 * Self.mega
        #expect(first.connectionByteCount == Self.mega)
        budget.leave(third)
        #expect(first.connectionByteCount == Self.mega)
        budget.maximumByteCount = 1 << 40
        #expect(first.byteCount == 32 * Self.mega && second.byteCount == 16 * Self.mega)
    }

    @Test(arguments: [0, -1, Int.min])
    func `no connection gets less than 256 KiB`(maximumByteCount: Int) {
        let budget = PageCacheBudget(maximumByteCount: Self.mega)
        budget.maximumByteCount = maximumByteCount
        let shares = [0, Self.mega, .max].map { budget.join(byteCount: $0, connectionCount: 5) }
        let least: Int = 256 << 10
        #expect(shares.map(\.connectionByteCount) == [least, least, least])
    }

    @Test
    func `a member that must give back is asked once, and one that has nothing to give is not`() {
        let budget = PageCacheBudget(maximumByteCount: 8 * Self.mega)
        let told = Shared(0)
        let small = budget.join(byteCount: 0, connectionCount: 1)
        small.onTrim { Issue.record("has the least already") }
        let first = budget.join(byteCount: 6 * Self.mega, connectionCount: 1)
        first.onTrim { told.update { $0 += 1 } }
        let second = budget.join(byteCount: 6 * Self.mega, connectionCount: 1)
        #expect(told.value == 1)
        budget.leave(second)
        #expect(told.value == 1 && first.byteCount == 6 * Self.mega)
    }

    @Test func `a bound beyond the engine's largest number becomes that number`() throws {
        var configuration = Configuration.testing(.wal)
        configuration.maximumCacheByteCount = .max
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        #expect(try connection.firstRow("PRAGMA cache_size")?[0] == .integer(-Int64(Int32.max)))
        connection.close()
    }

    // MARK: Stores

    /// Makes a store with 2 MB of rows, all of which the writer and a reader have read.
    private func makeStore(_ name: String, _ budget: PageCacheBudget) throws -> Store {
        var configuration = Configuration.testing(.wal)
        configuration.maximumReaderCount = 1
        configuration.maximumCacheByteCount = 4 * Self.mega
        configuration.cacheBudget = budget
        let store = try Store(
            path: folder.path(name), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(a)")
            let text = String(repeating: "x", count: 1500)
            for _ in 0..<1400 { try tx.execute("INSERT INTO t VALUES (\(text))") }
        }
        try readAll(store)
        return store
    }

    private func readAll(_ store: Store) throws {
        let sum: SQL = "SELECT sum(length(a)) FROM t"
        #expect(try store.read { tx in try tx.firstRow(sum)?[0] } == 2_100_000)
        #expect(try store.write { tx in try tx.firstRow(sum)?[0] } == 2_100_000)
    }

    /// Bytes of pages that the connections of a store hold.
    private func usedByteCount(_ store: Store) throws -> Int {
        let reader = try store.core.pool.takeReader()
        defer { store.core.pool.giveBack(reader) }
        return try [store.core.pool.writer, reader.connection].reduce(0) { sum, connection in
            var (used, most) = (Int32(0), Int32(0))
            sqlite3_db_status(
                try connection.current().db, SQLITE_DBSTATUS_CACHE_USED, &used, &most, 0)
            return sum + Int(used)
        }
    }

    @Test func `many stores keep to the budget, and the last of them has all of it`() throws {
        let budget = PageCacheBudget(maximumByteCount: 8 * Self.mega)
        let stores = try (0..<12).map { try makeStore("\($0).db", budget) }
        for store in stores { try readAll(store) }
        let used = try stores.reduce(0) { $0 + (try usedByteCount($1)) }
        // The engine needs some additional bytes for each page.
        #expect(used < 9 * Self.mega)
        #expect(stores[0].statistics.maximumCacheByteCount == Self.mega / 2)
        for store in stores.dropFirst() { try store.close() }
        #expect(stores[0].statistics.maximumCacheByteCount == 4 * Self.mega)
        // The first read adopts the connection's share, the second one uses it.
        for _ in 0..<2 { try readAll(stores[0]) }
        #expect(try usedByteCount(stores[0]) > 3 * Self.mega)
        try stores[0].close()
    }

    @Test func `an idle store gives its pages back when others open`() throws {
        let budget = PageCacheBudget(maximumByteCount: 8 * Self.mega)
        let idle = try makeStore("idle.db", budget)
        #expect(try usedByteCount(idle) > 3 * Self.mega)
        let second = try makeStore("second.db", budget)
        #expect(try usedByteCount(idle) > 3 * Self.mega, "there is room for both")
        let third = try makeStore("third.db", budget)
        // Each of its two connections keeps its share, and the engine some bytes for each page.
        #expect(try usedByteCount(idle) < 5 * Self.mega / 2)
        for store in [idle, second, third] { try store.close() }
    }

    @Test func `a store that is deallocated without close gives its share back`() throws {
        let budget = PageCacheBudget(maximumByteCount: 4 * Self.mega)
        let first = try makeStore("first.db", budget)
        var second: Store? = try makeStore("second.db", budget)
        #expect(first.statistics.maximumCacheByteCount == 2 * Self.mega)
        #expect(second?.statistics.maximumCacheByteCount == 2 * Self.mega)
        second = nil
        #expect(first.statistics.maximumCacheByteCount == 4 * Self.mega)
        try first.close()
    }

    @Test func `a running body keeps its pages until it ends`() throws {
        let budget = PageCacheBudget(maximumByteCount: 4 * Self.mega)
        let first = try makeStore("first.db", budget)
        let second = try first.write { tx in
            let store = try makeStore("second.db", budget)
            #expect(try tx.firstRow("SELECT count(*) FROM t")?[0] == 1400)
            #expect(first.core.pool.writer.cacheByteCount == 2 * Self.mega)
            return store
        }
        #expect(first.core.pool.writer.cacheByteCount == Self.mega)
        for store in [first, second] { try store.close() }
    }
}
