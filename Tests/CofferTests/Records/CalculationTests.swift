import Foundation
import Testing
import Workload

@testable import Coffer

/// Conditions, orders and aggregates that compare properties and calculate with them.
@Suite(.againstHanging, .onOwnThreads) struct CalculationTests {
    private let fixture: RecordFixture
    private let items: [Item]

    struct Item: Record, Equatable {
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] {
            [\.shipped: .date(.unixMilliseconds), \.returned: .date(.iso8601)]
        }
        var id: Int
        var order: Int
        var price: Double
        var count: Int
        var rebate: Int?
        var limit: Int?
        var size: Int16
        var name: String
        var label: String
        var made: Date
        var sold: Date?
        var shipped: Date
        var returned: Date
        var tags: [String]
        var marks: [String]
        var note: Lazy<String>
    }

    private static func item(_ id: Int, _ random: inout SeededGenerator) -> Item {
        let date = Date(
            timeIntervalSinceReferenceDate: Double(Int.random(in: 0...5, using: &random)))
        let texts = ["a", "B", "b", "é", ""]
        return Item(
            id: id, order: id % 7, price: Double(Int.random(in: -20...20, using: &random)) / 4,
            count: Int.random(in: -5...5, using: &random),
            rebate: id % 3 == 0 ? nil : Int.random(in: -3...3, using: &random),
            limit: id % 4 == 0 ? nil : Int.random(in: -3...3, using: &random),
            size: Int16.random(in: -9...9, using: &random),
            name: texts.randomElement(using: &random) ?? "",
            label: texts.randomElement(using: &random) ?? "", made: date,
            sold: id % 5 == 0 ? nil : Date(timeIntervalSinceReferenceDate: Double(id % 6)),
            shipped: date, returned: date, tags: [texts[id % 2]], marks: [texts[id % 3]],
            note: Lazy("n"))
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "rows")
        items = (1...150).map { Self.item($0, &random) }
        let items = items
        try fixture.store.write { tx in try tx.insert(items) }
    }

    private func ids(_ query: Query<Item>) throws -> [Int] {
        try fixture.store.read { tx in try tx.fetch(query, \.id) }
    }

    /// The rows of a condition, and the rows of its opposite, are those that Swift finds.
    private func check(
        _ condition: Condition<Item>, _ line: Int = #line, _ isWanted: (Item) -> Bool
    ) throws {
        let found = try ids(Item.where(condition).order(by: \.id))
        #expect(found == items.filter(isWanted).map(\.id), "line \(line)")
        let others = try ids(Item.where(!condition).order(by: \.id))
        #expect(others == items.filter { !isWanted($0) }.map(\.id), "line \(line)")
    }

    @Test func `two properties are compared as Swift compares their values`() throws {
        try check(\.count == \.order) { $0.count == $0.order }
        try check(\.count != \.order) { $0.count != $0.order }
        try check(\.count < \.order) { $0.count < $0.order }
        try check(\.count <= \.order) { $0.count <= $0.order }
        try check(\.count > \.order) { $0.count > $0.order }
        try check(\.count >= \.order) { $0.count >= $0.order }
        try check(\.name == \.label) { $0.name == $0.label }
        try check(\.name < \.label) { $0.name.utf8.lexicographicallyPrecedes($0.label.utf8) }
        try check(\.made >= \.made && \.name != "a") { $0.name != "a" }
        try check(\.tags == \.marks) { $0.tags == $0.marks }
    }

    @Test func `nil equals nil, and is neither less nor greater`() throws {
        try check(\.rebate == \.limit) { $0.rebate == $0.limit }
        try check(\.rebate != \.limit) { $0.rebate != $0.limit }
        try check(\.rebate < \.limit) { item in
            item.rebate.flatMap { rebate in item.limit.map { rebate < $0 } } ?? false
        }
        try check(\.rebate == \.count) { $0.rebate == $0.count }
        try check(\.count != \.rebate) { $0.count != $0.rebate }
        try check(\.count >= \.limit) { item in item.limit.map { item.count >= $0 } ?? false }
        try check(\.limit <= \.count) { item in item.limit.map { $0 <= item.count } ?? false }
        try check(\.made < \.sold) { item in item.sold.map { item.made < $0 } ?? false }
        try check(\.sold == \.made) { $0.sold == $0.made }
        try check(\.sold > \.made || \.sold == nil) { item in
            item.sold.map { $0 > item.made } ?? true
        }
    }

    @Test func `calculations are those of Swift`() throws {
        try check(\.price * .double(\.count) > 3) { $0.price * Double($0.count) > 3 }
        try check(\.count + \.order == 4) { $0.count + $0.order == 4 }
        try check(\.count - \.order <= -4) { $0.count - $0.order <= -4 }
        try check(\.order - \.count < 2) { $0.order - $0.count < 2 }
        try check(\.count * 3 + 1 > \.order) { $0.count * 3 + 1 > $0.order }
        try check(\.order >= 2 * \.count) { $0.order >= 2 * $0.count }
        try check(\.order / 2 == \.count) { $0.order / 2 == $0.count }
        try check(\.count / 2 != -1) { $0.count / 2 != -1 }
        try check(\.size + 1 > 3) { $0.size + 1 > 3 }
        try check(\.count > \.order - 3) { $0.count > $0.order - 3 }
        try check(\.count * \.order > \.count + \.order) {
            $0.count * $0.order > $0.count + $0.order
        }
    }

    @Test func `a calculation with nil, and a division by zero, are nil`() throws {
        let count = 3
        try check(\.rebate + \.limit > count) { item in
            item.rebate.flatMap { rebate in item.limit.map { rebate + $0 > count } } ?? false
        }
        try check(\.rebate + 1 != count) { $0.rebate.map { $0 + 1 != count } ?? true }
        try check(\.order / \.count >= 0) { $0.count != 0 && $0.order / $0.count >= 0 }
        try check(10 / \.count == 2) { $0.count != 0 && 10 / $0.count == 2 }
    }

    @Test func `a calculation orders rows, and is part of groups`() throws {
        let worth = { (item: Item) in item.price * Double(item.count) }
        let found = try ids(
            Item.order(by: \.price * .double(\.count), .descending).order(by: \.id).limit(20))
        let sorted = items.sorted {
            worth($0) != worth($1) ? worth($0) > worth($1) : $0.id < $1.id
        }
        #expect(found == sorted.prefix(20).map(\.id))
        let doubled: Calculation<Item, Int> = \.count * 2
        let rebate: Calculation<Item, Int> = \.rebate * 2
        let groups = Item.where(\.count > -4).group(by: \.order)
            .having(.sum(doubled) > -8 && .max(\.count - \.order) != nil)
            .order(by: .sum(doubled), .descending).order(by: \.order)
        let rows = try fixture.store.read { tx throws in
            try tx.fetch(
                groups, .sum(doubled), .average(\.count + 1), .min(rebate), .max(\.count), .count)
        }
        let expected = Dictionary(grouping: items.filter { $0.count > -4 }, by: \.order)
            .filter { $1.reduce(0) { $0 + $1.count * 2 } > -8 }
            .sorted { left, right in
                let sums = [left, right].map { $0.value.reduce(0) { $0 + $1.count * 2 } }
                return sums[0] != sums[1] ? sums[0] > sums[1] : left.key < right.key
            }
        #expect(rows.map(\.0) == expected.map(\.key))
        #expect(rows.map(\.1) == expected.map { $1.reduce(0) { $0 + $1.count * 2 } })
        for ((_, _, mean, least, greatest, count), (_, items)) in zip(rows, expected) {
            let wanted = Double(items.reduce(0) { $0 + $1.count + 1 }) / Double(items.count)
            #expect(abs((mean ?? .nan) - wanted) < 1e-9)
            #expect(least == items.compactMap(\.rebate).map { $0 * 2 }.min())
            #expect(greatest == items.map(\.count).max() && count == items.count)
        }
    }

    @Test func `values are bound in their order, wherever calculations stand`() throws {
        let (two, three, half) = (2, 3, 0.5)
        let condition: Condition<Item> = \.count * two > -three
        let grouping = Item.where(condition).group(by: \.order)
            .having(.sum(\.count + three) > two).order(by: .min(\.price * half))
        let (sums, description) = try fixture.store.read { tx throws in
            (try tx.fetch(grouping, .sum(\.count - two), .max(\.price * half)), "\(grouping)")
        }
        let kept = items.filter { $0.count * 2 > -3 }
        let groups = Dictionary(grouping: kept, by: \.order)
            .filter { $1.reduce(0) { $0 + $1.count + 3 } > 2 }
        #expect(Set(sums.map(\.0)) == Set(groups.keys) && !groups.isEmpty)
        for (order, sum, greatest) in sums {
            let own = groups[order] ?? []
            #expect(sum == own.reduce(0) { $0 + $1.count - 2 })
            #expect(greatest == own.map { $0.price * 0.5 }.max())
        }
        #expect(!description.contains("0.5") && description.contains("?"))
    }

    @Test func `a result beyond 64 bits is no integer, and is never given as one`() throws {
        var random = SeededGenerator(for: #function)
        var large = Self.item(1000, &random)
        (large.count, large.order) = (.max, 99)
        let item = large
        try fixture.store.write { tx in try tx.insert(item) }
        #expect(try ids(Item.where(\.count + 1 > \.count)).contains(1000))
        try fixture.store.read { tx throws in
            let all = Item.where(\.order == 99).group(by: \.order)
            let error = expect(.mismatch) { try tx.fetch(all, .max(\.count + 1)) }
            #expect(error?.column?.contains("count") == true)
            _ = expect(.mismatch) { try tx.fetch(all, .sum(\.count * 2)) }
            let rows = try tx.fetch(all, .max(\.count - 1))
            #expect(rows.count == 1 && rows.first?.1 == Int.max - 1)
        }
    }

    struct Price: Record {
        var id: Int
        var price: Double
        var weight: Double
        var count: Int
    }

    @Test func `a calculation takes what another program stored for what Swift would read`() throws
    {
        try fixture.execute(
            "CREATE TABLE price(id INTEGER PRIMARY KEY, price NUMERIC, weight NUMERIC, count)")
        try fixture.execute(
            """
            INSERT INTO price VALUES (1, 7.0, 2.0, 1), (2, 'x', 2.0, 'x'), (3, 1, 1, x'01'),
            (4, 1, 1, 2.5)
            """)
        try fixture.store.write { tx throws in
            #expect(try tx.fetch(Price.where(\.price / \.weight == 3.5), \.id) == [1])
            #expect(try tx.fetch(Price.where(\.price * 2 < 9), \.id) == [3, 4])
            #expect(try tx.delete(Price.where(\.count * 2 < 9)) == 1)
            #expect(try tx.fetch(Price.all, \.id) == [2, 3, 4])
        }
    }

    @Test func `texts that another program put among numbers fail an aggregate`() throws {
        try fixture.execute("UPDATE item SET count = 'x' WHERE id = 5")
        try fixture.store.read { tx throws in
            let error = expect(.mismatch) { try tx.aggregate(Item.all, .sum(\.count * 2)) }
            #expect(error?.column == "sum((count * ?))")
            let groups = Item.group(by: \.order).having(.max(\.order - \.count) > 3)
            _ = expect(.mismatch) { try tx.fetch(groups) }
            #expect(try tx.aggregate(Item.where(\.id > 5), .sum(\.count * 2)) != nil)
        }
    }

    struct Span: Record {
        var id: Int
        var from: Date
        var to: Date
    }

    @Test func `dates that count from different moments are not compared`() throws {
        let late = Date(timeIntervalSinceReferenceDate: 9)
        try fixture.execute(
            "CREATE TABLE span(id INTEGER PRIMARY KEY, \"from\" REAL_SINCE_2001, \"to\" REAL)")
        try fixture.store.write { tx throws in
            try tx.insert(Span(id: 1, from: late, to: late))
            let error = expect(.mismatch) { try tx.fetch(Span.where(\.from == \.to)) }
            #expect(error?.table == "span" && error?.hint != nil)
            _ = expect(.mismatch) { try tx.delete(Span.where(\.id == 1 && \.from <= \.to)) }
            #expect(try tx.count(Span.where(\.from == \.from)) == 1)
        }
        try fixture.execute("DROP TABLE span")
        #expect(try fixture.store.read { tx in try tx.count(Span.where(\.from == \.to)) } == 0)
    }

    @Test func `what cannot be compared or calculated is told before SQLite sees it`() throws {
        try fixture.store.read { tx throws in
            let forms = expect(.misuse) { try tx.count(Item.where(\.shipped == \.returned)) }
            #expect(forms?.hint?.contains("ColumnEncoding") == true)
            _ = expect(.misuse) { try tx.count(Item.where(\.made < \.shipped)) }
            _ = expect(.misuse) { try tx.count(Item.where(\.tags < \.marks)) }
            _ = expect(.misuse) { try tx.count(Item.where(\.note == \.note)) }
            _ = expect(.misuse) { try tx.count(Item.where(\.name.utf8.count + 1 > 2)) }
            _ = expect(.mismatch) { try tx.count(Item.where(\.price * .nan > 2)) }
            let page = Item.order(by: \.count + 1).inOrderOfKey()
            let error = expect(.misuse) { try tx.fetch(page.after(items[0])) }
            #expect(error?.message.contains("calculation") == true)
        }
    }
}
