import Foundation
import Testing

@testable import Coffer

/// Indexes of values inside of JSON, and texts that are not JSON.
@Suite(.againstHanging, .onOwnThreads) struct JSONIndexTests {
    struct Place: Codable, Equatable {
        var city: String
    }

    struct Plain: Record, Equatable {
        static let table = "visit"
        var id: Int
        var place: Place
    }

    struct Visit: Record, Equatable {
        var id: Int
        var place: Place
        static var indexes: [Index<Visit>] { [Index(cofferOnly: \.place.city, isUnique: true)] }
    }

    let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
        try store.write { tx in
            try tx.create(Visit.self)
            try tx.insert((1...50).map { Visit(id: $0, place: Place(city: "c\($0)")) })
        }
    }

    @Test func `an index that locks other programs out must be asked for by name`() throws {
        struct Shy: Record {
            var id: Int
            var place: Place
            static var indexes: [Index<Shy>] { [Index(\.place.city)] }
        }
        struct Odd: Record {
            var id: Int
            var place: Place
            static var indexes: [Index<Odd>] { [Index(cofferOnly: \.id)] }
        }
        struct Checked: Record {
            var id: Int
            var place: Place
            static var checks: [CheckConstraint<Checked>] { [CheckConstraint(\.place.city != "")] }
        }
        let error = expect(.misuse) { try store.write { tx in try tx.create(Shy.self) } }
        #expect(error?.hint?.contains("Index(cofferOnly:") == true)
        expect(.misuse) { try store.write { tx in try tx.create(Odd.self) } }
        expect(.misuse) { try store.write { tx in try tx.create(Checked.self) } }
    }

    @Test func `a value that is there already is a conflict, and changes nothing`() throws {
        expect(.constraint) {
            try store.write { tx in try tx.insert(Visit(id: 99, place: Place(city: "c7"))) }
        }
        #expect(try store.read { tx in try tx.count(Visit.all) } == 50)
    }

    @Test(arguments: ["{\"city\"", "not JSON", "{\"city\":\"\\ud800\"}"])
    func `a row that is not JSON is an error of each condition, and of no other row`(
        text: String
    ) throws {
        try store.write { tx throws in
            _ = try tx.execute("DROP INDEX \"index_visit_place_city\"")
            _ = try tx.execute("UPDATE visit SET place = \(text) WHERE id = 20")
        }
        let condition: Condition<Plain> = \.place.city == "c3"
        expect(.mismatch) { try store.read { tx in try tx.fetch(Plain.where(condition)) } }
        // The rows in front of it stay as they were, although the body goes on.
        try store.write { tx throws in
            let all = Plain.where(\.place.city != "none")
            expect(.mismatch) { try tx.update(all.set(\.place, to: Place(city: "x"))) }
            expect(.mismatch) { try tx.delete(all) }
            #expect(try tx.count(Plain.all) == 50)
            #expect(try tx.count(Plain.where(\.id < 20 && \.place.city == "x")) == 0)
        }
        let found = try store.read { tx in
            try tx.fetch(Plain.where(\.id < 20 && condition).order(by: \.id))
        }
        #expect(found.map(\.id) == [3])
        // Nothing that is not JSON gets into an index.
        expect(.mismatch) { try store.write { tx in try tx.create(Visit.self) } }
    }

    @Test func `compaction, a backup and a check keep the index`() throws {
        let copy = fixture.folder.path("copy.db")
        try store.compact()
        try store.backup(to: copy)
        #expect(try store.verify().isGood)
        let other = try Store(path: copy, key: .numbered(7), configuration: .testing())
        try other.write { tx throws in
            #expect(try tx.rows("PRAGMA integrity_check").first?.values == [.text("ok")])
            try tx.insert(Visit(id: 60, place: Place(city: "new")))
            #expect(try tx.schemaDifferences(of: Visit.self).isEmpty)
        }
    }

    @Test func `a store is decrypted and encrypted with the index`() throws {
        let (plain, again) = (fixture.folder.path("plain.db"), fixture.folder.path("again.db"))
        try store.decrypt(to: plain)
        try Store.encrypt(plaintextAt: plain, to: again, key: .numbered(9))
        let other = try Store(path: again, key: .numbered(9), configuration: .testing())
        try other.write { tx throws in
            #expect(try tx.schemaDifferences(of: Visit.self).isEmpty)
            #expect(try tx.fetch(Visit.where(\.place.city == "c9")).map(\.id) == [9])
        }
    }

    @Test func `a column with an index is renamed`() throws {
        struct Renamed: Record {
            static let table = "visit"
            var id: Int
            var spot: Place
            static var indexes: [Index<Renamed>] {
                [Index(cofferOnly: \.spot.city, isUnique: true, name: "index_visit_place_city")]
            }
        }
        try store.migrate([
            Migration("spot") { tx in try tx.table("visit").renameColumn("place", to: "spot") }
        ])
        try store.write { tx throws in
            #expect(try tx.schemaDifferences(of: Renamed.self).isEmpty)
            #expect(try tx.fetch(Renamed.where(\.spot.city == "c9")).map(\.id) == [9])
        }
    }

    /// The claim of the documentation, for each shell that can open the file.
    @Test func `the stock shells read the table, and cannot write it`() throws {
        let path = fixture.folder.path("shared.db")
        let key = [UInt8](repeating: 0xa7, count: 32)
        let literal = "\"x'" + String(repeating: "a7", count: 32) + "'\""
        let shared = try Store(
            path: path, key: .raw(key), configuration: .testing(profile: .portable))
        try shared.write { tx throws in
            try tx.create(Visit.self)
            try tx.insert(Visit(id: 1, place: Place(city: "Oslo")))
        }
        try shared.close()
        #expect(!Shell.all.isEmpty)
        for shell in Shell.all {
            let open = shell.pragmas(key: literal, .portable)
            // A shell of SQLCipher 4 says "ok" to the key first.
            #expect(try shell.run(open + "SELECT id FROM visit;", on: path).last == "1")
            _ = try? shell.run(
                open + "INSERT INTO visit VALUES (\(shell.majorVersion), '{}');", on: path)
            let count = try shell.run(open + "SELECT count(*) FROM visit;", on: path)
            #expect(count.last == "1", "the shell wrote a row")
        }
    }
}
