import Foundation
import Testing
import Workload

@testable import Coffer

/// Updates that set a property to the result of a calculation, or to another property.
@Suite(.againstHanging, .onOwnThreads) struct CalculatedUpdateTests {
    private let fixture: RecordFixture
    private let counters: [Counter]

    struct Counter: Record, Equatable {
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] {
            [\.closed: .date(.unixMilliseconds)]
        }
        var id: Int
        var count: Int
        var total: Int?
        var small: Int8
        var positive: UInt32
        var rank: Double
        var share: Float
        var mean: Double?
        var name: String
        var title: String?
        var opened: Date
        var seen: Date?
        var closed: Date
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "counters")
        counters = (1...60).map { id in
            Counter(
                id: id, count: Int.random(in: -9...9, using: &random),
                total: id % 4 == 0 ? nil : Int.random(in: -9...9, using: &random),
                small: Int8.random(in: -9...9, using: &random),
                positive: UInt32.random(in: 0...9, using: &random),
                rank: Double(Int.random(in: -20...20, using: &random)) / 4, share: 0.5,
                mean: id % 5 == 0 ? nil : Double(id) / 8, name: "n\(id)",
                title: id % 3 == 0 ? nil : "t\(id)",
                opened: Date(timeIntervalSinceReferenceDate: Double(id)),
                seen: id % 2 == 0 ? nil : Date(timeIntervalSinceReferenceDate: Double(id * 2)),
                closed: Date(timeIntervalSince1970: Double(id)))
        }
        let counters = counters
        try fixture.store.write { tx in try tx.insert(counters) }
    }

    private func stored() throws -> [Counter] {
        try fixture.store.read { tx in try tx.fetch(Counter.order(by: \.id)) }
    }

    /// Runs an update, and compares all rows with those that Swift changes.
    private func check(
        _ update: RecordUpdate<Counter>, _ line: Int = #line,
        _ change: (inout Counter) -> Void
    ) throws {
        let expected = try stored().map { counter in
            var changed = counter
            change(&changed)
            return changed
        }
        _ = try fixture.store.write { tx in try tx.update(update) }
        #expect(try stored() == expected, "line \(line)")
    }

    @Test func `a property is set to the result of a calculation with the old values`() throws {
        try check(Counter.all.set(\.count, to: \.count + 1)) { $0.count += 1 }
        try check(Counter.where(\.id > 30).set(\.total, to: \.total * 2 - \.count)) {
            if $0.id > 30, let total = $0.total { $0.total = total * 2 - $0.count }
        }
        try check(Counter.all.set(\.rank, to: .double(\.count) / 4 + \.rank)) {
            $0.rank += Double($0.count) / 4
        }
        try check(Counter.all.set(\.small, to: \.small - 5).set(\.positive, to: \.positive + 7)) {
            $0.small -= 5
            $0.positive += 7
        }
        // Both see the old values.
        let swapped = Counter.where(\.total != nil).set(\.count, to: \.total * 1)
            .set(\.total, to: \.count * 1)
        try check(swapped) { counter in
            guard let total = counter.total else { return }
            (counter.count, counter.total) = (total, counter.count)
        }
    }

    @Test func `the result of an optional property is nil where the calculation is`() throws {
        try check(Counter.all.set(\.mean, to: \.mean / .double(\.count))) {
            guard let mean = $0.mean else { return }
            $0.mean = $0.count == 0 ? nil : mean / Double($0.count)
        }
        try check(Counter.all.set(\.total, to: \.total + \.count)) {
            if let total = $0.total { $0.total = total + $0.count }
        }
    }

    @Test func `a property is set to another one`() throws {
        try check(Counter.where(\.id < 40).set(\.opened, to: \.opened).set(\.title, to: \.name)) {
            if $0.id < 40 { $0.title = $0.name }
        }
        try check(Counter.all.set(\.seen, to: \.opened)) { $0.seen = $0.opened }
        let error = expect(.misuse) {
            try fixture.store.write { tx in
                try tx.update(Counter.all.set(\.closed, to: \.opened))
            }
        }
        #expect(error?.hint?.contains("ColumnEncoding") == true)
    }

    @Test func `a limit chooses the rows that are calculated`() throws {
        let first = Counter.order(by: \.rank).order(by: \.id).limit(7)
        let ids: [Int] = try fixture.store.read { tx in try tx.fetch(first, \.id) }
        try check(first.set(\.count, to: \.count * 10)) {
            if ids.contains($0.id) { $0.count *= 10 }
        }
    }

    /// A result that does not fit is an error, and no row has changed.
    private func refuse(
        _ update: RecordUpdate<Counter>, _ line: Int = #line
    ) throws {
        let before = try stored()
        let error = expect(.mismatch) {
            try fixture.store.write { tx throws in
                _ = expect(.mismatch) { try tx.update(update) }
                // The statement is undone, and the transaction goes on.
                #expect(try tx.fetch(Counter.order(by: \.id)) == before, "line \(line)")
                _ = try tx.update(update)
            }
        }
        #expect(error?.message.contains("= (") == true, "line \(line)")
        #expect(error?.table == "counter" && error?.hint != nil, "line \(line)")
        #expect(try stored() == before, "line \(line)")
    }

    @Test func `a result that does not fit the property changes no row`() throws {
        try fixture.execute("UPDATE counter SET count = \(Int.max) WHERE id = 60")
        try refuse(Counter.all.set(\.count, to: \.count + 1))
        try refuse(Counter.all.set(\.total, to: \.count * 2))
        try refuse(Counter.all.set(\.small, to: \.small * 100))
        try refuse(Counter.all.set(\.positive, to: \.positive - 10))
        // Nil, for a property that is not optional.
        try refuse(Counter.all.set(\.count, to: \.total + 1))
        try refuse(Counter.all.set(\.rank, to: \.rank / (\.rank - \.rank)))
        try refuse(Counter.all.set(\.name, to: \.name).set(\.count, to: \.count / 0))
    }

    @Test func `results at the bounds of a type fit`() throws {
        try check(Counter.all.set(\.small, to: \.small * 0 + 127)) { $0.small = 127 }
        try check(Counter.all.set(\.small, to: \.small * 0 + (-128))) { $0.small = -128 }
        try check(Counter.all.set(\.positive, to: \.positive * 0 + .max)) { $0.positive = .max }
        try check(Counter.all.set(\.count, to: \.count * 0 + .max)) { $0.count = .max }
        try check(Counter.all.set(\.count, to: \.count * 0 + .min)) { $0.count = .min }
    }

    @Test func `what another program stored is never overwritten as if it were nil`() throws {
        try fixture.execute(
            "UPDATE counter SET count = 'x', total = '12 a', mean = '1,5' WHERE id = 5")
        try fixture.execute("UPDATE counter SET total = 2.5 WHERE id = 6")
        for update in [
            Counter.all.set(\.count, to: \.count + 1), Counter.all.set(\.total, to: \.total + 1),
            Counter.all.set(\.mean, to: \.mean * 2), Counter.all.set(\.total, to: \.total * 1),
        ] {
            _ = expect(.mismatch) { try fixture.store.write { tx in try tx.update(update) } }
        }
        #expect(
            try fixture.values("SELECT count, total, mean FROM counter WHERE id = 5")
                == ["x", "12 a", "1,5"])
        let others = Counter.where(\.id != 5 && \.id != 6).set(\.total, to: \.total + 1)
        #expect(try fixture.store.write { tx in try tx.update(others) } == 58)
    }

    @Test func `a column that would change the values is refused`() throws {
        struct Account: Record {
            var id: Int
            var balance: Int
            var limit: Int
        }
        try fixture.execute(
            "CREATE TABLE account(id INTEGER PRIMARY KEY, balance REAL, \"limit\" INTEGER)")
        try fixture.execute("INSERT INTO account VALUES (1, 0, 9007199254740993)")
        try fixture.store.write { tx throws in
            _ = expect(.mismatch) { try tx.update(Account.all.set(\.balance, to: \.limit)) }
            _ = expect(.mismatch) { try tx.update(Account.all.set(\.balance, to: 1)) }
            #expect(try tx.rows("SELECT balance FROM account")[0][0] == .real(0))
        }
    }

    @Test func `a value of another column, or a condition, that fails at some row changes none`()
        throws
    {
        try fixture.execute("UPDATE counter SET count = \(Int.min) WHERE id = 9")
        try fixture.execute("CREATE INDEX e ON counter(abs(total))")
        let before = try stored()
        try fixture.store.write { tx throws in
            _ = expect(.sql) { try tx.update(Counter.all.set(\.total, to: \.count)) }
            _ = expect(.sql) { try tx.delete(Counter.where(.sql("abs(count) >= 0"))) }
        }
        #expect(try stored() == before)
    }

    @Test func `a property of 32 bits is not calculated`() throws {
        let update = Counter.all.set(\.share, to: \.share * 2)
        let error = expect(.misuse) { try fixture.store.write { tx in try tx.update(update) } }
        #expect(error?.table == "counter" && error?.hint != nil)
    }

    @Test func `SQL of your own that fails at some row changes none`() throws {
        let update = Counter.all.set(\.name, to: "new")
            .set(\.total, sql: "abs(CASE WHEN id = 9 THEN \(Int.min) ELSE 1 END)")
        let before = try stored()
        try fixture.store.write { tx throws in
            _ = expect(.sql) { try tx.update(update) }
        }
        #expect(try stored() == before)
    }

    @Test func `properties without numbers, and dates of two counts, are refused`() throws {
        struct Period: Record {
            var id: Int
            var from: Date
            var to: Date
        }
        try fixture.execute(
            "CREATE TABLE period(id INTEGER PRIMARY KEY, \"from\" REAL_SINCE_2001, \"to\" REAL)")
        let date = Date(timeIntervalSinceReferenceDate: 9)
        try fixture.store.write { tx throws in
            try tx.insert(Period(id: 1, from: date, to: date))
            _ = expect(.mismatch) { try tx.update(Period.all.set(\.to, to: \.from)) }
            _ = expect(.misuse) {
                try tx.update(Counter.all.set(\.count, to: \.name.utf8.count + 1))
            }
            #expect(try tx.fetch(Period.all, \.to) == [date])
        }
    }

    @Test func `a type without a table has no rows to update`() throws {
        struct Nothing: Record {
            var id: Int
            var count: Int
        }
        let update = Nothing.all.set(\.count, to: \.count + 1)
        #expect(try fixture.store.write { tx in try tx.update(update) } == 0)
    }
}
