import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ObserveTests {
    private static func count(_ sql: SQL, _ tx: borrowing some Reading & ~Copyable) throws -> Int {
        try tx.scalar(sql, as: Int.self) ?? -1
    }

    @Test(arguments: journalModes)
    func `the first value comes at once, the next after a commit`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try ObservationFixture(mode)
        let values = fixture.store.observe { tx in try Self.count("SELECT count(*) FROM t", tx) }
        let loop = values.makeAsyncIterator()
        var value = try await loop.next()
        #expect(value == 0)
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        value = try await loop.next()
        #expect(value == 1)
        try await fixture.store.write { tx in try tx.execute("DELETE FROM t") }
        value = try await loop.next()
        #expect(value == 0)
    }

    /// A query, and a write that changes its result.
    private static let touches: [(read: String, write: String)] = [
        ("SELECT count(*) FROM t", "INSERT INTO t(v) VALUES (1)"),
        ("SELECT other.v FROM other, t", "INSERT INTO t(v) VALUES (1)"),
        ("SELECT EXISTS (SELECT 1 FROM t WHERE v = 7)", "INSERT INTO t(v) VALUES (7)"),
        ("SELECT u FROM t ORDER BY u", "UPDATE t SET u = u + 3"),
        ("SELECT * FROM joined", "UPDATE t SET v = 3"),
        ("SELECT * FROM joined", "UPDATE child SET v = 3"),
        ("SELECT count(*) FROM log", "INSERT INTO other VALUES ('log')"),
        ("SELECT count(*) FROM child", "DELETE FROM t WHERE id = 1"),
        ("SELECT count(*) FROM w", "DELETE FROM w"),
        ("SELECT count(*) FROM t", "DELETE FROM t"),
        // Without triggers and children SQLite empties a table without visiting its rows.
        ("SELECT count(*) FROM child", "DELETE FROM child"),
        ("SELECT v FROM w", "REPLACE INTO w VALUES ('b', 5, 1)"),
        ("SELECT count(t) FROM child", "INSERT INTO child SELECT id, 1 FROM t"),
        ("SELECT name FROM sqlite_master", "CREATE TABLE more(v)"),
        ("PRAGMA user_version", "PRAGMA user_version = 7"),
        ("SELECT count(*) FROM words WHERE words MATCH 'x'", "INSERT INTO words VALUES ('x')"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n, t WHERE i < 9) "
                + "SELECT count(*) FROM n", "DELETE FROM t"
        ),
    ]

    private struct Opaque: Sendable { let rows: [[Value]] }

    @Test(arguments: touches.indices)
    func `a value is fetched again if what it read was touched, and only then`(
        index: Int
    ) async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE untouched(v)", "CREATE VIRTUAL TABLE words USING fts4(body)",
            "INSERT INTO t(id, v, u) VALUES (1, 1, 1), (2, 2, 2)", "INSERT INTO other VALUES (1)",
            "INSERT INTO child VALUES (1, 1)", "INSERT INTO w VALUES ('a', 1, 1)")
        let (read, write) = Self.touches[index]
        let fetches = Counter()
        // The statement is cached before anybody observes, and yet its tables are found.
        _ = try fixture.read { tx in try tx.rows(SQL(text: read)).count }
        let values = fixture.store.observe { tx in
            fetches.add()
            // The value cannot be compared, so every fetch is handed out.
            return Opaque(rows: try tx.rows(SQL(text: read)).map(\.values))
        }
        let loop = values.makeAsyncIterator()
        let first = try await loop.next()
        // A virtual table may read any other table, and so may a pragma.
        let isAnything = read.contains("MATCH") || read.contains("PRAGMA")
        if !isAnything { try fixture.run("INSERT INTO untouched VALUES (1)") }
        #expect(throws: Undo.self) {
            try fixture.write { tx in
                try tx.execute(SQL(text: write))
                throw Undo()
            }
        }
        try fixture.run(write)
        let second = try await loop.next()
        #expect(first?.rows != second?.rows)
        #expect(fetches.count == 2)
    }

    struct Item: Record, Equatable {
        var id: Int64
        var name: String
    }

    @Test func `records and buckets are observed, also before there is a table`() async throws {
        let fixture = try ObservationFixture()
        let store = fixture.store
        let bucket = Bucket<String, Int>("numbers")
        let items = store.observe { tx in try tx.fetch(Item.all) }
        let found = store.observe { tx in try tx.find(Item.self, 1) }
        let numbers = store.observe { tx in try tx.get("one", in: bucket) }
        let (itemLoop, foundLoop, numberLoop) = (
            items.makeAsyncIterator(), found.makeAsyncIterator(), numbers.makeAsyncIterator()
        )
        var value = try await itemLoop.next()
        var one = try await foundLoop.next()
        var number = try await numberLoop.next()
        #expect(value == [] && one == .some(nil) && number == .some(nil))
        for name in ["a", "b"] {
            let item = Item(id: 1, name: name)
            try fixture.write { tx in
                try tx.upsert(item)
                try tx.set(name == "a" ? 1 : 2, for: "one", in: bucket)
            }
            value = try await itemLoop.next()
            one = try await foundLoop.next()
            number = try await numberLoop.next()
            #expect(value == [item] && one == item)
            #expect(number == (name == "a" ? 1 : 2))
        }
    }

    private struct Thing: Record {
        static let table = "t"
        var id: Int
    }

    @Test func `a long list is not taken for a table that any commit may change`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("INSERT INTO t(id) VALUES (1), (2), (999)")
        let list = Array(1...500)
        let looks = Counter()
        let counts = fixture.store.observe { tx -> Int in
            looks.add()
            return try tx.count(Thing.where(list.contains(\.id)))
        }.makeAsyncIterator()
        let others = fixture.store.observe { tx in try tx.rows("SELECT * FROM other").count }
            .makeAsyncIterator()
        #expect(try await counts.next() == 2)
        #expect(try await others.next() == 0)
        for number in 1...5 {
            try fixture.run("INSERT INTO other VALUES (\(number))")
            #expect(try await others.next() == number)
        }
        try fixture.run("INSERT INTO t(id) VALUES (3)")
        #expect(try await counts.next() == 3)
        #expect(looks.count == 2)
    }

    @Test func `commits during a fetch lead to one more fetch`() async throws {
        let fixture = try ObservationFixture()
        let fetches = Counter()
        let hold = Hold()
        let values = fixture.store.observe { tx in
            fetches.add()
            let count = try Self.count("SELECT count(*) FROM t", tx)
            if fetches.count == 1 { hold.stay() }
            return count
        }
        let loop = Task {
            var seen: [Int] = []
            for try await value in values {
                seen.append(value)
                if value == 10 { break }
            }
            return seen
        }
        await hold.isEntered()
        for number in 0..<10 { try fixture.run("INSERT INTO t(v) VALUES (\(number))") }
        hold.release()
        let seen = try await loop.value
        #expect(seen == [0, 10])
        #expect(fetches.count == 2)
    }

    @Test func `commits while the loop is busy lead to one more fetch`() async throws {
        let fixture = try ObservationFixture()
        let fetches = Counter()
        let values = fixture.store.observe { tx in
            fetches.add()
            return try Self.count("SELECT count(*) FROM t", tx)
        }
        let loop = values.makeAsyncIterator()
        _ = try await loop.next()
        for number in 0..<10 { try fixture.run("INSERT INTO t(v) VALUES (\(number))") }
        let value = try await loop.next()
        #expect(value == 10)
        #expect(fetches.count == 2)
    }

    @Test func `an equal value is not handed out, unless values cannot be compared`() async throws {
        let fixture = try ObservationFixture()
        let same = fixture.store.observe { tx in
            try Self.count("SELECT count(*) FROM t", tx)
        }
        let opaque = fixture.store.observe { tx in
            Opaque(rows: try tx.rows("SELECT v FROM t").map(\.values))
        }
        let (sameLoop, opaqueLoop) = (same.makeAsyncIterator(), opaque.makeAsyncIterator())
        _ = try await sameLoop.next()
        _ = try await opaqueLoop.next()
        try fixture.run("UPDATE t SET v = 1")
        let again = try await opaqueLoop.next()
        #expect(again?.rows == [])
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        let value = try await sameLoop.next()
        #expect(value == 1)
    }

    @Test func `an error of the fetch ends the loop`() async throws {
        let fixture = try ObservationFixture()
        let values = fixture.store.observe { tx in
            let count = try Self.count("SELECT count(*) FROM t", tx)
            if count == 1 { throw Undo() }
            return count
        }
        let loop = values.makeAsyncIterator()
        _ = try await loop.next()
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        await #expect(throws: Undo.self) { _ = try await loop.next() }
        let end = try await loop.next()
        #expect(end == nil)
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test func `closing the store ends a loop that waits, and one that comes later`() async throws {
        let fixture = try ObservationFixture()
        let values = fixture.store.observe { tx in try Self.count("SELECT count(*) FROM t", tx) }
        let (begun, signal) = AsyncStream<Void>.makeStream()
        let loop = Task {
            for try await _ in values { signal.finish() }
        }
        for await _ in begun {}
        try await fixture.store.close()
        await Self.expectError(.closed) { try await loop.value }
        await Self.expectError(.closed) { for try await _ in values {} }
    }

    @Test func `a cancelled task ends its loop`() async throws {
        let fixture = try ObservationFixture()
        let values = fixture.store.observe { tx in try Self.count("SELECT count(*) FROM t", tx) }
        let (begun, signal) = AsyncStream<Void>.makeStream()
        let loop = Task {
            for try await _ in values { signal.finish() }
        }
        for await _ in begun {}
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test func `a cancelled task ends its loop over changes`() async throws {
        let fixture = try ObservationFixture()
        let changes = fixture.store.changes(in: "t")
        let loop = Task {
            for try await _ in changes {}
        }
        try await yieldWhile { fixture.store.core.observation.observerCount == 0 }
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test func `nothing is left of a loop that was abandoned`() async throws {
        weak var core: StoreCore?
        do {
            let fixture = try ObservationFixture { $0.foreignCommitInterval = .milliseconds(1) }
            core = fixture.store.core
            let observation = fixture.store.core.observation
            for try await _ in fixture.store.observe({ tx in try tx.rows("SELECT * FROM t") }) {
                #expect(observation.observerCount == 1 && observation.isPolling)
                break
            }
            for try await _ in fixture.store.observe({ tx in try tx.rows("SELECT 1").count }) {
                break
            }
            #expect(observation.observerCount == 0 && !observation.isPolling)
        }
        // The last poll for other connections' commits may still be under way.
        for _ in 0..<10_000 where core != nil { await Task.yield() }
        #expect(core == nil)
    }

    static func expectError(
        _ code: StoreError.Code, _ work: () async throws -> Void
    ) async {
        do {
            try await work()
            Issue.record("nothing was thrown")
        } catch {
            #expect((error as? StoreError)?.code == code)
        }
    }

    @Test func `the last value of every loop is the last commit, no matter who writes`()
        async throws
    {
        let fixture = try ObservationFixture { $0.maximumReaderCount = 3 }
        let (writerCount, writeCount) = (8, isLongRun ? 2_000 : 60)
        let values = fixture.store.observe { tx in
            // Both values belong to one snapshot, so a torn read would show.
            let total = try Self.count("SELECT coalesce(sum(v), 0) FROM t", tx)
            let count = try Self.count("SELECT count(*) FROM t", tx)
            return [total, count]
        }
        let end = writerCount * writeCount
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var last = -1
                    for try await value in values {
                        #expect(value[0] == value[1] && value[0] > last)
                        last = value[0]
                        if last == end { break }
                    }
                    return last
                }
            }
            for _ in 0..<writerCount {
                group.addTask {
                    for number in 0..<writeCount {
                        try await fixture.store.write { tx in
                            try tx.execute("INSERT INTO t(v) VALUES (1)")
                        }
                        try? await fixture.store.write { tx in
                            try tx.execute("INSERT INTO t(v) VALUES (\(1000 + number))")
                            throw Undo()
                        }
                    }
                    return end
                }
            }
            for try await last in group { #expect(last == end) }
        }
        #expect(fixture.store.core.observation.observerCount == 0)
    }
}
