import Foundation
import Testing

@testable import Coffer

/// Optionals of optionals, generic types, enums with payloads, types that hold themselves, and
/// types that put a default in place of what is missing.
@Suite(.againstHanging, .onOwnThreads) struct NestedTypeTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    typealias Own = RecordPathsTests.Own
    typealias Stored = RecordPathsTests.Stored

    // MARK: Optionals, generics, enums with payloads

    struct Twice: Record, Equatable {
        var id: Int
        var number: Int??
        var list: [Int?]??
    }

    @Test func `an optional of an optional has one nil`() throws {
        let all = [
            Twice(id: 1, number: 3, list: [1, nil]), Twice(id: 2, number: nil, list: nil),
            Twice(id: 3, number: .some(nil), list: .some(nil)),
        ]
        try fixture.store.write { tx in try tx.insert(all) }
        let found = try fixture.store.read { tx in try tx.fetch(Twice.order(by: \.id)) }
        #expect(found == [all[0], all[1], Twice(id: 3, number: nil, list: nil)])
        #expect(try fixture.columns(of: "twice").suffix(2) == ["number INTEGER", "list TEXT"])
    }

    enum Event<Subject: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
        case made(Subject, by: String?)
        case moved(from: Int, to: Int)
        case gone
        indirect case after(Event<Subject>, [Event<Subject>])
    }

    struct Pair<A: Codable & Hashable & Sendable, B: Codable & Hashable & Sendable>: Codable,
        Hashable, Sendable
    {
        var a: A
        var b: B
    }

    struct Nested<P: RecordPathsTests.Path, Subject: Codable & Hashable & Sendable>: Record,
        Equatable
    {
        static var access: RecordAccess { P.access }
        static var table: String { "nested" }
        var id: Int
        var event: Event<Subject>?
        var events: [Event<Subject>]
        var pairs: Pair<Pair<[Int: Date], Subject?>, [String: Pair<UInt64, Bool>]>
        var named: [String: [Subject]]
        var empty: [Int: [String]]
        var text: String
    }

    @Test func `nested generics and payloads of several cases and labels round-trip`() throws {
        try checkNested(Nested<Own, UUID>.self, UUID())
        try checkNested(Nested<Stored, UUID>.self, UUID())
        try checkNested(Nested<Own, Pair<Int, String?>>.self, Pair(a: 1, b: nil))
        try checkNested(Nested<Stored, Pair<Int, String?>>.self, Pair(a: .min, b: "\"\n"))
    }

    private func checkNested<P, S>(_ type: Nested<P, S>.Type, _ subject: S) throws {
        let events: [Event<S>] = [
            .made(subject, by: nil), .made(subject, by: "ä"), .moved(from: .min, to: .max), .gone,
            .after(.gone, []), .after(.after(.gone, [.gone]), [.made(subject, by: "")]),
        ]
        let all = (events + [nil]).enumerated().map { id, event in
            Nested<P, S>(
                id: id, event: event, events: Array(events.prefix(id)),
                pairs: Pair(
                    a: Pair(a: [id: .distantPast], b: id == 0 ? nil : subject),
                    b: ["top": Pair(a: UInt64.max, b: true)]),
                named: id == 0 ? [:] : ["": [], "a": [subject]], empty: [:], text: "")
        }
        try fixture.store.write { tx throws in
            try tx.upsert(all)
            #expect(try tx.fetch(type.order(by: \.id)) == all)
            #expect(try Set(tx.fetch(type.all).map(\.id)) == Set(all.map(\.id)))
            for one in all {
                #expect(try tx.fetch(type.where(\.event == one.event)) == [one])
            }
        }
    }

    struct Sampled: Record, Equatable {
        static var example: Sampled? { Sampled(id: 0, event: .gone) }
        var id: Int
        var event: Event<String>
    }

    @Test func `a payload that is not optional needs one example, whatever its case`() throws {
        let all: [Sampled] = [
            Sampled(id: 1, event: .moved(from: 1, to: 2)), Sampled(id: 2, event: .gone),
            Sampled(id: 3, event: .made("a", by: "b")),
        ]
        try fixture.store.write { tx in try tx.insert(all) }
        #expect(try fixture.store.read { tx in try tx.fetch(Sampled.order(by: \.id)) } == all)
    }

    // MARK: Types that hold themselves

    struct Tree: Record, Equatable {
        var id: Int
        var children: [Tree]
        var named: [String: Tree]
    }

    final class Chain: Record {
        let id: Int
        let next: Chain?
        init(_ id: Int, _ next: Chain? = nil) { (self.id, self.next) = (id, next) }
    }

    @Test func `a record may hold records of its own type`() throws {
        let leaf = Tree(id: 2, children: [], named: [:])
        let tree = Tree(id: 1, children: [leaf, leaf], named: ["x": leaf])
        #expect(try fixture.roundTrip(tree) == [tree])
        let chain = try #require(try fixture.roundTrip(Chain(1, Chain(2, Chain(3)))).first)
        #expect(chain.next?.next?.id == 3 && chain.next?.next?.next == nil)
    }

    // MARK: What a type puts in place of what is missing

    struct Filled<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "filled" }
        var id: Int
        var rank: Int
        var words: [String]
        @Fallback var size: Int
        enum CodingKeys: CodingKey { case id, rank, words, size }

        init(id: Int, rank: Int, words: [String], size: Int) {
            (self.id, self.rank, self.words) = (id, rank, words)
            self.size = size
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            rank = try container.decodeIfPresent(Int.self, forKey: .rank) ?? 5
            words = try container.decodeIfPresent([String].self, forKey: .words) ?? ["none"]
            _size = try container.decode(Fallback.self, forKey: .size)
        }
    }

    @Test func `NULL and a column that a SELECT leaves out are a type's own defaults`() throws {
        try checkFilled(Filled<Own>.self)
        try checkFilled(Filled<Stored>.self)
    }

    private func checkFilled<P>(_ type: Filled<P>.Type) throws {
        let whole = Filled<P>(id: 1, rank: 1, words: [], size: 1)
        let filled = Filled<P>(id: 1, rank: 5, words: ["none"], size: 7)
        try fixture.store.write { tx throws in
            try tx.upsert(whole)
            #expect(try tx.fetch(type.all) == [whole])
            #expect(try tx.fetch(type, sql: "SELECT id FROM filled") == [filled])
            try tx.execute("UPDATE filled SET rank = NULL, words = NULL, size = NULL")
            #expect(try tx.fetch(type.all) == [filled])
            #expect(try tx.first(type.order(by: \.id)) == filled)
        }
    }
}

/// 7 where there is no value.
@propertyWrapper struct Fallback: Codable, Hashable, Sendable {
    var wrappedValue = 7
    init(wrappedValue: Int) { self.wrappedValue = wrappedValue }
    init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(Int.self)
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

extension KeyedDecodingContainer {
    /// The usual way to give a property wrapper a default.
    func decode(_ type: Fallback.Type, forKey key: Key) throws -> Fallback {
        try decodeIfPresent(type, forKey: key) ?? Fallback(wrappedValue: 7)
    }
}
