import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Conditions with a list of any length: compared with what Swift says.
@Suite(.againstHanging, .onOwnThreads) struct ListConditionTests: NotesSuite {
    let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        (fixture, notes) = try Self.makeFixture()
    }

    @Test func `a list may be of any length, and of texts and NULL`() throws {
        let many = Array(stride(from: -50_000, to: 50_000, by: 3))
        #expect(try ids(many.contains(\.id)) == notes.map(\.id).filter { many.contains($0) })
        let texts: [String?] = (0..<2_000).map { "n\($0)" } + [nil]
        #expect(try ids(texts.contains(\.note)).count == 40)
        #expect(
            try ids(!texts.dropLast().contains(\.note)) == notes.filter { $0.note == nil }.map(\.id)
        )
        #expect(try ids(Array(repeating: "x", count: 3_000).contains(\.title)) == [])
        let dates = (0..<1_500).map { Date(timeIntervalSince1970: Double($0) + 2) }
        #expect(
            try ids(dates.contains(\.created))
                == notes.filter { dates.contains($0.created) }.map(\.id))
    }

    struct Thing: Record, Equatable {
        static var isWithoutRowID: Bool { true }
        static var indexes: [Index<Self>] { [Index(\.name), Index(\.weight, \.name)] }
        var id: UUID
        var name: String
        var weight: Double
        var data: Data
    }

    @Test func `lists of every storage class find what is equal, as few values do`() throws {
        let things = (0..<300).map { index in
            Thing(
                id: UUID(), name: index == 0 ? "" : "x\u{0}\(index)é",
                weight: index == 1 ? .leastNonzeroMagnitude : Double(index) / 3,
                data: Data(repeating: 7, count: index))
        }
        try fixture.store.write { tx throws in
            try tx.insert(things)
            for part in [things[..<150], things[150...], things[..<9]] {
                func isFound(_ condition: Condition<Thing>) throws {
                    let found = try tx.fetch(Thing.where(condition)).map(\.id)
                    #expect(Set(found) == Set(part.map(\.id)) && found.count == part.count)
                }
                try isFound(part.map(\.id).contains(\.id))
                try isFound(part.map(\.name).contains(\.name))
                try isFound(part.map(\.weight).contains(\.weight))
                try isFound(part.map(\.data).contains(\.data))
            }
            #expect(try tx.delete(Thing.where(things.map(\.id).contains(\.id))) == 300)
        }
    }

    @Test func `a list of any length is looked up by an index`() throws {
        try fixture.store.write { tx in try tx.create(Thing.self) }
        for count in [3, 100, 101, 5000] {
            let ids = (0..<count).map { _ in UUID() }
            let byKey = try plan(of: Thing.where(ids.contains(\.id)))
            #expect(byKey.contains("USING PRIMARY KEY (id=?)"), "\(byKey)")
            let byRowID = try plan(of: Note.where((0..<count).contains(\.id)))
            #expect(byRowID.contains("USING INTEGER PRIMARY KEY (rowid"), "\(byRowID)")
            let list = try plan(of: Note.where(Array(0..<count).contains(\.id)))
            #expect(list.contains("USING INTEGER PRIMARY KEY (rowid=?)"), "\(list)")
            let names = (0..<count).map { "\($0)" }
            let byName = try plan(of: Thing.where(names.contains(\.name)))
            #expect(byName.contains("USING INDEX index_thing_name (name=?)"), "\(byName)")
        }
    }

    @Test func `a list that nobody packed is an error, not a crash`() throws {
        _ = try ids(Array(1...500).contains(\.id))
        for list in ["x''", "x'00'", "'text'", "NULL", "randomblob(64)", "zeroblob(32)"] {
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), 0)")
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), 9223372036854775807)")
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), -1)")
        }
        #expect(try ids(\.id == 1) == [1])
    }

    @Test func `a long list serves every verb`() throws {
        let list = Array(21...5_000)
        let query = Note.where(list.contains(\.id))
        let sorted = query.order(by: \.id)
        try fixture.store.write { tx throws in
            #expect(try tx.count(query.limit(7)) == 7)
            #expect(try tx.exists(query))
            #expect(try tx.first(sorted)?.id == 21)
            #expect(try tx.min(\.id, query) == 21)
            #expect(try tx.sum(\.id, sorted.limit(2)) == 43)
            #expect(try tx.distinct(\.pinned, query) == [false, true])
            #expect(try tx.counts(by: \.pinned, query) == [false: 10, true: 10])
            #expect(try tx.fetch(sorted.after(notes[30])).map(\.id) == Array(32...40))
            var count = 0
            try tx.forEach(query) { _ in count += 1 }
            #expect(count == 20)
            #expect(try tx.update(query.set(\.title, to: "x")) == 20)
            #expect(try tx.update(sorted.limit(3).set(\.title, to: "y")) == 3)
            #expect(try tx.delete(sorted.limit(2)) == 2)
            #expect(try tx.count(Note.where(\.title == "y" && list.contains(\.id))) == 1)
        }
    }
}
