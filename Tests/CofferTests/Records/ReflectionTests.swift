import Coffer
import Foundation
import Testing

/// Types that cannot be made from placeholders, and types with their own coding.
@Suite(.againstHanging, .onOwnThreads) struct ReflectionTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Kind: String, Codable { case plain, bold }
    enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case point
    }

    private func expectExample<R: Record>(_ record: R, column: String?) throws {
        try fixture.store.write { tx throws in
            let error = expect(.misuse) { try tx.insert(record) }
            #expect(error?.hint?.contains("static var example") == true)
            #expect(error?.column == column)
        }
    }

    struct Checking: Record {
        struct Empty: Error {}
        var id: Int
        var name: String
        init(name: String) { (id, self.name) = (1, name) }
        enum CodingKeys: CodingKey { case id, name }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            name = try container.decode(String.self, forKey: .name)
            if name.isEmpty { throw Empty() }
        }
    }

    @Test func `a type that placeholders cannot make asks for an example`() throws {
        try expectExample(Checking(name: "a"), column: "name")
    }

    struct Exemplary: Record, Equatable {
        static var example: Exemplary? {
            Exemplary(id: UUID(), kind: .plain, shape: .point, list: [1])
        }
        var id: UUID
        var kind: Kind
        var shape: Shape
        var note: String?
        var maybe: Kind?
        var list: [Int]
        var when: Date?
    }

    @Test func `an example shows the columns`() throws {
        let record = Exemplary(
            id: UUID(), kind: .bold, shape: .circle(radius: 2), maybe: .plain, list: [3],
            when: Date(timeIntervalSince1970: 5))
        #expect(try fixture.roundTrip(record) == [record])
        #expect(
            try fixture.columns(of: "exemplary") == [
                "id BLOB NOT NULL KEY 1", "kind TEXT NOT NULL", "shape TEXT NOT NULL", "note TEXT",
                "maybe TEXT", "list TEXT NOT NULL", "when REAL_SINCE_2001",
            ])
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(Exemplary.where(\.kind == .bold && \.note == nil)) == [record])
            #expect(try tx.fetch(Exemplary.where(\.shape == .point)) == [])
        }
    }

    enum Priority: Int, Codable {
        case low = 1
        case high = 2
    }

    struct Easy: Record, Equatable {
        var id: Int
        var priority: Priority
        var kind: Kind?
        var range: ClosedRange<Int>?
        var pairs: [String: [Int]]
        var set: Set<String>
        var tree: Tree

        struct Tree: Codable, Equatable {
            var children: [Tree]
            var named: [String: Tree]
        }
    }

    @Test func `enums that start at one, optional enums and recursive types need no example`()
        throws
    {
        let leaf = Easy.Tree(children: [], named: [:])
        let record = Easy(
            id: 1, priority: .high, kind: .bold, range: 1...2, pairs: ["a": [1]], set: ["x"],
            tree: Easy.Tree(children: [leaf], named: ["l": leaf]))
        #expect(try fixture.roundTrip(record) == [record])
        #expect(try fixture.store.read { tx in try tx.count(Easy.where(\.kind == .bold)) } == 1)
    }

    struct Empty: Record {}

    struct Twice: Record {
        var id: Int
        var ID: Int
    }

    struct Misnamed: Record {
        static let key = ["nothing"]
        var id: Int
    }

    struct Nameless: Record {
        static let table = ""
        var id: Int
    }

    @Test func `types that cannot be a table say so`() throws {
        try fixture.store.write { tx throws in
            var error = expect(.misuse) { try tx.insert(Empty()) }
            #expect(error?.hint?.contains("static var example") == true)
            error = expect(.misuse) { try tx.create(Twice.self) }
            #expect(error?.hint?.contains("CodingKeys") == true)
            error = expect(.misuse) { try tx.create(Misnamed.self) }
            #expect(error?.column == "nothing")
            #expect(error?.hint?.contains("static var key") == true)
            _ = expect(.misuse) { try tx.create(Nameless.self) }
            _ = expect(.misuse) { try tx.fetch(Empty.all) }
        }
    }

    struct Unkeyed: Record {
        var id = 1
        init() {}
        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            id = try container.decode(Int.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(id)
        }
    }

    /// Its example encodes no keys, so it has no columns either.
    struct UnkeyedExample: Record {
        static var example: UnkeyedExample? { UnkeyedExample() }
        init() {}
        init(from decoder: any Decoder) throws { _ = try decoder.unkeyedContainer() }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(1)
        }
    }

    struct Single: Record {
        var name: String
        init(from decoder: any Decoder) throws {
            name = try decoder.singleValueContainer().decode(String.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(name)
        }
    }

    /// Accepts any keys.
    struct Dynamic: Record, Equatable {
        static var example: Dynamic? { Dynamic(values: ["id": 0, "a": 0, "b": 0]) }
        var values: [String: Int]
        struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
        init(values: [String: Int]) { self.values = values }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            values = [:]
            for key in container.allKeys {
                values[key.stringValue] = try container.decode(Int.self, forKey: key)
            }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                try container.encode(value, forKey: Key(stringValue: name))
            }
        }
    }

    @Test func `a type that accepts any keys has those of its example`() throws {
        let record = Dynamic(values: ["id": 1, "a": 2, "b": 3])
        #expect(try fixture.roundTrip(record) == [record])
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) {
                try tx.insert(Dynamic(values: ["id": 2, "a": 0, "b": 0, "c": 0]))
            }
            #expect(error?.column == "c")
        }
    }

    struct Sly: Record {
        var id: Int
        enum CodingKeys: CodingKey { case id }
        init(id: Int) { self.id = id }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            if id == 2 {
                var more = container.superEncoder().unkeyedContainer()
                try more.encode("lost")
            }
        }
    }

    @Test func `containers that a row does not have are refused, never dropped`() throws {
        try fixture.store.write { tx throws in
            for refused in [
                { tx in try tx.create(Unkeyed.self) }, { tx in try tx.insert(Unkeyed()) },
                { tx in try tx.create(UnkeyedExample.self) }, { tx in try tx.create(Single.self) },
            ] as [(inout WriteTransaction) throws -> Void] {
                let error = expect(.unsupported) { try refused(&tx) }
                #expect(error?.hint?.contains("property of a type of its own") == true)
            }
            try tx.insert(Sly(id: 1))
            let error = expect(.mismatch) { try tx.insert(Sly(id: 2)) }
            #expect(error?.column == "super")
            try tx.insert(Sly(id: 3))
            #expect(try tx.fetch(Sly.all).map(\.id) == [1, 3])
        }
    }

    final class Item: Record {
        let id: Int
        let name: String
        init(id: Int, name: String) { (self.id, self.name) = (id, name) }
    }

    @Test func `a final class is a record too`() throws {
        #expect(try fixture.roundTrip(Item(id: 1, name: "a")).map(\.name) == ["a"])
    }

    struct Either: Record, Equatable {
        var id: Int
        var left: String?
        var right: Int = 0
        enum CodingKeys: CodingKey { case id, left, right }
        init(id: Int, left: String) { (self.id, self.left) = (id, left) }
        init(id: Int, right: Int) { (self.id, self.right) = (id, right) }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            if container.contains(.left) { left = try container.decode(String.self, forKey: .left) }
            if container.contains(.right) { right = try container.decode(Int.self, forKey: .right) }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            if let left {
                try container.encode(left, forKey: .left)
            } else {
                try container.encode(right, forKey: .right)
            }
        }
    }

    @Test func `a key that is not encoded is NULL, and is missing when decoded`() throws {
        let all = [Either(id: 1, left: "a"), Either(id: 2, right: 5), Either(id: 3, left: "b")]
        try fixture.store.write { tx in try tx.insert(all) }
        #expect(try fixture.store.read { tx in try tx.fetch(Either.order(by: \.id)) } == all)
        #expect(
            try fixture.values("SELECT left, right FROM either ORDER BY id")
                == ["a", nil, nil, 5, "b", nil])
    }
}
