import Foundation
import Testing

@testable import Coffer

/// Types that are unusual and allowed: what a program may declare, round-trips or is refused.
@Suite(.againstHanging) struct OddTypeTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    typealias Own = RecordPathsTests.Own
    typealias Stored = RecordPathsTests.Stored

    // MARK: Types that try one kind of value after the other

    /// Any JSON, as many programs have it.
    enum JSON: Codable, Hashable {
        case null
        case flag(Bool)
        case number(Double)
        case text(String)
        case list([JSON])
        case object([String: JSON])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let flag = try? value.decode(Bool.self) {
                self = .flag(flag)
            } else if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let list = try? value.decode([JSON].self) {
                self = .list(list)
            } else {
                self = .object(try value.decode([String: JSON].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .null: try container.encodeNil()
            case .flag(let flag): try container.encode(flag)
            case .number(let number): try container.encode(number)
            case .text(let text): try container.encode(text)
            case .list(let list): try container.encode(list)
            case .object(let object): try container.encode(object)
            }
        }
    }

    /// What keeps it as JSON.
    struct Boxed: Codable, Hashable {
        var value: JSON
    }

    struct Anything<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "anything" }
        var id: Int
        var json: Boxed
        var maybe: Boxed?
        var several: [JSON]
    }

    @Test func `a type of several kinds of values comes back as it was in a struct or a list`()
        throws
    {
        try checkAnything(Anything<Own>.self)
        try fixture.execute("DELETE FROM anything")
        try checkAnything(Anything<Stored>.self)
    }

    private func checkAnything<P>(_ type: Anything<P>.Type) throws {
        let values: [JSON] = [
            .null, .flag(true), .flag(false), .number(1), .number(0.5), .text(""), .text("true"),
            .text("[1]"), .list([]), .list([.null, .text("a"), .number(1)]), .object([:]),
            .object(["a": .flag(true), "b": .list([.null])]),
        ]
        let all = values.enumerated().map { id, json in
            Anything<P>(
                id: id, json: Boxed(value: json), maybe: id % 3 == 0 ? nil : Boxed(value: json),
                several: [json, .text("x")])
        }
        try fixture.store.write { tx throws in
            try tx.insert(all)
            #expect(try tx.fetch(type.order(by: \.id)) == all)
            for one in all {
                #expect(try tx.fetch(type.where(\.json == one.json)) == [one])
            }
        }
    }

    /// A number or a text, which a column cannot be both of.
    struct Loose: Codable, Equatable {
        var text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            text = try (try? value.decode(String.self)) ?? "\(value.decode(Int.self))"
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if let number = Int(text), number < 0 {
                try container.encode(number)
            } else {
                try container.encode(text)
            }
        }
    }

    struct Loosely: Record, Equatable {
        var id: Loose
    }

    @Test func `of a number or a text the column is of what is decoded first`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Loosely(id: Loose("7")))
            let error = expect(.mismatch) { try tx.insert(Loosely(id: Loose("-7"))) }
            #expect(error?.column == "id")
            #expect(try tx.find(Loosely.self, "7") == Loosely(id: Loose("7")))
        }
    }

    /// Any JSON by itself, of which `Other` is tried first.
    struct Either<Other: Codable & Hashable>: Codable, Hashable {
        var json: JSON
        init(_ json: JSON) { self.json = json }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let other = try? value.decode(Other.self) {
                json = Self.json(of: other)
            } else {
                json = try JSON(from: decoder)
            }
        }
        private static func json(of value: Other) -> JSON {
            switch value {
            case let flag as Bool: .flag(flag)
            case let text as String: .text(text)
            case let number as Int: .number(Double(number))
            case let list as [JSON]: .list(list)
            default: .null
            }
        }
        func encode(to encoder: any Encoder) throws {
            if case .number(let number) = json, number == number.rounded() {
                var container = encoder.singleValueContainer()
                return try container.encode(Int(number))
            }
            try json.encode(to: encoder)
        }
    }

    struct Choice<P: RecordPathsTests.Path, Other: Codable & Hashable>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "choice" }
        var id: Int
        var value: Either<Other>
        var maybe: Either<Other>?
    }

    /// What is kept comes back as it was; all else is refused.
    private func checkChoices<P, Other>(_ type: Choice<P, Other>.Type, kept: Int) throws {
        let values: [JSON] = [
            .flag(true), .flag(false), .number(0), .number(1), .number(5), .text("a"), .text("1"),
            .text("[]"), .list([]), .list([.number(1)]), .object([:]),
        ]
        var keptCount = 0
        try fixture.store.write { tx throws in
            for (id, value) in values.enumerated() {
                let row = type.init(id: id, value: Either(value), maybe: Either(value))
                do {
                    try tx.insert(row)
                } catch let error as StoreError {
                    #expect(error.code == .mismatch && error.column == "value", "\(error)")
                    continue
                }
                keptCount += 1
                #expect(try tx.find(type, id) == row, "\(value)")
            }
            try tx.execute("DROP TABLE choice")
        }
        #expect(keptCount == kept, "\(type)")
    }

    @Test func `a value of another kind than the column's is refused, never altered`() throws {
        // 0 and 1 would be read as false and true.
        try checkChoices(Choice<Own, Bool>.self, kept: 3)
        try checkChoices(Choice<Stored, Bool>.self, kept: 3)
        try checkChoices(Choice<Own, Int>.self, kept: 3)
        try checkChoices(Choice<Stored, Int>.self, kept: 3)
        try checkChoices(Choice<Own, String>.self, kept: 3)
        try checkChoices(Choice<Stored, String>.self, kept: 3)
        // The texts that are no JSON of a list, and the lists.
        try checkChoices(Choice<Own, [JSON]>.self, kept: 4)
        try checkChoices(Choice<Stored, [JSON]>.self, kept: 4)
    }

    @Test func `a value that would be altered is refused by every verb`() throws {
        typealias Row = Choice<Own, String>
        let list = Either<String>(.list([]))
        try fixture.store.write { tx throws in
            try tx.insert(Row(id: 1, value: Either(.text("[]")), maybe: nil))
            for verb in [
                { tx in _ = try tx.update(Row.where(\.id == 1).set(\.value, to: list)) },
                { tx in _ = try tx.update(Row.where(\.id == 1).set(\.maybe, to: list)) },
                { tx in _ = try tx.update(Row(id: 1, value: list, maybe: nil)) },
                { tx in _ = try tx.update(Row(id: 1, value: list, maybe: nil), only: \.value) },
                { tx in _ = try tx.fetch(Row.where(\.value == list)) },
                { tx in try tx.insert(ByHand(id: 1, value: list)) },
                { tx in
                    let last = Row(id: 1, value: list, maybe: nil)
                    _ = try tx.fetch(Row.order(by: \.value).after(last))
                },
            ] as [(inout WriteTransaction) throws -> Void] {
                _ = expect(.mismatch) { try verb(&tx) }
            }
            #expect(try tx.find(Row.self, 1)?.value == Either(.text("[]")))
        }
    }

    /// Takes a number for a text, and lets no other error pass than Swift's own.
    struct Forgiving: Codable, Equatable {
        let text: String
        init(text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            do {
                text = try value.decode(String.self)
            } catch DecodingError.typeMismatch {
                text = "\(try value.decode(Int.self))"
            } catch DecodingError.valueNotFound {
                text = "none"
            }
        }
        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            try value.encode(text)
        }
    }

    struct Labelled: Record {
        var id: Int
        var label: Forgiving
    }

    @Test func `a type that catches the errors of Swift's coding meets these`() throws {
        // Without types, so that any value is kept as it is.
        try fixture.execute("CREATE TABLE labelled(id INTEGER PRIMARY KEY, label)")
        try fixture.execute("INSERT INTO labelled VALUES (1, 'a'), (2, 5), (3, x'00')")
        try fixture.store.read { tx throws in
            #expect(try tx.find(Labelled.self, 1)?.label == Forgiving(text: "a"))
            #expect(try tx.find(Labelled.self, 2)?.label == Forgiving(text: "5"))
            let error = expect(.mismatch) { try tx.find(Labelled.self, 3) }
            #expect(error?.column == "label")
            #expect(error?.message.contains("Int, found BLOB") == true, "\(error?.message ?? "")")
        }
    }

    /// Takes what is no small number for a container.
    struct Small: Codable {
        let number: Int
        init(from decoder: any Decoder) throws {
            do {
                number = Int(try decoder.singleValueContainer().decode(Int8.self))
            } catch DecodingError.typeMismatch {
                number = try decoder.container(keyedBy: CodingKeys.self)
                    .decode(Int.self, forKey: .number)
            }
        }
        enum CodingKeys: CodingKey { case number }
        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            try value.encode(Int8(number))
        }
    }

    struct Sized: Record {
        var id: Int
        var size: Small
    }

    @Test func `what a single value was taken for is told, out of range is no other kind`() throws {
        try fixture.execute("CREATE TABLE sized(id INTEGER PRIMARY KEY, size)")
        try fixture.execute("INSERT INTO sized VALUES (1, 5), (2, 300), (3, 'x')")
        try fixture.store.read { tx throws in
            #expect(try tx.find(Sized.self, 1)?.size.number == 5)
            let large = expect(.mismatch) { try tx.find(Sized.self, 2) }
            #expect(large?.message.contains("out of the range of Int8") == true)
            let text = expect(.mismatch) { try tx.find(Sized.self, 3) }
            #expect(text?.message.contains("Int8, found TEXT") == true, "\(text?.message ?? "")")
        }
    }

    /// Codes an optional by the method for all types.
    struct ByHand: Record {
        var id: Int
        var value: Either<String>?
        enum CodingKeys: CodingKey { case id, value }
        init(id: Int, value: Either<String>?) { (self.id, self.value) = (id, value) }
        init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: CodingKeys.self)
            id = try row.decode(Int.self, forKey: .id)
            value = try row.decodeIfPresent(Either<String>.self, forKey: .value)
        }
        func encode(to encoder: any Encoder) throws {
            var row = encoder.container(keyedBy: CodingKeys.self)
            try row.encode(id, forKey: .id)
            try row.encode(value, forKey: .value)
        }
    }

    /// A flag that others write as a number.
    struct LenientFlag: Codable, Hashable {
        var isOn: Bool
        init(_ isOn: Bool) { self.isOn = isOn }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            isOn = try (try? value.decode(Int.self)).map { $0 != 0 } ?? value.decode(Bool.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(isOn)
        }
    }

    /// The same the other way round.
    struct NumericFlag: Codable, Hashable {
        var isOn: Bool
        init(_ isOn: Bool) { self.isOn = isOn }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            isOn = try (try? value.decode(Bool.self)) ?? (value.decode(Int.self) != 0)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(isOn ? 1 : 0)
        }
    }

    struct OneOrMany: Codable, Hashable {
        var texts: [String]
        init(_ texts: String...) { self.texts = texts }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            texts = try (try? value.decode([String].self)) ?? [value.decode(String.self)]
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if texts.count == 1 {
                try container.encode(texts[0])
            } else {
                try container.encode(texts)
            }
        }
    }

    /// One case is a single value, the other one a container.
    enum Mode: Codable, Hashable {
        case auto
        case fixed(Int)
        enum CodingKeys: CodingKey { case fixed }
        init(from decoder: any Decoder) throws {
            if let keyed = try? decoder.container(keyedBy: CodingKeys.self),
                let number = try? keyed.decode(Int.self, forKey: .fixed)
            {
                self = .fixed(number)
            } else {
                _ = try decoder.singleValueContainer().decode(String.self)
                self = .auto
            }
        }
        func encode(to encoder: any Encoder) throws {
            switch self {
            case .auto:
                var container = encoder.singleValueContainer()
                try container.encode("auto")
            case .fixed(let number):
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(number, forKey: .fixed)
            }
        }
    }

    /// One case is nil, which JSON writes as well.
    enum Limit: Codable, Hashable {
        case none
        case some(Int)
        enum CodingKeys: CodingKey { case some }
        init(from decoder: any Decoder) throws {
            if let keyed = try? decoder.container(keyedBy: CodingKeys.self) {
                self = .some(try keyed.decode(Int.self, forKey: .some))
            } else {
                self = .none
            }
        }
        func encode(to encoder: any Encoder) throws {
            switch self {
            case .none:
                var container = encoder.singleValueContainer()
                try container.encodeNil()
            case .some(let number):
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(number, forKey: .some)
            }
        }
    }

    struct Lenient<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "lenient" }
        var id: Int
        var flag: LenientFlag
        var number: NumericFlag
        var texts: OneOrMany
        var mode: Mode
        var maybe: Mode?
        var limit: Limit = .none
    }

    private func checkLenient<P>(_ type: Lenient<P>.Type) throws {
        let rows = [
            type.init(
                id: 1, flag: LenientFlag(true), number: NumericFlag(true), texts: OneOrMany("a"),
                mode: .auto, maybe: .auto),
            type.init(
                id: 2, flag: LenientFlag(false), number: NumericFlag(false),
                texts: OneOrMany("a", "b"), mode: .fixed(3), maybe: .fixed(4), limit: .some(5)),
        ]
        try fixture.store.write { tx throws in
            try tx.insert(rows)
            #expect(try tx.fetch(type.order(by: \.id)) == rows)
            for row in rows {
                #expect(try tx.fetch(type.where(\.flag == row.flag)) == [row])
                #expect(try tx.fetch(type.where(\.number == row.number)) == [row])
                #expect(try tx.fetch(type.where(\.texts == row.texts)) == [row])
                #expect(try tx.fetch(type.where(\.mode == row.mode)) == [row])
                #expect(try tx.fetch(type.where(\.maybe == row.maybe)) == [row])
                #expect(try tx.fetch(type.where(\.limit == row.limit)) == [row])
            }
            try tx.update(type.where(\.id == 2).set(\.mode, to: .auto).set(\.maybe, to: .auto))
            try tx.update(type.where(\.id == 2).set(\.limit, to: Limit.none))
            #expect(try tx.fetch(type.where(\.mode == .auto)).map(\.id).sorted() == [1, 2])
            #expect(try tx.fetch(type.where(\.limit == Limit.none)).map(\.id).sorted() == [1, 2])
            try tx.update(type.where(\.id == 1).set(\.maybe, to: nil))
            #expect(try tx.fetch(type.where(\.maybe == nil)).map(\.id) == [1])
            try tx.execute("DROP TABLE lenient")
        }
    }

    @Test func `a value of another kind that comes back as it was is kept`() throws {
        try checkLenient(Lenient<Own>.self)
        try checkLenient(Lenient<Stored>.self)
    }

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

    // MARK: Numbers and dates at their ends

    struct Reals<P: RecordPathsTests.Path>: Record {
        static var access: RecordAccess { P.access }
        static var table: String { "reals" }
        var id: Int
        var double: Double
        var float: Float
        var maybe: Double?
        var list: [Double]
    }

    @Test func `every finite real comes back bit for bit, but for -0`() throws {
        try checkReals(Reals<Own>.self)
        try checkReals(Reals<Stored>.self)
    }

    private func checkReals<P>(_ type: Reals<P>.Type) throws {
        let doubles: [Double] = [
            0, -0.0, 0.1, .pi, 1e22, 9_007_199_254_740_992, -9_223_372_036_854_775_808,
            9_223_372_036_854_775_808, .ulpOfOne, .leastNonzeroMagnitude, -.leastNormalMagnitude,
            .greatestFiniteMagnitude, 0.1.nextUp, -1e-300, .infinity, -.infinity,
        ]
        let all = doubles.enumerated().map { id, double in
            Reals<P>(
                id: id, double: double, float: Float(double), maybe: double,
                list: double.isFinite ? [double] : [])
        }
        try fixture.store.write { tx throws in
            try tx.upsert(all)
            for found in [try tx.fetch(type.all), try tx.fetch(type.order(by: \.id))] {
                for (one, expected) in zip(found, all) {
                    // Adding 0 makes 0 of -0 and changes no other number.
                    #expect(one.double.bitPattern == (expected.double + 0).bitPattern)
                    #expect(one.maybe?.bitPattern == (expected.double + 0).bitPattern)
                    #expect(one.float.bitPattern == (expected.float + 0).bitPattern)
                    #expect(one.list == expected.list)
                }
            }
            for one in all where one.double != 0 {
                #expect(try tx.fetch(type.where(\.double == one.double)).map(\.id) == [one.id])
            }
            #expect(try tx.count(type.where(\.double == -0.0)) == 2)
        }
    }

    struct Big<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "big" }
        var id: Int
        var whole: UInt64
        var word: UInt?
        var wrapped: Count
        var list: [UInt64]

        init(_ id: Int, whole: UInt64 = 0, word: UInt? = nil, wrapped: UInt64 = 0) {
            (self.id, self.whole, self.word) = (id, whole, word)
            self.wrapped = Count(number: wrapped)
            list = [.max, whole]
        }
    }

    struct Count: Codable, Hashable {
        var number: UInt64
        init(number: UInt64) { self.number = number }
        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(UInt64.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    @Test func `an unsigned integer fits up to that of Int64, and not one more`() throws {
        try checkBig(Big<Own>.self)
        try checkBig(Big<Stored>.self)
    }

    private func checkBig<P>(_ type: Big<P>.Type) throws {
        let top = UInt64(Int64.max)
        try fixture.store.write { tx throws in
            let fitting = Big<P>(1, whole: top, word: UInt(top), wrapped: top)
            try tx.upsert(fitting)
            #expect(try tx.fetch(type.all) == [fitting])
            for (bad, column) in [
                (Big<P>(2, whole: top + 1), "whole"), (Big<P>(2, word: UInt(top) + 1), "word"),
                (Big<P>(2, wrapped: top + 1), "wrapped"), (Big<P>(2, whole: .max), "whole"),
            ] {
                let error = expect(.mismatch) { try tx.insert(bad) }
                #expect(error?.column == column)
            }
            let path = \Big<P>.whole
            for condition in [path == top + 1, path < .max, [0, top + 1].contains(path)] {
                let error = expect(.mismatch) { try tx.count(type.where(condition)) }
                #expect(error?.column == "whole")
            }
            _ = expect(.mismatch) { try tx.update(type.all.set(\.whole, to: .max)) }
            _ = expect(.mismatch) { try tx.find(type, UInt64.max) }
            #expect(try tx.fetch(type.where(\.whole >= top)) == [fitting])
        }
    }

    struct Moment<P: RecordPathsTests.Path>: Record {
        static var access: RecordAccess { P.access }
        static var table: String { "moment" }
        var id: Int
        var date: Date
        var maybe: Date?
        var list: [Date]
    }

    @Test func `dates of any time keep their microseconds, and are found by themselves`() throws {
        try checkMoments(Moment<Own>.self)
        try checkMoments(Moment<Stored>.self)
    }

    private func checkMoments<P>(_ type: Moment<P>.Type) throws {
        let dates: [Date] =
            [0, -0.000_001, 0.000_000_1, 1_700_000_000.123_456_7, -11_676_096_000.5, 8e9 + 0.25]
            .map { Date(timeIntervalSince1970: $0) }
            + [.distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: 0.000_000_4)]
        let all = dates.enumerated().map { Moment<P>(id: $0, date: $1, maybe: $1, list: [$1]) }
        try fixture.store.write { tx throws in
            try tx.upsert(all)
            for found in [try tx.fetch(type.all), try tx.fetch(type.order(by: \.id))] {
                for (one, expected) in zip(found, all) {
                    #expect(abs(one.date.timeIntervalSince(expected.date)) < 0.000_001)
                    #expect(one.maybe == one.date && one.list == expected.list)
                }
            }
            // What was read and is written again does not drift.
            let before = try tx.rows("SELECT date FROM moment ORDER BY id").map(\.values)
            try tx.update(try tx.fetch(type.all))
            #expect(try tx.rows("SELECT date FROM moment ORDER BY id").map(\.values) == before)
            for one in all {
                #expect(try tx.fetch(type.where(\.date == one.date)).map(\.id) == [one.id])
            }
            for wrong in [Date(timeIntervalSince1970: .nan), Date(timeIntervalSince1970: -.nan)] {
                let bad = Moment<P>(id: 99, date: wrong, maybe: nil, list: [])
                #expect(expect(.mismatch) { try tx.insert(bad) }?.column == "date")
                let worse = Moment<P>(id: 99, date: .distantPast, maybe: wrong, list: [])
                #expect(expect(.mismatch) { try tx.insert(worse) }?.column == "maybe")
            }
        }
    }

    struct Price: Record, Equatable {
        var id: Int
        var amount: Decimal
    }

    @Test func `equal decimals are one text, and what is no number is refused`() throws {
        let same = [
            Decimal(sign: .plus, exponent: -2, significand: 150),
            Decimal(sign: .plus, exponent: -1, significand: 15), Decimal(1.5),
        ]
        let ends = [
            Decimal.greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, 0,
        ]
        let all = (same + ends).enumerated().map { Price(id: $0, amount: $1) }
        try fixture.store.write { tx throws in
            try tx.insert(all)
            #expect(try tx.fetch(Price.order(by: \.id)) == all)
            #expect(try tx.count(Price.where(\.amount == same[0])) == 3)
            for price in all {
                #expect(try tx.fetch(Price.where(\.amount == price.amount)).contains(price))
            }
            let error = expect(.mismatch) { try tx.insert(Price(id: 99, amount: .nan)) }
            #expect(error?.column == "amount")
        }
    }

    struct Link: Record, Equatable {
        var id: Int
        var url: URL
        var maybe: URL?
    }

    @Test func `a relative URL becomes the absolute one`() throws {
        let base = try #require(URL(string: "https://example.com/a/"))
        let relative = try #require(URL(string: "b?c=ä", relativeTo: base))
        let found = try #require(
            try fixture.roundTrip(Link(id: 1, url: relative, maybe: base)).first)
        #expect(found.url.absoluteString == relative.absoluteString && found.url.baseURL == nil)
        #expect(found.url == relative.absoluteURL && found.maybe == base)
        let count = try fixture.store.read { tx in try tx.count(Link.where(\.url == relative)) }
        #expect(count == 1)
    }

    struct Huge: Record {
        var id: Int
        var number: Int128
    }

    @Test func `an integer of 128 bits, which no coder of Coffer's knows, is an error`() throws {
        try fixture.store.write { tx throws in
            _ = expect(.misuse) { try tx.insert(Huge(id: 1, number: 1)) }
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
