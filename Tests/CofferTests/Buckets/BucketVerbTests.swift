import Foundation
import Testing

@testable import Coffer

@Suite struct BucketVerbTests {
    private let fixture: BucketFixture
    private var store: Store { fixture.store }
    private let numbers = Bucket<String, Int>("numbers")

    init() throws {
        fixture = try BucketFixture()
        try store.set(["a": 1, "b": 2, "c": 3, "d": 4], in: numbers)
    }

    @Test func `a default stands for a key without a value, and not for a wrong one`() throws {
        #expect(try store.get("a", default: 0, in: numbers) == 1)
        #expect(try store.get("z", default: 9, in: numbers) == 9)
        let texts = Bucket<String, String>("numbers")
        expect(.mismatch) { try store.get("a", default: "", in: texts) }
    }

    @Test func `many keys are read, and those that are missing are left out`() throws {
        #expect(try store.get(["a", "z", "c"], in: numbers) == ["a": 1, "c": 3])
        let none = Bucket<String, Int>("none")
        #expect(try store.get(["a"], in: none).isEmpty)
    }

    @Test func `a value is set once if it may only be absent`() throws {
        #expect(try !store.setIfAbsent(9, for: "a", in: numbers))
        #expect(try store.get("a", in: numbers) == 1)
        #expect(try store.setIfAbsent(9, for: "e", in: numbers))
        #expect(try store.get("e", in: numbers) == 9)
    }

    @Test func `update changes, makes and removes an entry`() throws {
        let old = try store.update("a", in: numbers) { value in
            defer { value = (value ?? 0) + 10 }
            return value
        }
        #expect(try old == 1 && store.get("a", in: numbers) == 11)
        try store.update("n", in: numbers) { $0 = 5 }
        #expect(try store.get("n", in: numbers) == 5)
        try store.update("n", in: numbers) { $0 = nil }
        try store.update("absent", in: numbers) { $0 = nil }
        #expect(try !store.contains("n", in: numbers) && !store.contains("absent", in: numbers))
        let tags = Bucket<String, [String]>("tags")
        try store.update("x", default: [], in: tags) { $0.append("new") }
        try store.update("x", default: [], in: tags) { $0.append("more") }
        #expect(try store.get("x", in: tags) == ["new", "more"])
    }

