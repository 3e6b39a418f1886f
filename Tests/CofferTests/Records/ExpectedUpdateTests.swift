import Coffer
import Foundation
import Testing

/// Updates that tell if the row is gone, or is not as expected.
@Suite(.againstHanging, .onOwnThreads) struct ExpectedUpdateTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Page: Record, Equatable {
        var id: Int
        var text: String
        var version: Int
        var author: String?
    }

    private let page = Page(id: 1, text: "a", version: 1)

    @Test func `an update of a row that is gone is an error, and changes nothing`() throws {
        try store.write { tx throws in
            try tx.insert(page)
            let gone = Page(id: 2, text: "b", version: 1)
            for update in [
                { tx in try tx.update(gone) }, { tx in try tx.update(gone, only: \.text) },
                { tx in try tx.update([gone]) },
                { tx in try tx.update(gone, expecting: \.version == 1) },
            ] as [(inout WriteTransaction) throws -> Void] {
                let error = expect(.notFound) { try update(&tx) }
                #expect(error?.table == "page")
                #expect(error?.hint?.contains("updateIfPresent") == true)
            }
            #expect(try !tx.updateIfPresent(gone))
            #expect(try !tx.updateIfPresent(gone, only: \.text))
            #expect(try tx.updateIfPresent([gone, page]) == 1)
            #expect(try tx.fetch(Page.all) == [page])
        }
    }

    @Test func `an update with an expectation keeps a change made in between`() throws {
        try store.write { tx in try tx.insert(page) }
        var mine = page
        (mine.text, mine.version) = ("mine", 2)
        var theirs = page
        (theirs.text, theirs.version) = ("theirs", 2)
        try store.write { tx in try tx.update(theirs, expecting: \.version == 1) }
        let error = expect(.conflict) {
            try store.write { tx in try tx.update(mine, expecting: \.version == 1) }
        }
        #expect(error?.table == "page")
        #expect(error?.hint != nil)
        #expect(try store.read { tx in try tx.fetch(Page.all) } == [theirs])
        mine.version = 3
        try store.write { tx in try tx.update(mine, expecting: \.version == 2) }
        #expect(try store.read { tx in try tx.fetch(Page.all) } == [mine])
    }

    @Test func `an expectation may be any condition`() throws {
        try store.write { tx throws in
            try tx.insert(page)
            var next = page
            next.author = "ada"
            try tx.update(next, expecting: \.author == nil && \.text == "a")
            next.text = "b"
            try tx.update(next, expecting: .sql("length(text) = \(1) AND author = \("ada")"))
            next.text = "c"
            try tx.update(next, expecting: ["x", "b"].contains(\.text))
            #expect(try tx.fetch(Page.all) == [next])
            _ = expect(.misuse) { try tx.update(next, expecting: \.text.count == 1) }
            _ = expect(.misuse) {
                try tx.update(
                    next, expecting: .sql(SQL(text: "text = :text", named: ["text": "c"])))
            }
            #expect(try tx.fetch(Page.all) == [next])
        }
    }

    @Test func `a property that is true needs no comparison`() throws {
        struct Task: Record, Equatable {
            var id: Int
            var done: Bool
        }
        try store.write { tx throws in
            try tx.insert([Task(id: 1, done: true), Task(id: 2, done: false)])
            #expect(try tx.fetch(Task.where(\.done)) == [Task(id: 1, done: true)])
            #expect(try tx.count(Task.where(\.id > 1).where(\.done)) == 0)
        }
    }

    @Test func `a key path without a column is named in the error`() throws {
        let error = expect(.misuse) {
            try store.read { tx in try tx.fetch(Page.where(\.text.count == 1)) }
        }
        #expect(error?.message.contains("text") == true)
    }

    struct Marker: Codable, Equatable {}

    struct Marked: Record, Equatable {
        var id: Int
        var marker: Marker
        var other: Marker?
    }

    @Test func `a property without properties of its own is kept`() throws {
        let records = [
            Marked(id: 1, marker: Marker()), Marked(id: 2, marker: Marker(), other: Marker()),
        ]
        for record in records { try store.write { tx in try tx.insert(record) } }
        #expect(try store.read { tx in try tx.fetch(Marked.order(by: \.id)) } == records)
    }
}
