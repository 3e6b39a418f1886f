import Coffer
import Foundation
import Testing

/// Types that encode a column piece by piece, and classes whose superclass encodes itself.
@Suite(.againstHanging, .onOwnThreads) struct NestedContainerTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Parcel: Record, Equatable {
        var id: Int
        var city: String
        var sent: Date
        var seal: Data
        var stops: [String]
        var deep: [[Int?]]

        enum Key: CodingKey { case id, address, stops, deep }
        enum Address: CodingKey { case city, sent, seal, more }
        enum More: CodingKey { case depth }

        init(id: Int, stops: [String] = ["a", "b"], deep: [[Int?]] = [[1, nil], []]) {
            self.id = id
            city = "Köln \"\(id)\""
            (self.stops, self.deep) = (stops, deep)
            (sent, seal) = (Date(timeIntervalSince1970: 1.5), Data([0, 255]))
        }

        init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: Key.self)
            id = try row.decode(Int.self, forKey: .id)
            let address = try row.nestedContainer(keyedBy: Address.self, forKey: .address)
            city = try address.decode(String.self, forKey: .city)
            sent = try address.decode(Date.self, forKey: .sent)
            seal = try address.decode(Data.self, forKey: .seal)
            let more = try address.nestedContainer(keyedBy: More.self, forKey: .more)
            _ = try more.decode(Int.self, forKey: .depth)
            var list = try row.nestedUnkeyedContainer(forKey: .stops)
            stops = []
            while !list.isAtEnd { stops.append(try list.decode(String.self)) }
            var lists = try row.nestedUnkeyedContainer(forKey: .deep)
            deep = []
            while !lists.isAtEnd {
                var inner = try lists.nestedUnkeyedContainer()
                var numbers: [Int?] = []
                while !inner.isAtEnd {
                    numbers.append(try inner.decodeNil() ? nil : try inner.decode(Int.self))
                }
                deep.append(numbers)
            }
        }

        func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: Key.self)
            try row.encode(id, forKey: .id)
            var address = row.nestedContainer(keyedBy: Address.self, forKey: .address)
            try address.encode(city, forKey: .city)
            try address.encode(sent, forKey: .sent)
            var again = row.nestedContainer(keyedBy: Address.self, forKey: .address)
            try again.encode(seal, forKey: .seal)
            var more = again.nestedContainer(keyedBy: More.self, forKey: .more)
            try more.encode(3, forKey: .depth)
            var list = row.nestedUnkeyedContainer(forKey: .stops)
            for stop in stops { try list.encode(stop) }
            var lists = row.nestedUnkeyedContainer(forKey: .deep)
            for numbers in deep {
                var inner = lists.nestedUnkeyedContainer()
                for number in numbers {
                    if let number { try inner.encode(number) } else { try inner.encodeNil() }
                }
            }
        }
    }

    @Test func `a value that a type encodes piece by piece is one column of JSON`() throws {
        let all = [Parcel(id: 1), Parcel(id: 2, stops: [], deep: []), Parcel(id: 3)]
        try fixture.store.write { tx in try tx.insert(all) }
        #expect(try fixture.store.read { tx in try tx.fetch(Parcel.order(by: \.id)) } == all)
        #expect(
            try fixture.columns(of: "parcel") == [
                "id INTEGER NOT NULL KEY 1", "address TEXT NOT NULL", "stops TEXT NOT NULL",
                "deep TEXT NOT NULL",
            ])
        let stored = try fixture.values("SELECT address, stops, deep FROM parcel WHERE id < 3")
        #expect(stored[1...2] == [#"["a","b"]"#, "[[1,null],[]]"])
        #expect(stored[4...5] == ["[]", "[]"])
        #expect(
            stored[0]
                == #"{"city":"Köln \"1\"","more":{"depth":3},"seal":"AP8=","sent":-978307198.5}"#
        )
    }

    @Test(arguments: [
        ("{", "JSONObject"), ("[]", "JSONObject"), (#"{"city":1}"#, "String"),
        ("nothing", "JSONObject"), (#"{},"stops":{}"#, "JSONObject"),
    ])
    func `JSON that the type cannot decode is a mismatch`(
        json: String, expected: String
    ) throws {
        try fixture.store.write { tx in try tx.insert(Parcel(id: 1)) }
        try fixture.execute("UPDATE parcel SET address = \(json)")
        let error = expect(.mismatch) {
            try fixture.store.read { tx in try tx.fetch(Parcel.all) }
        }
        #expect(error?.table == "parcel")
        #expect(error?.column == "address")
        #expect(error?.message.hasSuffix(", in the row with id 1") == true)
        #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
    }

    class Base: Codable, @unchecked Sendable {
        // @unchecked: a superclass is not final, but all its properties are constant.
        let name: String
        let size: Int
        init(name: String, size: Int) { (self.name, self.size) = (name, size) }
    }

    final class Whole: Base, Record, @unchecked Sendable {
        // @unchecked: as its superclass.
        let id: Int
        enum Key: CodingKey { case id }
        init(id: Int) {
            self.id = id
            super.init(name: "n\(id)", size: id * 2)
        }
        required init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: Key.self)
            id = try row.decode(Int.self, forKey: .id)
            try super.init(from: try row.superDecoder())
        }
        override func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: Key.self)
            try row.encode(id, forKey: .id)
            try super.encode(to: row.superEncoder())
        }
    }

    final class Flat: Base, Record, @unchecked Sendable {
        // @unchecked: as its superclass.
        let id: Int
        enum Key: CodingKey { case id }
        init(id: Int) {
            self.id = id
            super.init(name: "n\(id)", size: id * 2)
        }
        required init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: Key.self).decode(Int.self, forKey: .id)
            try super.init(from: decoder)
        }
        override func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: Key.self)
            try row.encode(id, forKey: .id)
            try super.encode(to: encoder)
        }
    }

    @Test func `a superclass is a separate column, or adds its columns`() throws {
        let whole = try #require(try fixture.roundTrip(Whole(id: 4)).first)
        #expect(whole.id == 4 && whole.name == "n4" && whole.size == 8)
        #expect(try fixture.columns(of: "whole").count == 2)
        #expect(try fixture.values("SELECT super FROM whole") == [#"{"name":"n4","size":8}"#])
        let flat = try #require(try fixture.roundTrip(Flat(id: 5)).first)
        #expect(flat.id == 5 && flat.name == "n5" && flat.size == 10)
        #expect(try fixture.columns(of: "flat").count == 3)
    }

    final class Named: Base, Record, @unchecked Sendable {
        // @unchecked: as its superclass.
        let id: Int
        let note: String?
        enum Key: CodingKey { case id, base, note }
        static var columns: [PartialKeyPath<Named>: String] { [\.note: "note"] }
        init(id: Int, note: String?) {
            (self.id, self.note) = (id, note)
            super.init(name: "n\(id)", size: id)
        }
        required init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: Key.self)
            id = try row.decode(Int.self, forKey: .id)
            note = try row.decodeIfPresent(String.self, forKey: .note)
            try super.init(from: try row.superDecoder(forKey: .base))
        }
        override func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: Key.self)
            try row.encode(id, forKey: .id)
            try super.encode(to: row.superEncoder(forKey: .base))
            try row.encodeIfPresent(note, forKey: .note)
        }
    }

    @Test
    func `a superclass has the column that its subclass names, and a partial update leaves it`()
        throws
    {
        let named = try #require(try fixture.roundTrip(Named(id: 3, note: nil)).first)
        #expect(named.name == "n3" && named.size == 3 && named.note == nil)
        try fixture.store.write { tx throws in
            #expect(try tx.updateIfPresent(Named(id: 3, note: "x"), only: \.note))
            #expect(try tx.update(Named.where(\.note == "x").set(\.note, to: "y")) == 1)
            let found = try #require(try tx.find(Named.self, 3))
            #expect(found.note == "y" && found.name == "n3")
            try tx.upsert([Named(id: 3, note: nil), Named(id: 4, note: nil)])
            #expect(try tx.fetch(Named.where(\.note == nil)).map(\.size).sorted() == [3, 4])
        }
        #expect(
            try fixture.columns(of: "named")[1...] == ["note TEXT", "base TEXT NOT NULL"])
    }

    struct Broken: Record {
        var id: Int
        enum Key: CodingKey { case id, list }
        static var example: Broken? { Broken(id: 0) }
        init(id: Int) { self.id = id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: Key.self).decode(Int.self, forKey: .id)
        }
        func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: Key.self)
            try row.encode(id, forKey: .id)
            var list = row.nestedUnkeyedContainer(forKey: .list)
            try list.encode(id == 2 ? Double.nan : 1)
            if id == 3 { throw CancellationError() }
        }
    }

    @Test func `a record that fails half-way leaves nothing for the next record`() throws {
        try fixture.store.write { tx in
            try tx.insert(Broken(id: 1))
            let error = expect(.mismatch) { try tx.insert(Broken(id: 2)) }
            #expect(error?.column == "list")
            _ = expect(.mismatch) { try tx.insert(Broken(id: 3)) }
            try tx.insert(Broken(id: 4))
        }
        #expect(try fixture.values("SELECT id FROM broken") == [1, 4])
    }
}
