import Foundation
import Testing

@testable import Coffer

/// `Lazy` properties where records come from elsewhere than a plain table, or go elsewhere than
/// into an array.
@Suite(.againstHanging, .onOwnThreads) struct LazyUseTests {
    private struct Page: Record, Equatable {
        var id: Int
        var title: String
        var body: Lazy<Data>
        var text: Lazy<String>?
    }

    private let fixture: RecordFixture
    private var store: Store { fixture.store }
    private let body = Data(repeating: 7, count: 5000)

    init() throws {
        fixture = try RecordFixture()
        try store.write { [body] tx in
            for id in 1...3 {
                try tx.insert(Page(id: id, title: "a", body: Lazy(body), text: Lazy("x")))
            }
        }
    }

    @Test func `a stream leaves the values in the file`() async throws {
        var count = 0
        for try await page in store.stream(Page.all, portion: 2) {
            #expect(!page.body.isLoaded && page.text?.isLoaded == false)
            #expect(try await store.read { tx in try tx.load(\.body, of: page) } == body)
            count += 1
        }
        #expect(count == 3)
    }

    @Test func `an observer hears of a value that changed in the file without its size`()
        async throws
    {
        let values = store.observe { tx in try tx.find(Page.self, 1) }.makeAsyncIterator()
        let first = try #require(try await values.next() ?? nil)
        #expect(!first.body.isLoaded)
        let other = Data(repeating: 8, count: body.count)
        try await store.write { tx in
            try tx.execute("UPDATE page SET body = \(other) WHERE id = 1")
        }
        let second = try #require(try await values.next() ?? nil)
        #expect(second.body.byteCount == first.body.byteCount && second != first)
        #expect(try await store.read { tx in try tx.load(\.body, of: second) } == other)
    }

    @Test func `the pieces of a value are read and written by the record's key`() async throws {
        var read = Data()
        for try await chunk in store.chunks(of: \.body, in: Page.self, key: 1) { read += chunk }
        #expect(read == body)
        let new = Data(repeating: 9, count: 100)
        let source = AsyncStream<Data> { continuation in
            continuation.yield(new)
            continuation.finish()
        }
        try await store.writeBlob(\.body, in: Page.self, key: 1, byteCount: 100, from: source)
        let page = try #require(try await store.read { tx in try tx.find(Page.self, 1) })
        #expect(page.body.byteCount == 100)
        #expect(try await store.read { tx in try tx.load(\.body, of: page) } == new)
    }

    @Test func `a view and a generated column give values that stay in the file`() throws {
        struct Shown: Record {
            static let table = "shown"
            var id: Int
            var body: Lazy<Data>
        }
        try store.write { tx in
            try tx.execute("CREATE VIEW shown AS SELECT id, body FROM page WHERE id < 3")
        }
        let shown = try store.read { tx in try tx.fetch(Shown.order(by: \.id)) }
        #expect(shown.map(\.body.isLoaded) == [false, false])
        #expect(try store.read { tx in try tx.load(\.body, of: shown[1]) } == body)
        guard isEngine4 else { return }
        struct Generated: Record {
            static let table = "generated"
            var id: Int
            var body: Lazy<String>
        }
        try store.write { tx in
            try tx.execute(
                "CREATE TABLE generated(id INTEGER PRIMARY KEY, body TEXT AS (id || 'x'))")
            try tx.execute("INSERT INTO generated(id) VALUES (5)")
        }
        let made = try store.read { tx in try tx.fetch(Generated.all) }
        #expect(made.map(\.body.isLoaded) == [false])
        #expect(try store.read { tx in try tx.load(\.body, of: made[0]) } == "5x")
    }

    @Test func `a record with more columns than a word has bits leaves its last value`() throws {
        struct Wide: Record {
            static let table = "wide"
            var id: Int
            var a: [Int]
            var body: Lazy<Data>
        }
        // The record has three properties, and the table 70 columns before the value.
        let names = (0..<70).map { "c\($0) INTEGER" }.joined(separator: ", ")
        try store.write { tx in
            try tx.execute(
                SQL(
                    text: "CREATE TABLE wide(id INTEGER PRIMARY KEY, a TEXT, \(names), body BLOB)")
            )
            try tx.insert(Wide(id: 1, a: [1], body: Lazy(body)))
        }
        let found = try store.read { tx in try tx.fetch(Wide.all) }
        #expect(found.map(\.body.byteCount) == [5000] && found.map(\.body.isLoaded) == [false])
        #expect(try store.read { tx in try tx.load(\.body, of: found[0]) } == body)
    }

    // MARK: Encoded by hand

