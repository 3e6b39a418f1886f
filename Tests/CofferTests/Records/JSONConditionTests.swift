import Foundation
import Testing
import Workload

@testable import Coffer

/// Conditions, orders and indexes on values inside the JSON of a column.
@Suite(.againstHanging, .onOwnThreads) struct JSONConditionTests {
    enum Kind: String, Codable, CaseIterable { case home, work }

    struct Geo: Codable, Equatable {
        var latitude: Double
        var zone: Int?
    }

    struct Address: Codable, Equatable {
        var city: String
        var zip: Int
        var isOpen: Bool
        var geo: Geo
        var kind: Kind
        var since: Date
        var key: UUID
        var note: String?
        var photo = Data()
        var price: Decimal = 0
        var size: UInt64 = 0
        var extra: Geo? = Geo(latitude: 1)
        var list: [Int]? = [1]

        var upper: String { city.uppercased() }

        enum CodingKeys: String, CodingKey {
            case city = "it's \"the\" town"
            case zip, isOpen, geo, kind, since, key, note, photo, price, size, extra, list
        }
    }

    struct Person: Record, Equatable {
        var id: Int
        var address: Address
        var work: Address?
        var tags: [String] = []
        var scores: [String: Int] = [:]

        static var jsonPaths: [PartialKeyPath<Person>: JSONPath] {
            [
                \.work?.city: JSONPath("work", "it's \"the\" town"),
                \.work?.geo.zone: JSONPath("work", "geo", "zone"),
                \.tags[0]: JSONPath("tags", 0), \.tags[2]: JSONPath("tags", 2),
                \.scores["a b"]: JSONPath("scores", "a b"),
            ]
        }
        static var indexes: [Index<Person>] {
            [
                Index(cofferOnly: \.address.city),
                Index(cofferOnly: \.address.geo.zone, \.work?.city),
            ]
        }
    }

