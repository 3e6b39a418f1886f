import Coffer
import Foundation
import Testing

/// Properties whose type is an enum, and types that give an example of their own.
@Suite(.againstHanging, .onOwnThreads) struct EnumPropertyTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Kind: String, Codable { case plain, bold, faint }
    enum Level: Int, Codable {
        case low = 7
        case high = 9
    }
    enum Only: String, Codable { case one }
    enum Wide: UInt8, Codable {
        case first = 1
        case last = 255
    }

    struct Named: Record, Equatable {
        var id: Int
        var kind: Kind
        var level: Level
        var only: Only
        var wide: Wide
        var maybe: Kind?
    }

    @Test func `an enum with raw values needs no list of its cases`() throws {
        let records = [
            Named(id: 1, kind: .plain, level: .low, only: .one, wide: .first, maybe: nil),
            Named(id: 2, kind: .faint, level: .high, only: .one, wide: .last, maybe: .bold),
        ]
        for record in records { try fixture.store.write { tx in try tx.insert(record) } }
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(Named.all) == records)
            #expect(try tx.fetch(Named.where(\.kind == .faint)) == [records[1]])
        }
        #expect(
            try fixture.columns(of: "named") == [
                "id INTEGER NOT NULL KEY 1", "kind TEXT NOT NULL", "level INTEGER NOT NULL",
                "only TEXT NOT NULL", "wide INTEGER NOT NULL", "maybe TEXT",
            ])
    }

    @Test func `a stored text that names no case is .mismatch`() throws {
        let record = Named(id: 1, kind: .plain, level: .low, only: .one, wide: .first)
        try fixture.store.write { tx throws in
            try tx.insert(record)
            try tx.execute("UPDATE named SET kind = 'other'")
            let error = expect(.mismatch) { try tx.fetch(Named.all) }
            #expect(error?.column == "kind")
        }
    }

    enum State: Codable, Equatable {
        case draft
        case published(at: Date, by: String)
        case nested(Shape)
    }

    enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case point
    }
    enum Boxed: Codable, Equatable { case only(Int) }

    indirect enum Term: Codable, Equatable, Sendable {
        case sum(Term, Term)
        case product([Term], Term)
        case number(Int)
    }

    struct Loaded: Record, Equatable {
        var id: Int
        var state: State
        var boxed: Boxed
        var term: Term
        var list: [Shape]
        var byKind: [String: Kind]
    }

    @Test func `an enum with payloads needs no example`() throws {
        let records = [
            Loaded(
                id: 1, state: .draft, boxed: .only(1), term: .number(1), list: [], byKind: [:]),
            Loaded(
                id: 2, state: .published(at: Date(timeIntervalSince1970: 5), by: "a"),
                boxed: .only(-1), term: .sum(.number(1), .product([.number(2)], .number(3))),
                list: [.point, .circle(radius: 2)], byKind: ["x": .bold]),
            Loaded(
                id: 3, state: .nested(.circle(radius: 1)), boxed: .only(0),
                term: .product([], .number(0)), list: [.point], byKind: [:]),
        ]
        for record in records { try fixture.store.write { tx in try tx.insert(record) } }
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(Loaded.order(by: \.id)) == records)
            #expect(try tx.fetch(Loaded.where(\.state == .draft)) == [records[0]])
            #expect(try tx.count(Loaded.where(\.boxed == .only(-1))) == 1)
        }
    }

    struct Quick: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var kind: Kind
        var state: State
    }

    @Test func `stored properties of enums are found by their cases`() throws {
        let record = Quick(id: 1, kind: .faint, state: .published(at: .distantPast, by: "b"))
        #expect(try fixture.roundTrip(record) == [record])
        #expect(try fixture.store.read { tx in try tx.count(Quick.where(\.kind == .faint)) } == 1)
    }

    struct Email: Codable, Equatable, Exemplified {
        struct Invalid: Error {}
        let text: String
        static var example: Email { Email("a@b") }
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self)
            if !text.contains("@") { throw Invalid() }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }

    struct Person: Record, Equatable {
        var id: Int
        var email: Email
        var second: Email?
    }

    struct Account: Record, Equatable {
        var id: Int
        var owner: Email
    }

    @Test func `one example of a property's type serves every record`() throws {
        let person = Person(id: 1, email: Email("ada@x"), second: Email("b@y"))
        #expect(try fixture.roundTrip(person) == [person])
        let account = Account(id: 1, owner: Email("ada@x"))
        #expect(try fixture.roundTrip(account) == [account])
        #expect(
            try fixture.columns(of: "person") == [
                "id INTEGER NOT NULL KEY 1", "email TEXT NOT NULL", "second TEXT",
            ])
    }

    struct Strict: Codable {
        init(from decoder: any Decoder) throws { throw Email.Invalid() }
    }

    struct WithStrict: Record {
        var id: Int
        var strict: Strict
    }

    @Test func `a type that refuses placeholders names the property and the ways out`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.misuse) { try tx.create(WithStrict.self) }
            #expect(error?.column == "strict")
            #expect(error?.hint?.contains("Exemplified") == true)
            #expect(error?.hint?.contains("static var example") == true)
        }
    }
}