    /// Leaves a value that is not loaded out, so that other encoders can have the rest.
    private struct Letter: Record {
        enum CodingKeys: String, CodingKey { case id, title, body, text }
        /// How `encode(to:)` treats a property without a value.
        enum Nothing { case left, encodeNil, encodeIfPresent }
        static let table = "page"
        var id: Int
        var title: String
        var body: Lazy<Data>?
        var text: Lazy<String>?
        var nothing = Nothing.left

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            title = try container.decode(String.self, forKey: .title)
            body = try container.decodeIfPresent(Lazy<Data>.self, forKey: .body)
            text = try container.decodeIfPresent(Lazy<String>.self, forKey: .text)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(title, forKey: .title)
            if let body, body.isLoaded { try container.encode(body, forKey: .body) }
            if let text, text.isLoaded {
                // As the column holds it.
                try container.encodeIfPresent(text.value as String?, forKey: .text)
            } else if nothing == .encodeNil {
                try container.encodeNil(forKey: .text)
            } else if nothing == .encodeIfPresent {
                try container.encodeIfPresent(nil as String?, forKey: .text)
                try container.encodeIfPresent(nil as Lazy<Data>?, forKey: .body)
            }
        }
    }

    private func letter(_ id: Int = 1) throws -> Letter {
        try #require(try store.read { tx in try tx.find(Letter.self, id) })
    }

    private func values() throws -> [Value] {
        try fixture.values("SELECT title, body, text FROM page WHERE id = 1")
    }

    /// A column without a value became NULL, whether the record had encoded NULL or nothing.
    @Test func `an update keeps the column of a value that encode(to:) leaves out`() throws {
        var letter = try letter()
        letter.title = "b"
        try store.write { [letter] tx in try tx.update(letter) }
        #expect(try values() == [.text("b"), .blob(body), .text("x")])
        letter.title = "c"
        letter.text = Lazy("y")
        try store.write { [letter] tx in try tx.update(letter, expecting: \.title == "b") }
        #expect(try values() == [.text("c"), .blob(body), .text("y")])
        letter.body = Lazy(Data([1]))
        try store.write { [letter] tx in try tx.update(letter) }
        #expect(try values() == [.text("c"), .blob(Data([1])), .text("y")])
    }

    @Test(arguments: [Letter.Nothing.encodeNil, .encodeIfPresent])
    private func `an update makes a column NULL if encode(to:) says so`(
        nothing: Letter.Nothing
    ) throws {
        try fixture.execute("ALTER TABLE page RENAME TO old")
        try fixture.execute(
            "CREATE TABLE page(id INTEGER PRIMARY KEY, title TEXT, body BLOB, text TEXT)")
        try fixture.execute("INSERT INTO page SELECT id, title, body, text FROM old")
        var letter = try letter()
        letter.text = nil
        letter.nothing = nothing
        try store.write { [letter] tx in try tx.update(letter) }
        let kept: Value = nothing == .encodeNil ? .blob(body) : .null
        #expect(try values() == [.text("a"), kept, .null])
    }

    @Test(arguments: [false, true])
    func `a record of which encode(to:) leaves a value out is never inserted`(
        isLoaded: Bool
    ) throws {
        var letter = try letter()
        letter.id = 9
        if isLoaded { letter.body = Lazy(body) }
        let copy = letter
        let refused: [(borrowing WriteTransaction) throws -> Void] = [
            { try $0.insert(copy) }, { try $0.upsert(copy) }, { try $0.insert([copy]) },
        ]
        for work in refused {
            let error = expect(.misuse) { try store.write { tx in try work(tx) } }
            #expect(error?.column == (isLoaded ? "text" : "body"), "\(String(describing: error))")
        }
        expect(.misuse) { try store.write { tx in try tx.update(copy, only: \.text) } }
        #expect(try store.read { tx in try tx.count(Page.all) } == 3)
        // The refusal of one record does not touch the next.
        letter.body = Lazy(body)
        letter.text = Lazy("z")
        try store.write { [letter] tx in try tx.insert(letter) }
        #expect(try store.read { tx in try tx.count(Page.all) } == 4)
    }

    @Test func `a table that a migration rebuilds keeps values that were not loaded`() throws {
        try store.migrate([
            Migration("rebuild") { tx in
                try tx.execute(
                    "CREATE TABLE new(id INTEGER PRIMARY KEY, title TEXT, body BLOB, text TEXT)")
                try tx.execute("INSERT INTO new SELECT id, title, body, text FROM page")
                try tx.execute("DROP TABLE page")
                try tx.execute("ALTER TABLE new RENAME TO page")
            }
        ])
        var page = try #require(try store.read { tx in try tx.find(Page.self, 2) })
        page.title = "b"
        try store.write { tx in try tx.update(page) }
        #expect(try store.read { tx in try tx.load(\.body, of: page) } == body)
        #expect(try store.read { tx in try tx.load(\.text, of: page) } == "x")
    }
}