    let fixture: RecordFixture
    let people: [Person]

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "JSON conditions")
        people = (1...60).map { id in
            Person(
                id: id, address: Self.address(&random),
                work: Bool.random(using: &random) ? Self.address(&random) : nil,
                tags: Array(["x", "y", "é\"\\/\n", "z"].shuffled(using: &random).prefix(id % 4)),
                scores: id % 3 == 0 ? ["a b": id, "c": 1] : [:])
        }
        let people = people
        try fixture.store.write { tx in
            try tx.create(Person.self)
            try tx.insert(people)
        }
    }

    private static func address(_ random: inout SeededGenerator) -> Address {
        let hasZone = Bool.random(using: &random)
        return Address(
            city: ["Oslo", "Åre/\u{1}\"\\", "", "Rome", "e\u{301}"].randomElement(using: &random)
                ?? "",
            zip: [Int.min, -1, 0, 7, Int.max].randomElement(using: &random) ?? 0,
            isOpen: .random(using: &random),
            geo: Geo(
                latitude: [0.1, -5, 1e300, .leastNonzeroMagnitude, 0].randomElement(using: &random)
                    ?? 0,
                zone: hasZone ? .random(in: 1...3, using: &random) : nil),
            kind: Kind.allCases.randomElement(using: &random) ?? .home,
            since: Date(timeIntervalSinceReferenceDate: .random(in: -9...9, using: &random)),
            key: UUID(), note: Bool.random(using: &random) ? "n" : nil)
    }

    private func ids(_ condition: Condition<Person>) throws -> [Int] {
        try fixture.store.read { tx in try tx.fetch(Person.where(condition).order(by: \.id), \.id) }
    }

    private func expected(_ isFound: (Person) -> Bool) -> [Int] {
        people.filter(isFound).map(\.id)
    }

    @Test func `a property of a stored struct is compared as Swift compares it`() throws {
        let first = people[0].address
        #expect(
            try ids(\.address.city == first.city)
                == expected { $0.address.city.utf8.elementsEqual(first.city.utf8) })
        #expect(
            try ids(\.address.city != first.city)
                == expected { !$0.address.city.utf8.elementsEqual(first.city.utf8) })
        for zip in [Int.min, 0, 6, Int.max] {
            #expect(try ids(\.address.zip < zip) == expected { $0.address.zip < zip })
            #expect(try ids(\.address.zip >= zip) == expected { $0.address.zip >= zip })
        }
        for latitude in [0.1, 1e300, .leastNonzeroMagnitude, 0] {
            #expect(
                try ids(\.address.geo.latitude == latitude)
                    == expected { $0.address.geo.latitude == latitude })
            #expect(
                try ids(\.address.geo.latitude > latitude)
                    == expected { $0.address.geo.latitude > latitude })
        }
        #expect(try ids(\.address.isOpen == true) == expected(\.address.isOpen))
        #expect(try ids(\.address.kind == .work) == expected { $0.address.kind == .work })
        #expect(
            try ids(\.address.since <= first.since) == expected { $0.address.since <= first.since })
        #expect(try ids(\.address.key == first.key) == [1])
        #expect(try ids(\.address.photo == Data()) == people.map(\.id))
    }

    @Test func `nil is a missing value`() throws {
        #expect(try ids(\.address.geo.zone == nil) == expected { $0.address.geo.zone == nil })
        #expect(try ids(\.address.geo.zone == 2) == expected { $0.address.geo.zone == 2 })
        #expect(try ids(\.address.geo.zone != 2) == expected { $0.address.geo.zone != 2 })
        #expect(try ids(\.address.note != nil) == expected { $0.address.note != nil })
        #expect(
            try ids([1, 3].contains(\.address.geo.zone))
                == expected { [1, 3].contains($0.address.geo.zone) })
        #expect(try ids(!(\.address.note == "n")) == expected { $0.address.note != "n" })
    }

    @Test func `declared paths lead through optionals, arrays and dictionaries`() throws {
        #expect(try ids(\.work?.city == "Oslo") == expected { $0.work?.city == "Oslo" })
        #expect(try ids(\.work?.city == nil) == expected { $0.work == nil })
        #expect(try ids(\.work?.geo.zone == 1) == expected { $0.work?.geo.zone == 1 })
        #expect(try ids(\.tags[0] == "x") == expected { $0.tags.first == "x" })
        #expect(try ids(\.tags[0] == "é\"\\/\n") == expected { $0.tags.first == "é\"\\/\n" })
        #expect(
            try ids(\.tags[2] == "y") == expected { $0.tags.count > 2 && $0.tags[2] == "y" })
        #expect(try ids(\.scores["a b"] == 30) == [30])
    }

    @Test func `texts take all conditions on texts, and lists any length`() throws {
        #expect(
            try ids(.hasPrefix(\.address.city, "O")) == expected { $0.address.city.hasPrefix("O") })
        #expect(
            try ids(.hasSuffix(\.address.city, "me")) == expected { $0.address.city == "Rome" })
        #expect(
            try ids(.contains(\.address.city, "sl")) == expected { $0.address.city == "Oslo" })
        #expect(try ids(.like(\.address.city, "o%")) == expected { $0.address.city == "Oslo" })
        #expect(
            try ids(.regexp(\.address.city, "^[OR]"))
                == expected { ["Oslo", "Rome"].contains($0.address.city) })
        let many = (0..<300).map { "c\($0)" } + ["Oslo"]
        #expect(try ids(many.contains(\.address.city)) == expected { $0.address.city == "Oslo" })
    }

    @Test func `rows are in the order of a value, and updated and deleted by it`() throws {
        try fixture.store.write { tx throws in
            let zones = try tx.fetch(
                Person.where(\.address.geo.zone != nil).order(by: \.address.geo.zone, .descending))
            let found: [Int] = zones.compactMap(\.address.geo.zone)
            #expect(found == found.sorted(by: >) && !found.isEmpty)
            let inOslo = Person.where(\.address.city == "Oslo")
            let count = expected { $0.address.city == "Oslo" }.count
            #expect(try tx.count(inOslo) == count)
            #expect(try tx.update(inOslo.set(\.work, to: nil)) == count)
            #expect(try tx.delete(inOslo) == count)
            #expect(try tx.exists(inOslo) == false)
            #expect(try tx.rows("PRAGMA integrity_check").first?.values == [.text("ok")])
        }
    }

    @Test func `an index answers a condition, and is kept up to date`() throws {
        try fixture.store.write { tx throws in
            #expect(try steps(Person.where(\.address.city == "Oslo"), tx).contains("address_it"))
            #expect(
                try steps(Person.where(\.address.geo.zone == 1 && \.work?.city == nil), tx)
                    .contains("geo_zone"))
            #expect(try steps(Person.order(by: \.address.city), tx).contains("address_it"))
            var person = people[0]
            person.address.city = "Paris"
            try tx.update(person)
            #expect(try tx.fetch(Person.where(\.address.city == "Paris")) == [person])
            #expect(try tx.schemaDifferences(of: Person.self).isEmpty)
        }
    }

    private func steps(
        _ query: Query<Person>, _ tx: borrowing WriteTransaction
    ) throws -> String {
        let sql = query.selectSQL(try RecordPlan.of(Person.self))
        return try tx.rows("EXPLAIN QUERY PLAN \(sql)")
            .map { try $0.get("detail", as: String.self) }.joined(separator: "\n")
    }

    private struct Node: Record, Equatable {
        struct Information: Codable, Equatable {
            var name: String
        }
        static var references: [Reference<Self>] { [Reference(\.parent, to: Node.self)] }
        var id: Int
        var parent: Int?
        var information: Information
    }

    @Test func `conditions stand on either side of a join, and in queries within queries`() throws {
        let names = ["a", "b", "b", "c"]
        try fixture.store.write { tx throws in
            try tx.create(Node.self)
            for (id, name) in names.enumerated() {
                try tx.insert(
                    Node(id: id, parent: id == 0 ? nil : id / 2, information: .init(name: name)))
            }
            let a = Node.where(\.information.name == "a")
            let b = Node.where(\.information.name == "b").order(by: \.information.name)
            #expect(try tx.fetch(b.joining(\.parent, to: a)).map(\.0.id) == [1])
            #expect(try tx.fetch(a.including(all: b, by: \.parent)).map(\.1.count) == [1])
            #expect(try tx.fetch(Node.where(a.contains(\.parent)), \.id) == [1])
            let inside = Node.where(
                .isDescendant(of: a, by: \.parent) && \.information.name == "b")
            #expect(try tx.fetch(inside.order(by: \.id), \.id) == [1, 2])
            let groups = try tx.fetch(
                Node.where(\.information.name != "a").group(by: \.parent), .count)
            #expect(groups.map(\.1).reduce(0, +) == 3)
        }
    }

    /// Decodes its inner struct from its own keys.
    private struct Flat: Codable {
        struct Inner: Codable { var city = "" }
        var inner = Inner()

        init() {}
        init(from decoder: any Decoder) throws { inner = try Inner(from: decoder) }
        func encode(to encoder: any Encoder) throws { try inner.encode(to: encoder) }
    }

    private struct FlatRecord: Record {
        var id: Int
        var place: Flat
    }

    @Test func `a struct that has no key of its own is not looked for`() throws {
        try fixture.store.write { tx throws in
            try tx.create(FlatRecord.self)
            expect(.misuse) { try tx.fetch(FlatRecord.where(\.place.inner.city == "Oslo")) }
        }
    }

    /// Encodes its property under another key than it decodes it from.
    private struct Twisted: Codable {
        var city = ""

        enum CodingKeys: CodingKey { case city, other }

        init(from decoder: any Decoder) throws {
            city = try decoder.container(keyedBy: CodingKeys.self).decode(
                String.self, forKey: .city)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(city, forKey: .other)
        }
    }

    private struct TwistedRecord: Record {
        var id: Int
        var place: Twisted
    }

    @Test func `a property that its type encodes under another key is not looked for`() throws {
        try fixture.store.write { tx throws in
            try tx.create(TwistedRecord.self)
            expect(.misuse) { try tx.fetch(TwistedRecord.where(\.place.city == "Oslo")) }
        }
    }

    @Test func `a path that is not into a column of JSON is refused`() throws {
        struct Odd: Record {
            var id: Int
            var tags: [String]
            static var jsonPaths: [PartialKeyPath<Odd>: JSONPath] {
                [
                    \.tags[0]: JSONPath("tag", 0), \.tags[1]: JSONPath("id", 0),
                    \.tags[2]: JSONPath("tags", -1),
                ]
            }
        }
        try fixture.store.write { tx throws in
            try tx.create(Odd.self)
            let error = expect(.misuse) { try tx.fetch(Odd.where(\.tags[0] == "x")) }
            #expect(error?.hint?.contains("tags") == true)
            expect(.misuse) { try tx.fetch(Odd.where(\.tags[1] == "x")) }
            expect(.misuse) { try tx.fetch(Odd.where(\.tags[2] == "x")) }
        }
    }

    @Test func `what cannot be compared in JSON is refused before it runs`() throws {
        expect(.misuse) { try ids(\.address.geo == people[0].address.geo) }
        expect(.misuse) { try ids(\.address.price == 1) }
        // An object is found as NULL: nothing may take it for a missing one.
        expect(.misuse) { try ids(\.address.extra == nil) }
        expect(.misuse) { try ids(\.address.extra != nil) }
        expect(.misuse) { try ids(\.address.list == nil) }
        expect(.misuse) {
            try fixture.store.read { tx in
                try tx.fetch(
                    Person.group(by: \.work).order(by: \.address.zip), .count)
            }
        }
        expect(.misuse) { try ids(\.address.photo < Data([1])) }
        expect(.misuse) { try ids(\.address.upper == "OSLO") }
        expect(.misuse) { try ids(\.tags[1] == "x") }
        expect(.misuse) { try ids(\.work?.zip == 1) }
        expect(.mismatch) { try ids(\.address.size == .max) }
        expect(.mismatch) { try ids(\.address.geo.latitude == .infinity) }
        expect(.misuse) {
            try fixture.store.read { tx in try tx.fetch(Person.order(by: \.address.photo)) }
        }
    }
}
