import Foundation
import Testing

@testable import Coffer

/// Types that try one kind of value after the other: each value round-trips or is refused.
@Suite(.againstHanging, .onOwnThreads) struct OddTypeTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    typealias Own = RecordPathsTests.Own
    typealias Stored = RecordPathsTests.Stored

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
}
