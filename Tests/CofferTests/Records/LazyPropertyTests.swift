import Foundation
import Testing

@testable import Coffer

/// Properties that stay in the file until they are asked for.
@Suite struct LazyPropertyTests {
    private struct Page: Record, Equatable {
        var id: Int
        var title: String
        var body: Lazy<Data>
    }

    /// The same, read and written without its own coding.
    private struct StoredPage: Record, Equatable {
        static let table = "page"
        static let access = RecordAccess.storedProperties
        var id: Int
        var title: String
        var body: Lazy<Data>
    }

    /// The table of `Page`, with its bytes.
    private struct WholePage: Record, Equatable {
        static let table = "page"
        var id: Int
        var title: String
        var body: Data
    }

    private struct Text: Record, Equatable {
        static var references: [Reference<Self>] { [Reference(\.page, to: Page.self)] }
        static var indexes: [Index<Self>] { [Index(\.name, isUnique: true)] }
        var id: Int
        var name: String
        var page: Int?
        var note: Lazy<Data>?
        var text: Lazy<String>?
    }

    private struct LazyKey: Record {
        static let key = ["name"]
        var name: Lazy<String>
    }

    private let fixture: RecordFixture
    private var store: Store { fixture.store }
    private let body = Data([1, 0, 2])

    init() throws {
        fixture = try RecordFixture()
        try store.write { [body] tx in
            try tx.insert(Page(id: 1, title: "a", body: Lazy(body)))
        }
    }

    private func page() throws -> Page {
        try #require(try store.read { tx in try tx.find(Page.self, 1) })
    }

    private func stored(_ id: Int = 1) throws -> WholePage? {
        try store.read { tx in try tx.find(WholePage.self, id) }
    }

    @Test func `the column is that of the value`() throws {
        try store.write { tx in try tx.create(Text.self) }
        #expect(try fixture.columns(of: "page").last == "body BLOB NOT NULL")
        #expect(try fixture.columns(of: "text").suffix(2) == ["note BLOB", "text TEXT"])
        #expect(try store.read { tx in try tx.schemaDifferences(of: Page.self) }.isEmpty)
    }

