import Foundation
import Testing
import Workload

@testable import Coffer

@Suite struct BucketExpiryTests {
    private let fixture: BucketFixture
    private var store: Store { fixture.store }
    private var clock: HandClock { fixture.clock }
    private let sessions = Bucket<String, Int>("sessions", lifetime: .seconds(60))
    private let plain = Bucket<String, Int>("plain")

    init() throws { fixture = try BucketFixture() }

    @Test func `no verb sees an entry whose time has come`() throws {
        try store.set(1, for: "a", in: sessions)
        try store.set(2, for: "b", in: sessions, expiring: .never)
        clock.advance(by: 59.999)
        #expect(try store.get("a", in: sessions) == 1)
        clock.advance(by: 0.001)
        #expect(try store.get("a", in: sessions) == nil)
        #expect(try !store.contains("a", in: sessions))
        #expect(try store.get(["a", "b"], in: sessions) == ["b": 2])
        #expect(try store.count(in: sessions) == 1)
        #expect(try store.keys(in: sessions) == ["b"])
        #expect(try store.values(in: sessions) == [2])
        #expect(try store.entries(in: sessions, order: .descending).map(\.key) == ["b"])
        #expect(try store.first(in: sessions)?.key == "b")
        #expect(try store.remainingLifetime(of: "a", in: sessions) == nil)
        #expect(try !store.touch("a", in: sessions))
        #expect(try store.take("a", in: sessions) == nil)
        #expect(try store.popFirst(in: sessions)?.key == "b")
        #expect(try store.popFirst(in: sessions) == nil)
        #expect(try !store.remove("a", in: sessions))
        #expect(try store.removeAll(in: sessions) == 0)
    }

    /// Opens a store whose clock goes on by a second at each look.
    private func hasty() throws -> Store {
        try store.close()
        var configuration = Configuration.testing(.wal)
        configuration.expirySweepInterval = nil
        let clock = clock
        configuration.currentDate = {
            clock.advance(by: 1)
            return clock.date
        }
        return try Store(
            path: fixture.folder.path(), key: .numbered(1), configuration: configuration)
    }

    @Test func `an entry that ends between two looks at the clock stays ended`() throws {
        let store = try hasty()
        for lifetime in 1...6 {
            let key = "k\(lifetime)"
            try store.set(1, for: key, in: plain, expiring: .after(.seconds(lifetime)))
            try store.update(key, in: plain) { value in
                if value != nil { value = 2 }
            }
            #expect(try store.remainingLifetime(of: key, in: plain) != .unlimited, "\(key)")
        }
    }

    @Test func `a lock that ends while others ask for it is theirs or not, never an error`() throws
    {
        let store = try hasty()
        for lifetime in 1...6 {
            let key = "k\(lifetime)"
            try store.set(1, for: key, in: plain, expiring: .after(.seconds(lifetime)))
            while try !store.setIfAbsent(2, for: key, in: plain, expiring: .never) {}
            #expect(try store.get(key, in: plain) == 2)
        }
    }

    @Test func `a bucket that keeps its entries does not keep others from being swept`() throws {
        let (a, b) = (Bucket<Int, Int>("a"), Bucket<Int, Int>("b"))
        try store.write { tx in
            for bucket in [a, b] {
                for key in 0..<10 {
                    try tx.set(key, for: key, in: bucket, expiring: .after(.seconds(1)))
                }
            }
            try tx.execute(
                """
                CREATE TRIGGER keep BEFORE DELETE ON "bucket:a"
                BEGIN SELECT RAISE(ABORT, 'kept'); END
                """)
        }
        clock.advance(by: 2)
        let error = expect(.constraint) { try store.sweepExpiredEntries(sliceCount: 3) }
        #expect(error?.table == "bucket:a")
        let counts = try store.read { tx in
            try ["a", "b"].map { name in
                try tx.requireScalar(
                    "SELECT count(*) FROM \(identifier: "bucket:" + name)", as: Int.self)
            }
        }
        #expect(counts == [10, 0])
    }