    @Test func `a body of update that throws or uses the bucket itself loses nothing`() throws {
        #expect(throws: CancellationError.self) {
            try store.update("a", in: numbers) { value in
                value = 100
                throw CancellationError()
            }
        }
        #expect(try store.get("a", in: numbers) == 1)
        try store.write { tx in
            let read = try tx.update("a", in: numbers) { value in
                try tx.remove("a", in: numbers)
                value? += 1
                return value
            }
            #expect(read == 2)
        }
        #expect(try store.get("a", in: numbers) == 2)
    }

    @Test func `an update in a transaction that SQLite has ended changes nothing`() throws {
        try store.write { tx in try tx.execute("CREATE TABLE t (x UNIQUE)") }
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.update("a", in: numbers) { value in
                    _ = try? tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
                    value = nil
                }
            }
        }
        #expect(try store.get("a", in: numbers) == 1)
    }

    @Test func `compareExchange stores only over the expected value and returns the old`() throws {
        var result = try store.compareExchange("a", expected: 2, desired: 5, in: numbers)
        #expect(!result.exchanged && result.original == 1)
        result = try store.compareExchange("a", expected: 1, desired: 5, in: numbers)
        #expect(result.exchanged && result.original == 1)
        result = try store.compareExchange("a", expected: nil, desired: 6, in: numbers)
        #expect(!result.exchanged && result.original == 5)
        result = try store.compareExchange("new", expected: nil, desired: 6, in: numbers)
        #expect(result.exchanged && result.original == nil)
        result = try store.compareExchange("new", expected: 6, desired: nil, in: numbers)
        #expect(try result.exchanged && !store.contains("new", in: numbers))
    }

    @Test func `counters count, and refuse to overflow`() throws {
        #expect(try store.increment("visits", in: numbers) == 1)
        #expect(try store.increment("visits", by: 41, in: numbers) == 42)
        #expect(try store.decrement("visits", by: 50, in: numbers) == -8)
        let small = Bucket<String, UInt8>("small")
        try store.set(250, for: "x", in: small)
        let error = expect(.mismatch) { try store.increment("x", by: 6, in: small) }
        #expect(error?.hint?.contains("Nothing was changed") == true)
        #expect(try store.increment("x", by: 5, in: small) == 255)
        expect(.mismatch) { try store.decrement("y", in: small) }
        #expect(try !store.contains("y", in: small))
    }

    @Test func `entries are removed one by one, many at once, by range and while taken`() throws {
        #expect(try store.take("a", in: numbers) == 1)
        #expect(try store.take("a", in: numbers) == nil)
        #expect(try store.remove(["b", "z"], in: numbers) == 1)
        try store.set(["e": 5, "ea": 6, "f": 7], in: numbers)
        #expect(try store.removeAll(in: numbers, .prefix("e")) == 2)
        #expect(try store.keys(in: numbers) == ["c", "d", "f"])
        #expect(try store.removeAll(in: numbers, .from("c", through: "d")) == 2)
        #expect(try store.removeAll(in: numbers) == 1)
        #expect(try store.removeAll(in: numbers) == 0)
    }

    @Test func `the first and the last entry are found and popped, also of a range`() throws {
        #expect(try store.first(in: numbers)?.key == "a")
        #expect(try store.last(in: numbers)?.value == 4)
        #expect(try store.first(in: numbers, .from("bb"))?.key == "c")
        #expect(try store.last(in: numbers, .below("c"))?.key == "b")
        #expect(try store.popFirst(in: numbers) == BucketEntry(key: "a", value: 1))
        #expect(try store.popLast(in: numbers) == BucketEntry(key: "d", value: 4))
        #expect(try store.popFirst(in: numbers, .from("c"))?.key == "c")
        #expect(try store.popFirst(in: numbers, .from("c")) == nil)
        #expect(try store.popLast(in: numbers)?.key == "b")
        #expect(try store.first(in: numbers) == nil && store.popLast(in: numbers) == nil)
    }

    @Test func `a scan goes both ways, with a limit and from where the last page ended`() throws {
        let range = KeyRange<String>.from("a", through: "d")
        var forward: [String] = []
        var backward: [String] = []
        while true {
            let page = try store.keys(in: numbers, range, after: forward.last, maximumCount: 3)
            forward += page
            if page.count < 3 { break }
        }
        while true {
            let page = try store.entries(
                in: numbers, range, order: .descending, after: backward.last, maximumCount: 1)
            backward += page.map(\.key)
            if page.isEmpty { break }
        }
        #expect(forward == ["a", "b", "c", "d"] && backward == ["d", "c", "b", "a"])
        #expect(try store.values(in: numbers, order: .descending) == [4, 3, 2, 1])
        #expect(try store.count(in: numbers, .from("b", below: "d")) == 2)
        #expect(try store.count(in: numbers, .from("d", below: "b")) == 0)
        #expect(try store.keys(in: numbers, maximumCount: 0).isEmpty)
        #expect(try store.keys(in: numbers, maximumCount: -1).isEmpty)
    }

    @Test func `a scan by a closure ends when it says so, and with its error`() throws {
        var seen: [Int] = []
        try store.read { tx in
            try tx.forEachEntry(in: numbers, order: .descending) { entry in
                seen.append(entry.value)
                return entry.value > 3
            }
        }
        #expect(seen == [4, 3])
        #expect(throws: CancellationError.self) {
            try store.read { tx in
                try tx.forEachEntry(in: numbers) { _ in throw CancellationError() }
            }
        }
    }

    @Test func `a scan of keys does not read values`() throws {
        // The values are on pages of their own: one is damaged, and the keys are still read.
        let large = Bucket<String, Data>("large")
        let fixture = try BucketFixture(.delete)
        for key in ["a", "b"] {
            try fixture.store.set(Data(repeating: 7, count: 100_000), for: key, in: large)
        }
        let size = fixture.store.profile.pageByteCount
        let pageCount = try fixture.store.read { tx in
            try tx.rows("PRAGMA page_count")[0].get(0, as: Int.self)
        }
        try fixture.store.close()
        try Damage.flip(fixture.folder.path(), at: (pageCount - 2) * size + 10)
        let store = try BucketFixture.open(fixture.folder, fixture.clock, .delete)
        #expect(try store.keys(in: large) == ["a", "b"])
        expect(.damaged) { try store.values(in: large) }
    }

    @Test func `the same verbs wait without a thread`() async throws {
        let store = store
        let numbers = numbers
        try await store.set(1, for: "x", in: numbers)
        try await store.set(["y": 2], in: numbers)
        let isSet = try await store.setIfAbsent(3, for: "x", in: numbers)
        let sum = try await store.increment("x", in: numbers)
        let rest = try await store.decrement("x", in: numbers)
        #expect(!isSet && sum == 2 && rest == 1)
        let exchange = try await store.compareExchange("x", expected: 1, desired: 7, in: numbers)
        #expect(exchange.exchanged)
        let updated = try await store.update("x", in: numbers) { value -> Int? in
            value? += 1
            return value
        }
        try await store.update("u", default: 1, in: numbers) { $0 += 1 }
        let (x, z) = (
            try await store.get("x", in: numbers), try await store.get("z", default: 0, in: numbers)
        )
        #expect(updated == 8 && x == 8 && z == 0)
        let many = try await store.get(["x", "u"], in: numbers)
        #expect(many == ["x": 8, "u": 2])
        let (first, last) = (
            try await store.first(in: numbers), try await store.last(in: numbers)
        )
        #expect(first?.key == "a" && last?.key == "y")
        let count = try await store.count(in: numbers, .from("x"))
        let keys = try await store.keys(in: numbers, .from("x"))
        let values = try await store.values(in: numbers, .from("x"))
        let entries = try await store.entries(in: numbers, .from("x"))
        #expect(count == 2 && keys == ["x", "y"] && values == [8, 2] && entries.count == 2)
        let life = try await store.remainingLifetime(of: "x", in: numbers)
        let isThere = try await store.contains("x", in: numbers)
        let isTouched = try await store.touch("x", in: numbers)
        #expect(life == .unlimited && isThere && isTouched)
        let taken = try await store.take("x", in: numbers)
        let popped = try await store.popFirst(in: numbers)
        let poppedLast = try await store.popLast(in: numbers)
        #expect(taken == 8 && popped?.key == "a" && poppedLast?.key == "y")
        let isRemoved = try await store.remove("b", in: numbers)
        let removed = try await store.remove(["c", "zz"], in: numbers)
        let all = try await store.removeAll(in: numbers)
        #expect(isRemoved && removed == 1 && all == 2)
    }

    @Test func `each verb reports a closed store`() throws {
        try store.close()
        expect(.closed) { try store.get("a", in: numbers) }
        expect(.closed) { try store.set(1, for: "a", in: numbers) }
        expect(.closed) { try store.update("a", in: numbers) { $0 = 1 } }
        expect(.closed) { try store.popFirst(in: numbers) }
        expect(.closed) { try store.sweepExpiredEntries() }
    }

    @Test func `a cancelled task changes nothing`() async throws {
        let (store, numbers) = (store, numbers)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await store.increment("a", in: numbers)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await store.get("a", in: numbers) == 1)
    }

    @Test func `a rollback undoes every kind of change, and the table itself`() throws {
        let fresh = Bucket<String, Int>("fresh")
        try? store.write { tx in
            try tx.set(1, for: "x", in: fresh, expiring: .after(.seconds(5)))
            try tx.increment("a", in: numbers)
            _ = try tx.popLast(in: numbers)
            try tx.removeAll(in: numbers, .below("c"))
            throw CancellationError()
        }
        #expect(try store.entries(in: numbers).map(\.value) == [1, 2, 3, 4])
        #expect(try store.get("x", in: fresh) == nil)
        #expect(try store.read { tx in try tx.buckets().map(\.name) } == ["numbers"])
        let life = try store.write { tx in
            try? tx.savepoint { part in
                try part.touch("a", in: numbers, expiring: .after(.seconds(1)))
                throw CancellationError()
            }
            return try tx.remainingLifetime(of: "a", in: numbers)
        }
        #expect(life == .unlimited)
    }
}
