import Foundation
import Testing
import Workload

@testable import Coffer

/// Groups of rows: what SQLite computes is what Swift computes from the records.
@Suite(.againstHanging, .onOwnThreads) struct GroupingTests {
    private let fixture: RecordFixture
    private let sales: [Sale]

    enum Colour: String, Codable, CaseIterable { case red, green, blue }

    struct Sale: Record {
        static var encodings: [PartialKeyPath<Sale>: ColumnEncoding] {
            [\.code: .uuidText, \.paid: .date(.iso8601)]
        }

        var id: Int
        var region: String
        var shop: Int?
        var colour: Colour
        var code: UUID
        var amount: Int
        var price: Double
        var weight: Double?
        var sold: Date
        var paid: Date?
        var tags: [Int]
        var cost: Decimal
        var photo: Lazy<Data>?

        init(_ id: Int, _ random: inout SeededGenerator, _ codes: [UUID]) {
            self.id = id
            region = ["north", "North", "süd", "s\u{0}", ""][Int.random(in: 0..<5, using: &random)]
            let shop = Int.random(in: 0...3, using: &random)
            self.shop = shop == 0 ? nil : shop
            colour = Colour.allCases[Int.random(in: 0..<3, using: &random)]
            code = codes[Int.random(in: 0..<2, using: &random)]
            amount = .random(in: -50...50, using: &random)
            // Halves add up exactly, in any order.
            price = Double(Int.random(in: 0...99, using: &random)) / 2
            weight = Bool.random(using: &random) ? nil : 0.5
            sold = Date(timeIntervalSinceReferenceDate: Double(id % 17))
            paid = id % 4 == 0 ? Date(timeIntervalSince1970: Double(id % 11) * 60) : nil
            tags = [id % 2]
            cost = Decimal(id)
        }
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "groups")
        let codes = [UUID(), UUID()]
        sales = (1...300).map { id in Sale(id, &random, codes) }
        try fixture.store.write { [sales] tx in try tx.insert(sales) }
    }

    private func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try fixture.store.read(body)
    }

    // MARK: Groups

    @Test func `each aggregate of each group is what the records give`() throws {
        let found = try read { tx in
            try tx.fetch(
                Sale.group(by: \.region), .count, .sum(\.amount), .average(\.price),
                .min(\.sold), .max(\.paid), .count(\.shop), .count(distinct: \.shop))
        }
        let expected = Dictionary(grouping: sales, by: \.region)
        #expect(found.count == expected.count)
        for (region, count, sum, mean, first, paid, shops, kinds) in found {
            let rows = try #require(expected[region])
            #expect(count == rows.count && sum == rows.map(\.amount).reduce(0, +))
            #expect(mean == rows.map(\.price).reduce(0, +) / Double(rows.count))
            #expect(first == rows.map(\.sold).min() && paid == rows.compactMap(\.paid).max())
            #expect(shops == rows.compactMap(\.shop).count)
            #expect(kinds == Set(rows.compactMap(\.shop)).count)
        }
    }

    @Test func `several properties make a group for each combination`() throws {
        let found = try read { tx in
            try tx.fetch(
                Sale.group(by: \.shop, \.colour, \.code).order(by: \.shop).order(by: \.colour)
                    .order(by: \.code), .sum(\.weight), .average(\.weight))
        }
        let expected = Dictionary(grouping: sales) { "\($0.shop ?? 0) \($0.colour) \($0.code)" }
        #expect(found.count == expected.count)
        for (shop, colour, code, sum, mean) in found {
            let rows = try #require(expected["\(shop ?? 0) \(colour) \(code)"])
            let weights = rows.compactMap(\.weight)
            #expect(sum == weights.reduce(0, +))
            #expect(mean == (weights.isEmpty ? nil : sum / Double(weights.count)))
        }
        let shops = found.map(\.0)
        #expect(shops == shops.sorted { ($0 ?? 0) < ($1 ?? 0) } && shops.first == .some(nil))
    }

    @Test func `a grouping without aggregates is the distinct values`() throws {
        let found: [(String, Colour)] = try read { tx in
            try tx.fetch(Sale.group(by: \.region, \.colour))
        }
        #expect(Set(found.map { "\($0) \($1)" }) == Set(sales.map { "\($0.region) \($0.colour)" }))
        let regions: [String] = try read { tx in
            try tx.fetch(Sale.group(by: \.region).order(by: \.region))
        }
        #expect(
            regions
                == Set(sales.map(\.region)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    struct Visit: Record {
        var id: Int
        var began: Date
        var ended: Date?
    }

    /// Another program's dates count from 1970, and those of new columns from 2001.
    @Test(arguments: [true, false])
    func `dates come back from either count, and are compared in it`(isForeign: Bool) throws {
        if isForeign {
            try fixture.execute(
                "CREATE TABLE visit (id INTEGER PRIMARY KEY, began REAL, ended REAL)")
        }
        let dates = (0..<6).map { Date(timeIntervalSince1970: 1_700_000_000 + Double($0)) }
        try fixture.store.write { tx in
            try tx.insert(
                dates.indices.map { Visit(id: $0, began: dates[$0 / 2], ended: dates[$0]) })
        }
        let groups = Visit.group(by: \.began).having(.min(\.ended) >= dates[2]).order(by: \.began)
        let found = try read { tx in try tx.fetch(groups, .max(\.ended)) }
        #expect(found.map(\.0) == [dates[1], dates[2]])
        #expect(found.map(\.1) == [dates[3], dates[5]])
    }

    // MARK: Conditions, orders, limits

    @Test func `a condition chooses groups by their aggregates`() throws {
        func regions(_ condition: GroupCondition<Sale>) throws -> Set<Int?> {
            let found: [Int?] = try read { tx in
                try tx.fetch(Sale.group(by: \.shop).having(condition))
            }
            return Set(found)
        }
        func shops(_ isChosen: ([Sale]) -> Bool) -> Set<Int?> {
            Set(Dictionary(grouping: sales, by: \.shop).filter { isChosen($0.value) }.keys)
        }
        let limit = sales.count / 4
        #expect(try regions(.count > limit) == shops { $0.count > limit })
        #expect(try regions(!(.count > limit)) == shops { $0.count <= limit })
        #expect(try regions(.count >= limit) == shops { $0.count >= limit })
        #expect(try regions(.count < limit) == shops { $0.count < limit })
        #expect(try regions(.count == limit) == shops { $0.count == limit })
        #expect(try regions(.count != limit) == shops { $0.count != limit })
        #expect(
            try regions(.sum(\.amount) > 0 && .average(\.price) <= 25)
                == shops {
                    $0.map(\.amount).reduce(0, +) > 0
                        && $0.map(\.price).reduce(0, +) / Double($0.count) <= 25
                })
        let last = Date(timeIntervalSinceReferenceDate: 16)
        #expect(
            try regions(.max(\.sold) == last || .min(\.colour) != .blue)
                == shops { $0.map(\.sold).max() == last || !$0.contains { $0.colour == .blue } })
        #expect(try regions(.max(\.paid) == nil) == shops { $0.allSatisfy { $0.paid == nil } })
        #expect(
            try regions(.max(\.paid) > Date(timeIntervalSince1970: 540))
                == shops { $0.contains { ($0.paid ?? .distantPast).timeIntervalSince1970 > 540 } })
    }

    @Test func `groups come in the order of an aggregate, and only the first ones`() throws {
        let all = try read { tx in
            try tx.fetch(
                Sale.group(by: \.region).order(by: .sum(\.amount), .descending)
                    .order(by: \.region), .sum(\.amount))
        }
        #expect(all.map(\.1) == all.map(\.1).sorted(by: >))
        let some = try read { tx in
            try tx.fetch(
                Sale.group(by: \.region).order(by: .sum(\.amount), .descending)
                    .order(by: \.region).limit(2, offset: 1), .sum(\.amount))
        }
        #expect(some.map(\.0) == all[1...2].map(\.0))
        let rest = try read { tx in
            try tx.fetch(
                Sale.group(by: \.region).order(by: .count).order(by: \.region)
                    .limit(.max, offset: 3), .count)
        }
        #expect(rest.count == 2)
        let last = try read { tx in
            try tx.fetch(
                Sale.group(by: \.region).order(by: .sum(\.amount)).limit(.max, offset: 4), .count)
        }
        #expect(last.map(\.0) == [all[0].0])
    }

    @Test func `a query with a limit makes groups of those rows alone`() throws {
        let first = Sale.where(\.amount > 0).order(by: \.id).limit(20)
        let found = try read { tx in
            try tx.fetch(
                first.group(by: \.shop).having(.max(\.price) > 0).order(by: .min(\.sold)),
                .count, .sum(\.amount))
        }
        let rows: [Sale] = Array(sales.filter { $0.amount > 0 }.prefix(20))
        let (rowCount, sum): (Int, Int) = found.reduce((0, 0)) { ($0.0 + $1.1, $0.1 + $1.2) }
        #expect(rowCount == rows.count)
        let expected: Int = rows.reduce(0) { $0 + $1.amount }
        #expect(sum == expected)
        let count = try read { tx in try tx.aggregate(first, .count) }
        #expect(count == 20)
    }

    @Test func `one pass gives several aggregates of a query, and nothing for no rows`() throws {
        let some = Sale.where(\.shop == 2)
        let found = try read { tx in
            try tx.aggregate(some, .count, .min(\.amount), .max(\.amount), .average(\.weight))
        }
        let rows = sales.filter { $0.shop == 2 }
        let (count, least, greatest, mean) = try #require(found)
        #expect(count == rows.count && least == rows.map(\.amount).min())
        #expect(greatest == rows.map(\.amount).max())
        let weights = rows.compactMap(\.weight)
        #expect(mean == weights.reduce(0, +) / Double(weights.count))
        let none = try read { tx in try tx.aggregate(Sale.where(\.shop == 9), .count) }
        #expect(none == nil)
        struct Absent: Record { var id: Int }
        #expect(try read { tx in try tx.aggregate(Absent.all, .count, .max(\.id)) } == nil)
        #expect(try read { tx in try tx.fetch(Absent.group(by: \.id), .count) }.isEmpty)
    }

    // MARK: Bad input

    private func expect(
        _ code: StoreError.Code, _ verb: (inout ReadTransaction) throws -> Void
    ) {
        #expect {
            try read { tx in try verb(&tx) }
        } throws: { ($0 as? StoreError)?.code == code }
    }

    @Test func `what cannot be computed is an error, not another number`() throws {
        expect(.misuse) { tx in _ = try tx.fetch(Sale.group(by: \.shop), .sum(\.cost)) }
        expect(.misuse) { tx in _ = try tx.fetch(Sale.group(by: \.shop), .max(\.tags)) }
        expect(.misuse) { tx in _ = try tx.fetch(Sale.group(by: \.photo), .count) }
        expect(.misuse) { tx in
            _ = try tx.fetch(Sale.group(by: \.shop).order(by: \.region), .count)
        }
        expect(.misuse) { tx in _ = try tx.fetch(Sale.group(by: \.shop).limit(-1), .count) }
        expect(.misuse) { tx in
            _ = try tx.fetch(Sale.group(by: \.shop).having(.max(\.paid) > nil), .count)
        }
        expect(.misuse) { tx in _ = try tx.fetch(Sale.group(by: \.region.count), .count) }
        try fixture.execute("UPDATE sale SET amount = 9223372036854775807")
        expect(.sql) { tx in _ = try tx.fetch(Sale.group(by: \.shop), .sum(\.amount)) }
        // A mean needs no sum that fits.
        let means = try read { tx in try tx.fetch(Sale.group(by: \.shop), .average(\.amount)) }
        #expect(means.allSatisfy { $0.1 == 0x1p63 })
    }

    @Test(arguments: ["'twelve'", "x'31'", "9e999"])
    func `values that are not numbers are found wherever they are added`(value: String) throws {
        try fixture.execute("UPDATE sale SET shop = 2 WHERE id IN (7, 8)")
        try fixture.execute(SQL(text: "UPDATE sale SET price = \(value) WHERE id = 7"))
        if value == "9e999" { try fixture.execute("UPDATE sale SET price = -9e999 WHERE id = 8") }
        let groups = Sale.group(by: \.shop)
        expect(.mismatch) { tx in _ = try tx.fetch(groups, .sum(\.price)) }
        expect(.mismatch) { tx in _ = try tx.fetch(groups, .average(\.price)) }
        expect(.mismatch) { tx in _ = try tx.aggregate(Sale.all, .average(\.price)) }
        // Also where the group would have been left out.
        expect(.mismatch) { tx in
            _ = try tx.fetch(groups.having(.average(\.price) < 0), .count)
        }
        for order in [QueryOrder.ascending, .descending] {
            expect(.mismatch) { tx in
                _ = try tx.fetch(groups.order(by: .sum(\.price), order).limit(1), .count)
            }
            expect(.mismatch) { tx in
                let second = groups.order(by: .sum(\.price), order).limit(1, offset: 1)
                _ = try tx.fetch(second, .count)
            }
        }
        expect(.mismatch) { tx in
            let second = groups.having(.average(\.price) > 1e9).order(by: \.shop)
                .limit(1, offset: 1)
            _ = try tx.fetch(second, .count)
        }
        expect(.mismatch) { tx in
            _ = try tx.fetch(Sale.group().having(.average(\.price) > 1e9), .count)
        }
        #expect {
            try read { tx in try tx.fetch(groups, .average(\.weight), .sum(\.price)) }
        } throws: { ($0 as? StoreError)?.column == "sum(price)" }
        // Groups that a condition leaves out are not asked for, and take no place.
        let without = groups.having(.max(\.shop) != 2).order(by: \.shop)
        let rest = try read { tx in
            try tx.fetch(without.limit(1, offset: 2), .sum(\.price), .count)
        }
        #expect(rest.map(\.0) == [3])
        let none: [Double] = try read { tx in
            try tx.fetch(Sale.group().having(.count < 0), .sum(\.price))
        }
        #expect(none.isEmpty)
        // Other groups are what they are.
        let others = try read { tx in
            try tx.fetch(Sale.where(\.shop == 1).group(by: \.shop), .sum(\.price))
        }
        let own: [Sale] = sales.filter { $0.shop == 1 && ($0.id > 8 || $0.id < 7) }
        let sum: Double = own.map(\.price).reduce(0, +)
        #expect(others.map(\.1) == [sum])
    }

    @Test func `NULL in a column that cannot be nil is a mismatch that names the column`() throws {
        try fixture.execute("ALTER TABLE sale RENAME TO old")
        let columns =
            "id, region, shop, colour, code, amount, price, weight, paid, tags, cost, photo"
        try fixture.execute(
            SQL(text: "CREATE TABLE sale (sold REAL_SINCE_2001, \(columns))"))
        try fixture.execute(
            SQL(text: "INSERT INTO sale SELECT sold, \(columns) FROM old"))
        try fixture.execute("UPDATE sale SET region = NULL, amount = NULL WHERE shop = 1")
        #expect {
            try read { tx in try tx.fetch(Sale.group(by: \.region), .count) }
        } throws: {
            let error = $0 as? StoreError
            return error?.code == .mismatch && error?.column == "region"
        }
        #expect {
            try read { tx in try tx.fetch(Sale.group(by: \.shop), .max(\.amount)) }
        } throws: {
            let error = $0 as? StoreError
            return error?.code == .mismatch && error?.column == "max(amount)"
        }
    }

    @Test func `texts are compared by their bytes, whatever the collation of the column`() throws {
        struct Word: Record {
            var id: Int
            var text: String
            var shelf: Int
        }
        try fixture.execute(
            "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT COLLATE NOCASE, shelf INTEGER)")
        try fixture.execute(
            "INSERT INTO word VALUES (1, 'a', 1), (2, 'B', 1), (3, 'C', 2), (4, 'c', 2)")
        let shelves = Word.group(by: \.shelf).order(by: \.shelf)
        let ends = try read { tx in try tx.fetch(shelves, .min(\.text), .max(\.text)) }
        #expect(ends.map(\.1) == ["B", "C"] && ends.map(\.2) == ["a", "c"])
        let found: [Int] = try read { tx in try tx.fetch(shelves.having(.max(\.text) == "c")) }
        #expect(found == [2])
        let words: [String] = try read { tx in
            try tx.fetch(Word.group(by: \.text).order(by: \.text))
        }
        #expect(words == ["B", "C", "a", "c"])
    }

    @Test func `a lazy property is counted, and no value of it compared`() throws {
        try fixture.execute("UPDATE sale SET photo = x'0102' WHERE id <= 10")
        let count = try read { tx in try tx.aggregate(Sale.all, .count(\.photo)) }
        #expect(count == 10)
        expect(.misuse) { tx in _ = try tx.aggregate(Sale.all, .count(distinct: \.photo)) }
        expect(.misuse) { tx in _ = try tx.aggregate(Sale.all, .max(\.photo)) }
    }

    @Test func `a description has the SQL and no value`() {
        let text = "\(Sale.group(by: \.shop).having(.max(\.region) == "secret").limit(3))"
        #expect(text.contains("GROUP BY") && text.contains("HAVING") && !text.contains("secret"))
        #expect("\(Sale.group(by: \.region.count))".contains("misuse"))
    }

    // MARK: Work

    private func plan(_ sql: SQL) throws -> String {
        try read { tx throws in
            try tx.rows("EXPLAIN QUERY PLAN \(sql)")
                .map { try $0.get("detail", as: String.self) }.joined(separator: "\n")
        }
    }

    @Test func `rows are sorted once at most, and not with an index`() throws {
        try fixture.execute("CREATE INDEX sale_shop ON sale(shop)")
        let plan = try RecordPlan.of(Sale.self)
        let shops = try Sale.group(by: \.shop).order(by: \.shop).selectSQL([], plan)
        #expect(try !self.plan(shops).contains("TEMP B-TREE"))
        let regions = try Sale.group(by: \.region).order(by: \.region).selectSQL([], plan)
        #expect(try self.plan(regions).split(separator: "TEMP B-TREE").count == 2)
        let all = try Sale.group().selectSQL([], plan)
        #expect(try !self.plan(all).contains("TEMP B-TREE"))
    }
}
