import Foundation
import Synchronization
import Testing

@testable import Coffer

/// The conditions for using a type's stored properties, and what happens without them.
@Suite(.againstHanging, .onOwnThreads) struct StoredPropertyTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Plain: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        enum Colour: String, Codable, CaseIterable { case red, green }
        enum CodingKeys: String, CodingKey {
            case id, flag
            case title = "title_text"
            case count, colour, spot, note
        }
        var id: Int
        private(set) var flag = true
        var title: String
        var count: Int16?
        var colour: Colour?
        let spot: [Double]
        var note: String? { didSet { if note == "never" { note = "seen" } } }

        static func numbered(_ id: Int) -> Plain {
            Plain(id: id, title: "n\(id)", count: 3, colour: .green, spot: [0.5], note: nil)
        }
    }

    @Test func `a type that asks for its stored properties gets them`() throws {
        #expect(try Plain.accessReport().access == .storedProperties)
        #expect(try Plain.accessReport().reason == nil)
        let all = (1...40).map { Plain.numbered($0) }
        try fixture.store.write { tx in try tx.insert(all) }
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(Plain.order(by: \.id)) == all)
            #expect(try tx.fetch(Plain.where(\.id > 38)) == Array(all.suffix(2)))
            #expect(try tx.find(Plain.self, 7) == all[6])
            let found = try tx.fetch(
                Plain.self, sql: "SELECT note, title_text, spot, flag, id FROM plain WHERE id = 3")
            #expect(found.first?.title == "n3")
            #expect(found.first?.count == nil)
            let error = expect(.mismatch) {
                try tx.fetch(Plain.self, sql: "SELECT id, flag, spot FROM plain")
            }
            #expect(error?.column == "title_text")
        }
    }

    struct NotAsking: Record { var id: Int }

    final class Shared: Record {
        static var access: RecordAccess { .storedProperties }
        let id: Int
        init(id: Int) { self.id = id }
    }

    struct Mirrored: Record, CustomReflectable {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var customMirror: Mirror { Mirror(self, children: ["other": 0.5]) }
    }

    struct Exemplary: Record {
        static var access: RecordAccess { .storedProperties }
        static var example: Exemplary? { Exemplary(id: 3) }
        var id: Int
    }

    struct Derived: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var copy: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            copy = id
        }
    }

    struct Constant: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var kept = 0.5
        enum CodingKeys: CodingKey { case id }
    }

    struct Joined: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var words: [String]
        enum CodingKeys: CodingKey { case id, words }
        init(id: Int, words: [String]) { (self.id, self.words) = (id, words) }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            words = try container.decode(String.self, forKey: .words).split(separator: " ")
                .map(String.init)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(words.joined(separator: " "), forKey: .words)
        }
    }

    struct Defaulting: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decodeIfPresent(Int.self, forKey: .id) ?? 7
        }
    }

    struct Lowering: Record {
        static var access: RecordAccess { .storedProperties }
        var title: String
        enum CodingKeys: CodingKey { case title }
        init(title: String) { self.title = title }
        init(from decoder: any Decoder) throws {
            title = try decoder.container(keyedBy: CodingKeys.self)
                .decode(String.self, forKey: .title).lowercased()
        }
    }

    struct Raising: Record {
        static var access: RecordAccess { .storedProperties }
        var title: String
        enum CodingKeys: CodingKey { case title }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(title.uppercased(), forKey: .title)
        }
    }

    struct Normal: Record {
        static var access: RecordAccess { .storedProperties }
        var title: String
        enum CodingKeys: CodingKey { case title }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(title.precomposedStringWithCanonicalMapping, forKey: .title)
        }
    }

    struct Checking: Record {
        static var access: RecordAccess { .storedProperties }
        struct Negative: Error {}
        var count: Int
        enum CodingKeys: CodingKey { case count }
        init(from decoder: any Decoder) throws {
            count = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .count)
            if count < 0 { throw Negative() }
        }
    }

    struct Exchanged: Record {
        static var access: RecordAccess { .storedProperties }
        var first: Bool
        var second: Bool
        enum CodingKeys: CodingKey { case first, second }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(second, forKey: .first)
            try container.encode(first, forKey: .second)
        }
    }

    @propertyWrapper struct Trimmed: Codable, Sendable {
        var wrappedValue: String
        init(wrappedValue: String) { self.wrappedValue = wrappedValue }
        init(from decoder: any Decoder) throws {
            wrappedValue = try decoder.singleValueContainer().decode(String.self)
                .trimmingCharacters(in: .whitespaces)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(wrappedValue)
        }
    }

    struct Wrapping: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        @Trimmed var title: String
    }

    private func reason<R: Record>(_ type: R.Type) throws -> String? {
        try R.accessReport().reason
    }

    @Test func `the report says why stored properties cannot be used`() throws {
        #expect(try reason(NotAsking.self) == "static var access does not ask for them")
        #expect(try reason(Shared.self) == "it is a class")
        #expect(try reason(Mirrored.self) == "it has a mirror of its own")
        #expect(
            try reason(Exemplary.self)
                == "its columns come from an example, and other values cannot be tried")
        #expect(try reason(Derived.self) == "the property copy has no column of its own")
        #expect(try reason(Constant.self) == "the property kept has no column of its own")
        #expect(try reason(Joined.self) == "the property words is coded as another type, String")
        #expect(
            try reason(Defaulting.self)
                == "of the property id and its column, only one can be nil")
        #expect(
            try reason(Lowering.self)
                == "its init(from:) makes something else of the column title")
        #expect(
            try reason(Raising.self)
                == "its encode(to:) makes something else for the column title")
        #expect(
            try reason(Normal.self)
                == "its encode(to:) makes something else for the column title")
        #expect(
            try reason(Checking.self)
                == "its init(from:) refuses values that its properties can hold")
        #expect(
            try reason(Exchanged.self)
                == "its encode(to:) makes something else for the column first")
    }

    @Test func `a property with its own coding keeps it`() throws {
        #expect(try reason(Wrapping.self) == nil)
        try fixture.store.write { tx throws in
            try tx.insert(Wrapping(id: 1, title: " a "))
            #expect(try tx.fetch(Wrapping.all).map(\.title) == ["a"])
        }
    }

    @Test func `a type that cannot use stored properties is coded as usual`() throws {
        try fixture.store.write { tx throws in
            try tx.insert([Joined(id: 1, words: ["a", "b"]), Joined(id: 2, words: [])])
            #expect(try tx.rows("SELECT words FROM joined").flatMap(\.values) == ["a b", ""])
            #expect(try tx.find(Joined.self, 1)?.words == ["a", "b"])
            try tx.insert(Lowering(title: "LOUD"))
            #expect(try tx.fetch(Lowering.all).map(\.title) == ["loud"])
        }
    }

    struct Unreflectable: Record {
        static var access: RecordAccess { .storedProperties }
        enum CodingKeys: CodingKey {}
    }

    @Test func `a type without columns is an error, not a reason`() throws {
        _ = expect(.misuse) { try Unreflectable.accessReport() }
    }

    // MARK: Collecting

    @Test func `the collector is reserved for Coffer`() throws {
        let folder = try TemporaryFolder()
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            // The function has as many arguments as the type has columns.
            try connection.register(function: "coffer_collect", argumentCount: 2) { _ in 0 }
        }
        let store = try Store(
            path: folder.path(), key: .numbered(7), configuration: configuration)
        try store.write { tx throws in
            try tx.insert([Two(id: 1, title: "a"), Two(id: 2, title: "b")])
            _ = expect(.misuse) { try tx.fetch(Two.all) }
            #expect(try tx.fetch(Two.order(by: \.id)).count == 2)
        }
        try fixture.store.write { tx throws in
            try tx.insert(Two(id: 1, title: "a"))
            #expect(try tx.fetch(Two.all).count == 1)
            _ = expect(.sql) { try tx.rows("SELECT coffer_collect(1)") }
            _ = expect(.sql) { try tx.rows("SELECT coffer_collect(id, title) FROM two") }
            #expect(try tx.fetch(Two.all).count == 1)
        }
    }

    struct Two: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var title: String
    }

    @Test(arguments: [0, 1, 8, 9, 16, 17, 100, 20])
    func `as many rows are fetched as there are`(count: Int) throws {
        let all = (0..<count).map { Two(id: $0, title: "a text of more than 15 bytes, \($0)") }
        try fixture.store.write { tx throws in
            try tx.create(Two.self)
            try tx.insert(all)
            // Each fetch uses what the previous one learned; the last one follows a fetch of fewer
            // rows.
            for _ in 0..<2 {
                #expect(try tx.fetch(Two.all) == all)
                #expect(try tx.fetch(Two.order(by: \.id)) == all)
            }
            #expect(try tx.fetch(Two.where(\.id < 3)).count == min(3, count))
            #expect(try tx.fetch(Two.all) == all)
        }
    }

    @Test func `the row that does not fit is named by its integer key`() throws {
        try fixture.execute("CREATE TABLE two(id, title)")
        try fixture.execute("INSERT INTO two VALUES (7, 'a'), (8, 9), ('secret', 5)")
        try fixture.execute("CREATE TABLE note(id, title, pinned, rank, note, created)")
        try fixture.execute("INSERT INTO note VALUES (8, 9, 0, 0.5, NULL, 0.5)")
        try fixture.store.read { tx throws in
            let ending = ", in the row with id 8"
            var error = expect(.mismatch) { try tx.fetch(Two.all) }
            #expect(error?.message.hasSuffix(ending) == true)
            #expect(error?.column == "title")
            error = expect(.mismatch) { try tx.find(Two.self, 8) }
            #expect(error?.message.hasSuffix(ending) == true)
            error = expect(.mismatch) { try tx.fetch(Note.all) }
            #expect(error?.message.hasSuffix(ending) == true)
            error = expect(.mismatch) {
                try tx.fetch(Two.self, sql: "SELECT title, id FROM two WHERE id = 'secret'")
            }
            #expect(error?.message.contains("secret") == false)
        }
    }

    // MARK: Nothing is left behind

    final class Token: Codable, Sendable, Equatable {
        static let count = AliveCount()
        let number: Int
        init(_ number: Int) {
            self.number = number
            Self.count.add(1)
        }
        deinit { Self.count.add(-1) }
        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            Self.count.add(1)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
        static func == (left: Token, right: Token) -> Bool { left.number == right.number }
    }

    struct Counted: Record {
        static var access: RecordAccess { .storedProperties }
        var first: Token
        var second: Token?
        var text: String
        var last: Int8
    }

    @Test func `a row that fails half-way leaves nothing behind, nor do the rows before it`() throws
    {
        #expect(try reason(Counted.self) == nil)
        try fixture.execute("CREATE TABLE counted(first, second, text, last)")
        try fixture.execute("INSERT INTO counted VALUES (1, 2, 'a', 3), (4, 5, 'b', 600)")
        let before = Token.count.value
        try fixture.store.read { tx throws in
            let error = expect(.mismatch) { try tx.fetch(Counted.all) }
            #expect(error?.column == "last")
            #expect(Token.count.value == before)
            let rows = try tx.fetch(Counted.where(\.last < 100))
            #expect(Token.count.value == before + 2)
            #expect(rows.first?.second?.number == 2)
        }
        #expect(Token.count.value == before)
    }
}

/// Counts the values that are alive.
final class AliveCount: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
    func add(_ change: Int) { count.add(change, ordering: .sequentiallyConsistent) }
}