    @Test func `an expired entry is none for the verbs that change`() throws {
        for key in ["a", "b", "c", "d", "e"] { try store.set(7, for: key, in: sessions) }
        clock.advance(by: 60)
        #expect(try store.setIfAbsent(1, for: "a", in: sessions))
        #expect(try !store.setIfAbsent(2, for: "a", in: sessions))
        #expect(try store.increment("b", in: sessions) == 1)
        let result = try store.compareExchange("c", expected: nil, desired: 3, in: sessions)
        #expect(result.exchanged && result.original == nil)
        let missed = try store.compareExchange("d", expected: 7, desired: 3, in: sessions)
        #expect(!missed.exchanged && missed.original == nil)
        try store.update("e", in: sessions) { value in
            #expect(value == nil)
            value = 5
        }
        #expect(
            try store.get(["a", "b", "c", "d", "e"], in: sessions) == [
                "a": 1, "b": 1, "c": 3, "e": 5,
            ])
        for key in ["a", "b", "c", "e"] {
            #expect(
                try store.remainingLifetime(of: key, in: sessions) == .limited(.seconds(60)))
        }
    }

    @Test func `the time comes in the middle of a transaction`() throws {
        try store.write { tx in
            try tx.set(1, for: "a", in: sessions)
            #expect(try tx.get("a", in: sessions) == 1)
            clock.advance(by: 60)
            #expect(try tx.get("a", in: sessions) == nil)
        }
        try store.set(1, for: "a", in: sessions)
        let seen = try store.read { tx in
            let before = try tx.get("a", in: sessions)
            clock.advance(by: 60)
            return [before, try tx.get("a", in: sessions)]
        }
        #expect(seen == [1, nil])
    }

    @Test func `set renews the time, update and increment keep it, touch slides it`() throws {
        try store.set(1, for: "a", in: sessions)
        clock.advance(by: 30)
        try store.increment("a", in: sessions)
        try store.update("a", in: sessions) { $0? += 1 }
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .limited(.seconds(30)))
        #expect(try store.touch("a", in: sessions))
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .limited(.seconds(60)))
        clock.advance(by: 10)
        try store.set(9, for: "a", in: sessions)
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .limited(.seconds(60)))
        try store.set(9, for: "a", in: sessions, expiring: .after(.milliseconds(1500)))
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .limited(.milliseconds(1500)))
        let date = clock.date + 5
        #expect(try store.touch("a", in: sessions, expiring: .at(date)))
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .limited(.seconds(5)))
        #expect(try store.touch("a", in: sessions, expiring: .never))
        #expect(try store.remainingLifetime(of: "a", in: sessions) == .unlimited)
    }

    @Test func `a time in the past ends an entry at once, one out of range is an error`() throws {
        try store.set(1, for: "a", in: plain, expiring: .after(.zero))
        #expect(try store.get("a", in: plain) == nil)
        try store.set(1, for: "a", in: plain, expiring: .at(.distantPast))
        #expect(try store.get("a", in: plain) == nil)
        try store.set(1, for: "a", in: plain, expiring: .at(.distantFuture))
        #expect(try store.get("a", in: plain) == 1)
        for expiration in [
            Expiration.after(.seconds(Int64.max)), .after(.seconds(Int64.max / 1_000_000)),
            .at(Date(timeIntervalSince1970: .nan)), .at(Date(timeIntervalSince1970: 1e300)),
        ] {
            let error = expect(.mismatch) {
                try store.set(2, for: "a", in: plain, expiring: expiration)
            }
            #expect(error?.column == "expires")
        }
        #expect(try store.get("a", in: plain) == 1)
    }

    private func columns(_ bucket: String) throws -> [String] {
        try store.read { tx in
            try tx.rows("PRAGMA table_info(\(identifier: "bucket:" + bucket))")
                .map { try $0.get("name", as: String.self) }
        }
    }

    @Test func `a bucket pays for expiry from its first entry that expires`() throws {
        try store.set(1, for: "a", in: plain)
        #expect(try columns("plain") == ["key", "value"])
        #expect(try !store.touch("missing", in: plain, expiring: .after(.seconds(1))))
        #expect(try store.touch("a", in: plain, expiring: .never))
        #expect(try columns("plain") == ["key", "value"], "nothing expires yet")
        #expect(try store.touch("a", in: plain, expiring: .after(.seconds(1))))
        #expect(try columns("plain") == ["key", "value", "expires"])
        try store.set(2, for: "b", in: plain)
        clock.advance(by: 2)
        #expect(try store.keys(in: plain) == ["b"])
    }

    @Test func `a connection that knew the table without expiry learns of it`() throws {
        try store.set(1, for: "a", in: plain)
        // The readers have compiled their statements.
        #expect(try store.get("a", in: plain) == 1)
        try fixture.withConnection { other in
            try other.execute("ALTER TABLE \"bucket:plain\" ADD COLUMN expires INTEGER")
            try other.execute("UPDATE \"bucket:plain\" SET expires = 5")
        }
        #expect(try store.get("a", in: plain) == nil)
        #expect(try store.sweepExpiredEntries() == 1, "without the index too")
        try store.set(2, for: "a", in: plain)
        #expect(try store.get("a", in: plain) == 2)
        try store.write { tx in try tx.renameBucket("plain", to: "other") }
        #expect(try store.get("a", in: Bucket<String, Int>("other")) == 2)
    }

    @Test func `a table that only looks like a bucket does not stop the sweep`() throws {
        try store.set(1, for: "a", in: sessions)
        try store.write { tx in
            try tx.execute("CREATE TABLE \"bucket:a\" (x, expires)")
            try tx.execute("CREATE INDEX \"coffer:expires:a\" ON \"bucket:a\" (expires)")
        }
        clock.advance(by: 60)
        #expect(try store.sweepExpiredEntries(sliceCount: 0) == 1)
    }

    @Test func `a sweep removes what has expired, in slices, and nothing else`() throws {
        for index in 0..<100 { try store.set(index, for: "k\(index)", in: sessions) }
        try store.set(1, for: "stays", in: sessions, expiring: .never)
        try store.set(1, for: "later", in: plain, expiring: .after(.seconds(3600)))
        try store.set(1, for: "x", in: plain, expiring: .after(.seconds(1)))
        #expect(try store.sweepExpiredEntries() == 0)
        clock.advance(by: 60)
        #expect(try store.write { tx in try tx.sweepExpiredEntries(maximumCount: 7) } == 7)
        #expect(try store.sweepExpiredEntries(sliceCount: 10) == 94)
        let rows = try store.read { tx in
            try tx.rows(
                """
                SELECT key FROM "bucket:sessions" UNION ALL SELECT key FROM "bucket:plain"
                ORDER BY 1
                """)
        }
        #expect(rows.map { $0[0] } == ["later", "stays"])
        // A clock that is put back brings back what nobody has swept.
        try store.set(1, for: "soon", in: sessions)
        clock.advance(by: 60)
        #expect(try store.get("soon", in: sessions) == nil)
        clock.advance(by: -1)
        #expect(try store.get("soon", in: sessions) == 1)
    }

    @Test func `a sweep is told to observers and to the history, an expiry is not`() async throws {
        try await store.set(1, for: "a", in: sessions)
        try await store.write { tx in try tx.keepHistory(of: "bucket:sessions") }
        let token = try await store.read { tx in try tx.changeToken() }
        let loop = store.changes(in: sessions).makeAsyncIterator()
        clock.advance(by: 60)
        let value = try await store.get("a", in: sessions)
        let unchanged = try await store.changes(since: token)
        #expect(value == nil && unchanged.changes.isEmpty)
        try await store.sweepExpiredEntries()
        let event = try await loop.next()
        #expect(
            event == .commit([ChangedRow(table: "bucket:sessions", key: ["a"], kind: .delete)]))
        let changes = try await store.changes(since: token).changes
        #expect(changes.map(\.kind) == [.delete])
    }

    @Test func `two programs sweep the same entry, and one of them removes it`() throws {
        try store.set(1, for: "a", in: sessions)
        clock.advance(by: 60)
        let counts = try store.write { tx in
            [try tx.sweepExpiredEntries(), try tx.sweepExpiredEntries()]
        }
        #expect(counts == [1, 0])
        #expect(try store.count(in: sessions) == 0)
    }
}
