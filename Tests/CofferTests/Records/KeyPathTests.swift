import Foundation
import Testing

@testable import Coffer

/// Key paths name columns, with nothing declared.
@Suite(.againstHanging, .onOwnThreads) struct KeyPathTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    private func column<R: Record, V: Encodable>(_ path: KeyPath<R, V>) throws -> String {
        let plan = try RecordPlan.of(R.self)
        return plan.columns[try plan.position(of: path)].name
    }

    enum Colour: String, Codable, CaseIterable { case red, green }
    enum One: Int, Codable, CaseIterable { case only }

    struct Inner: Codable, Equatable {
        var a: Int8
        var b: String
    }

    struct Opaque: Codable {
        var x: Int
    }

    struct Mixed: Record {
        var flag: Bool
        var id: UUID
        var small: Int8
        var colour: Colour
        var maybe: Int?
        var inner: Inner
        var list: [Int]
        var data: Data
        var link: URL
        var one: One
        var text: String
        var flag2: Bool
        var maybeFlag: Bool?
        var date: Date
        var opaque: Opaque
        var last: UInt16
    }

    @Test func `all sixteen properties of a mixed struct are found`() throws {
        #expect(try column(\Mixed.flag) == "flag")
        #expect(try column(\Mixed.id) == "id")
        #expect(try column(\Mixed.small) == "small")
        #expect(try column(\Mixed.colour) == "colour")
        #expect(try column(\Mixed.maybe) == "maybe")
        #expect(try column(\Mixed.inner) == "inner")
        #expect(try column(\Mixed.list) == "list")
        #expect(try column(\Mixed.data) == "data")
        #expect(try column(\Mixed.link) == "link")
        #expect(try column(\Mixed.one) == "one")
        #expect(try column(\Mixed.text) == "text")
        #expect(try column(\Mixed.flag2) == "flag2")
        #expect(try column(\Mixed.maybeFlag) == "maybeFlag")
        #expect(try column(\Mixed.date) == "date")
        #expect(try column(\Mixed.opaque) == "opaque")
        #expect(try column(\Mixed.last) == "last")
    }

    struct Renamed: Record {
        var a: String
        var b: String
        var c: Bool
        var d: Bool
        var e: Int?
        var inner: Inner
        var opaque: Opaque

        // The keys are in another order, and some have the name of another property.
        enum CodingKeys: String, CodingKey {
            case d = "c"
            case b = "x"
            case a = "b"
            case c = "a"
            case opaque = "o"
            case e = "f"
            case inner = "i"
        }
    }

    @Test func `renamed columns are found by trial, whatever their order`() throws {
        #expect(try column(\Renamed.a) == "b")
        #expect(try column(\Renamed.b) == "x")
        #expect(try column(\Renamed.c) == "a")
        #expect(try column(\Renamed.d) == "c")
        #expect(try column(\Renamed.e) == "f")
        #expect(try column(\Renamed.inner) == "i")
        #expect(try column(\Renamed.opaque) == "o")
    }

    private func expectMisuse<R: Record, V: Encodable>(_ path: KeyPath<R, V>) {
        let error = expect(.misuse) { try column(path) }
        #expect(error?.hint?.contains("static var columns") == true)
    }

    struct Computing: Record {
        var id: Int
        var seen: Int { didSet {} }
        var inner: Inner
        var double: Int { id * 2 }
        @Clamped var clamped: Int
    }

    @propertyWrapper struct Clamped: Codable, Sendable {
        var wrappedValue: Int
    }

    final class Shared: Record {
        let id: Int
        init(id: Int) { self.id = id }
    }

    @Test func `a key path without a column is an error that says what to declare`() throws {
        expectMisuse(\Computing.double)
        expectMisuse(\Computing.inner.a)
        expectMisuse(\Computing.inner.b)
        expectMisuse(\Computing.seen)
        expectMisuse(\Computing.clamped)
        expectMisuse(\Computing.self.id.description)
        expectMisuse(\Shared.id)
        #expect(try column(\Computing.id) == "id")
        #expect(try column(\Computing.inner) == "inner")
        try fixture.store.write { tx throws in
            try tx.create(Computing.self)
            _ = expect(.misuse) { try tx.fetch(Computing.where(\.double == 2)) }
            _ = expect(.misuse) { try tx.fetch(Computing.where(!(\.double == 2) || \.id == 1)) }
            _ = expect(.misuse) { try tx.count(Computing.order(by: \.double).limit(1)) }
            _ = expect(.misuse) { try tx.delete(Computing.where(\.double == 2 && \.id == 1)) }
        }
    }

    final class Declared: Record {
        static var columns: [PartialKeyPath<Declared>: String] {
            [\.id: "id", \.wrong: "nothing"]
        }
        let id: Int
        let wrong: Int
        init(id: Int) { (self.id, wrong) = (id, 0) }
    }

    @Test func `declared columns are used`() throws {
        #expect(try column(\Declared.id) == "id")
        let error = expect(.misuse) { try column(\Declared.wrong) }
        #expect(error?.column == "nothing")
        try fixture.store.write { tx throws in
            try tx.insert([Declared(id: 1), Declared(id: 2)])
            #expect(try tx.fetch(Declared.where(\.id > 1)).map(\.id) == [2])
        }
    }

    struct Derived: Record {
        var id: Int
        var copy: Int
        var name: String
        enum CodingKeys: CodingKey { case id, name }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            copy = id
            name = try container.decode(String.self, forKey: .name)
        }
    }

    @Test func `a property that is only derived from another has no column`() throws {
        #expect(try column(\Derived.id) == "id")
        #expect(try column(\Derived.name) == "name")
        expectMisuse(\Derived.copy)
    }

    @propertyWrapper struct Trimmed: Codable, Equatable {
        var wrappedValue: String
        init(wrappedValue: String) { self.wrappedValue = wrappedValue }
        init(from decoder: any Decoder) throws {
            wrappedValue = try decoder.singleValueContainer().decode(String.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(wrappedValue)
        }
    }

    final class Misspelt: Record {
        static var columns: [PartialKeyPath<Misspelt>: String] {
            [\.titleText: "title_txt", \.id: "title"]
        }
        let id: Int
        let titleText: String
        init(id: Int) { (self.id, titleText) = (id, "") }
        enum CodingKeys: String, CodingKey {
            case id
            case titleText = "title_text"
        }
    }

    @Test func `a misspelt column of a declaration is named with the property and the nearest`() {
        let near = expect(.misuse) { try column(\Misspelt.titleText) }
        #expect(near?.message.contains("titleText") == true, "\(near?.message ?? "")")
        #expect(near?.message.contains("title_txt") == true)
        #expect(near?.hint?.contains("Did you mean title_text?") == true, "\(near?.hint ?? "")")
        let far = expect(.misuse) { try column(\Misspelt.id) }
        #expect(far?.hint?.contains("id, title_text") == true, "\(far?.hint ?? "")")
    }

    struct Wrapped: Record, Equatable {
        static var columns: [PartialKeyPath<Wrapped>: String] { [\.title: "title"] }
        var id: Int
        @Trimmed var title: String
        @Trimmed var note: String
    }

    /// A key path to it is one to a computed property, of which Swift tells no place.
    @Test func `a property with a wrapper is stored, and found by a declared column`() throws {
        let record = Wrapped(id: 1, title: "a", note: "b")
        #expect(try fixture.roundTrip(record) == [record])
        #expect(try column(\Wrapped.title) == "title")
        #expect(
            try fixture.store.read { tx in try tx.fetch(Wrapped.where(\.title == "a")) } == [record]
        )
        expectMisuse(\Wrapped.note)
    }
}