    @Test func `no read of records loads the value, and each tells its size`() throws {
        let size = body.count
        func check(_ found: [Page]) {
            #expect(found.count == 1 && found.allSatisfy { !$0.body.isLoaded })
            #expect(found.first?.body.byteCount == size)
        }
        try store.write { tx in
            try tx.insert(Text(id: 5, name: "n", page: 1, note: nil, text: Lazy("x")))
        }
        try store.read { tx throws in
            check(try tx.fetch(Page.all))
            check(try tx.fetch(Page.where(\.title == "a").order(by: \.title).limit(3)))
            check([try #require(try tx.find(Page.self, 1))])
            check([try #require(try tx.first(Page.all))])
            check(try tx.find(Page.self, keys: [1]))
            check(try tx.fetch(Text.all.joining(\.page, to: Page.all)).map(\.1))
            try tx.forEachPortion(of: 2, Page.all) { check($0) }
            let stored = try tx.fetch(StoredPage.all)
            #expect(stored.map(\.body.isLoaded) == [false])
            let text = try #require(try tx.fetch(Text.all.joining(\.page, to: Page.all)).first).0
            #expect(text.note == nil && text.text?.isLoaded == false)
            #expect(text.text?.byteCount == nil)
        }
    }

    @Test func `SQL and other types get the value itself`() throws {
        struct Other: Decodable { var body: Data }
        try store.read { tx throws in
            let pages = try tx.fetch(Page.self, sql: "SELECT * FROM page")
            #expect(try pages.map { try $0.body.value } == [body])
            #expect(try tx.fetch(Page.all, as: Other.self).map(\.body) == [body])
        }
        try fixture.execute("UPDATE page SET body = 7")
        expect(.mismatch) {
            try store.read { tx in try tx.fetch(Page.self, sql: "SELECT * FROM page") }
        }
        let page = try page()
        expect(.mismatch) { try store.read { tx in try tx.load(\.body, of: page) } }
    }

    @Test func `a value that is not loaded is equal to its copies alone`() throws {
        let found = try store.read { tx in try tx.fetch(Page.where(\.id == 1)) }
        let again = try store.read { tx in try tx.fetch(Page.where(\.id == 1)) }
        let copy = found
        #expect(found == copy && found != again)
        #expect(Set(found.map(\.body) + copy.map(\.body)).count == 1)
        #expect(Lazy(body) == Lazy(body) && Lazy(body) != found[0].body)
    }

    @Test func `a value is loaded on demand`() throws {
        let page = try page()
        var text = Text(id: 1, name: "n", page: nil, note: Lazy(Data()), text: Lazy("é\0ü"))
        try store.write { tx in try tx.insert(text) }
        try store.read { tx throws in
            #expect(try tx.load(\.body, of: page) == body)
            var full = page
            try tx.load(\.body, into: &full)
            #expect(full == Page(id: 1, title: "a", body: Lazy(body)))
            let found = try #require(try tx.find(Text.self, 1))
            #expect(found.note?.byteCount == 0 && found.note?.isLoaded == false)
            #expect(try tx.load(\.note, of: found) == Data())
            #expect(try tx.load(\.text, of: found) == "é\0ü")
            text = found
            try tx.load(\.text, into: &text)
            #expect(try text.text?.value == "é\0ü" && text.note?.isLoaded == false)
            let bytes = try tx.withBlob(\.body, in: Page.self, key: 1) { $0.byteCount }
            #expect(bytes == body.count)
        }
        try fixture.execute("UPDATE text SET note = NULL, text = NULL")
        try store.read { tx throws in
            #expect(try tx.load(\.note, of: text) == nil)
            try tx.load(\.text, into: &text)
            #expect(text.text == nil)
        }
    }

    @Test func `a value whose row or table is gone is not found`() throws {
        let page = try page()
        try fixture.execute("DELETE FROM page")
        expect(.notFound) { try store.read { tx in try tx.load(\.body, of: page) } }
        expect(.notFound) { try store.write { tx in try tx.update(page) } }
        try fixture.execute("DROP TABLE page")
        expect(.notFound) { try store.read { tx in try tx.load(\.body, of: page) } }
    }

    @Test func `NULL is not a value of a property that is not optional`() throws {
        let page = try page()
        try fixture.execute("DROP TABLE page")
        try fixture.execute("CREATE TABLE page(id INTEGER PRIMARY KEY, title TEXT, body BLOB)")
        try fixture.execute("INSERT INTO page VALUES (1, 'a', NULL)")
        expect(.mismatch) { try store.read { tx in try tx.fetch(Page.all) } }
        expect(.mismatch) { try store.read { tx in try tx.load(\.body, of: page) } }
    }

    @Test func `a key of several rows loads none of their values`() throws {
        let page = try page()
        try fixture.execute("DROP TABLE page")
        try fixture.execute("CREATE TABLE page(id INTEGER, title TEXT, body BLOB)")
        try fixture.execute("INSERT INTO page VALUES (1, 'a', x'01'), (1, 'b', x'02')")
        expect(.mismatch) { try store.read { tx in try tx.load(\.body, of: page) } }
    }

    @Test func `a record whose value is not loaded is never inserted`() throws {
        var page = try page()
        page.id = 2
        let copy = page
        func refuse(_ work: (borrowing WriteTransaction) throws -> Void) {
            let error = expect(.misuse) { try store.write { tx in try work(tx) } }
            #expect(error?.column == "body" && error?.hint?.contains("load") == true)
        }
        refuse { try $0.insert(copy) }
        refuse { try $0.insert([Page(id: 3, title: "", body: Lazy(Data())), copy]) }
        refuse { try $0.upsert(copy) }
        refuse { try $0.upsert(copy, conflictingOn: \.id) }
        refuse { try $0.update(copy, only: \.body) }
        refuse { try $0.update(Page.all.set(\.body, to: copy.body)) }
        let stored = StoredPage(id: 2, title: "", body: page.body)
        refuse { try $0.insert(stored) }
        #expect(try store.read { tx in try tx.count(Page.all) } == 1)
        #expect(try self.stored()?.body == body)
        // The refusal of one record does not touch the next.
        try store.write { tx throws in
            try tx.insert(Page(id: 4, title: "", body: Lazy(Data([4]))))
            #expect(try tx.find(WholePage.self, 4)?.body == Data([4]))
        }
    }

    @Test func `an optional value that is not loaded is never inserted`() throws {
        let text = Text(id: 1, name: "n", page: nil, note: Lazy(body), text: nil)
        try store.write { tx in try tx.insert(text) }
        var found = try #require(try store.read { tx in try tx.find(Text.self, 1) })
        found.id = 2
        found.name = "m"
        let copy = found
        expect(.misuse) { try store.write { tx in try tx.insert(copy) } }
        expect(.misuse) { try store.write { tx in try tx.upsert(copy, conflictingOn: \.name) } }
        try store.write { tx in
            var changed = copy
            changed.id = 1
            changed.text = Lazy("t")
            try tx.update(changed)
        }
        let values = try fixture.values("SELECT name, note, text FROM text")
        #expect(values == [.text("m"), .blob(body), .text("t")])
    }

    @Test func `an update leaves a value that is not loaded as another writer left it`() throws {
        var page = try page()
        let newer = Data([9, 9])
        try store.write { tx in try tx.update(Page.all.set(\.body, to: Lazy(newer))) }
        page.title = "b"
        let changed = page
        try store.write { tx throws in
            try tx.update(changed)
            #expect(try tx.find(WholePage.self, 1) == WholePage(id: 1, title: "b", body: newer))
            var other = changed
            other.title = "c"
            try tx.update(other, only: \.title)
            other.title = "d"
            try tx.update(other, expecting: \.title == "c" && \.body == Lazy(newer))
            #expect(try tx.find(WholePage.self, 1) == WholePage(id: 1, title: "d", body: newer))
            #expect(try tx.updateIfPresent(StoredPage(id: 1, title: "e", body: changed.body)))
            #expect(try tx.find(WholePage.self, 1) == WholePage(id: 1, title: "e", body: newer))
        }
        expect(.conflict) {
            try store.write { tx in try tx.update(changed, expecting: \.title == "other") }
        }
    }

    @Test func `an update writes a value that is loaded or set`() throws {
        var page = try page()
        page.body = Lazy(Data([5]))
        let changed = page
        try store.write { tx throws in
            try tx.update(changed)
            #expect(try tx.find(WholePage.self, 1)?.body == Data([5]))
            try tx.upsert(Page(id: 1, title: "u", body: Lazy(Data([6]))))
            #expect(try tx.find(WholePage.self, 1)?.body == Data([6]))
            try tx.update(changed, only: \.body)
            #expect(try tx.find(WholePage.self, 1)?.body == Data([5]))
            try tx.update(changed, expecting: \.title == "u")
            #expect(try tx.find(WholePage.self, 1)?.title == "a")
        }
    }

    @Test func `a record whose value is not loaded can be deleted`() throws {
        let page = try page()
        #expect(try store.write { tx in try tx.delete(page) })
        #expect(try stored() == nil)
    }

    @Test func `conditions compare with the value in the file`() throws {
        let page = try page()
        try store.read { tx throws in
            #expect(try tx.count(Page.where(\.body == Lazy(body))) == 1)
            #expect(try tx.count(Page.where(\.body == Lazy(Data()))) == 0)
        }
        expect(.misuse) {
            try store.read { tx in try tx.count(Page.where(\.body == page.body)) }
        }
    }

    @Test func `the history of a table holds an update that leaves the value`() throws {
        let page = try page()
        let token = try store.write { tx throws in
            try tx.keepHistory(of: "page")
            return try tx.changeToken()
        }
        try store.write { tx in try tx.update(page) }
        #expect(try store.changes(since: token).changes.count == 1)
        #expect(try stored()?.body == body)
    }

    @Test func `a key cannot stay in the file`() {
        expect(.misuse) { try store.write { tx in try tx.create(LazyKey.self) } }
    }

    @Test func `encoding and describing make up no value`() throws {
        let page = try page()
        #expect(throws: StoreError.self) { try JSONEncoder().encode(page) }
        #expect(throws: StoreError.self) { try page.body.value }
        let loaded = Page(id: 1, title: "a", body: Lazy(body))
        let coded = try JSONDecoder().decode(Page.self, from: JSONEncoder().encode(loaded))
        #expect(coded == loaded && coded != page)
        #expect("\(page.body)" == "Lazy(not loaded, 3 bytes)")
        #expect(!"\(Lazy("secret"))".contains("secret"))
        #expect(!String(reflecting: Lazy("secret")).contains("secret"))
    }
}
