import Foundation
import Testing

@testable import Coffer

/// Rows of many keys that are deleted at once are reported as single ones are.
@Suite(.againstHanging, .onOwnThreads) struct ReportedDeletionsTests {
    private struct Plain: Record {
        var id: Int
        var name: String
    }

    private struct Device: Record {
        var id: UUID
        var name: String
    }

    private struct Word: Record {
        static var key: [String] { ["text"] }
        static let isWithoutRowID = true
        var text: String
    }

    private struct Undo: Error {}

    private let fixture: ObservationFixture

    init() throws {
        fixture = try ObservationFixture()
        try fixture.write { tx in try tx.insert((1...500).map { Plain(id: $0, name: "n") }) }
    }

    private func isMany<R: Record>(_ type: R.Type) throws -> Bool {
        try fixture.write { tx throws in
            try RecordTable.of(type, tx.connection()).deletingMany != nil
        }
    }

    @Test func `integer keys are reported once each, without triggers`() async throws {
        let loop = fixture.store.changes(in: Plain.self).makeAsyncIterator()
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(301...600).reversed()) == 200)
            try tx.insert(Plain(id: 400, name: "again"))
            #expect(try tx.delete(Plain.self, keys: 1...150) == 150)
            #expect(try tx.delete(Plain.self, keys: 1...150) == 0)
        }
        let expected = (Array(301...500) + Array(1...150)).map { id in
            "\(id == 400 ? "update" : "delete") plain \(id)"
        }
        let rows = try await loop.rows()
        #expect(Set(rows) == Set(expected))
        #expect(rows.count == expected.count)
        #expect(try fixture.triggers() == [])
        #expect(try isMany(Plain.self))
    }

    @Test func `an undone deletion is not reported`() async throws {
        let loop = fixture.store.changes(in: Plain.self).makeAsyncIterator()
        try fixture.write { tx throws in
            #expect(throws: Undo.self) {
                try tx.savepoint { part in
                    #expect(try part.delete(Plain.self, keys: Array(1...300)) == 300)
                    throw Undo()
                }
            }
            #expect(try tx.delete(Plain.self, keys: Array(401...500)) == 100)
        }
        #expect(try await Set(loop.rows()) == Set((401...500).map { "delete plain \($0)" }))
    }

    @Test func `keys that are no row ids are reported too, without triggers`() async throws {
        let devices = (0..<300).map { Device(id: UUID(), name: "\($0)") }
        let words = (0..<300).map { Word(text: "w\($0)") }
        try fixture.write { tx throws in
            try tx.insert(devices)
            try tx.insert(words)
            // The statements are known before somebody follows the rows.
            #expect(try tx.delete(Device.self, keys: devices.prefix(100).map(\.id)) == 100)
            #expect(try tx.delete(Word.self, keys: words.prefix(100).map(\.text)) == 100)
        }
        #expect(try isMany(Device.self))
        #expect(try isMany(Word.self))
        let loop = fixture.store.changes(in: Device.self).makeAsyncIterator()
        let others = fixture.store.changes(in: Word.self).makeAsyncIterator()
        try fixture.write { tx throws in
            #expect(try tx.delete(Device.self, keys: devices.map(\.id)) == 200)
            #expect(try tx.delete(Word.self, keys: words.map(\.text)) == 200)
        }
        guard case .commit(let rows)? = try await loop.next() else {
            Issue.record("no commit was reported")
            return
        }
        #expect(rows.allSatisfy { $0.kind == .delete })
        let keys = try rows.map { try $0.key(as: UUID.self) }
        #expect(keys.count == 200)
        #expect(Set(keys) == Set(devices.dropFirst(100).map(\.id)))
        let texts = try await others.rows()
        #expect(Set(texts) == Set(words.dropFirst(100).map { "delete word \($0.text)" }))
        #expect(texts.count == 200)
        #expect(try fixture.triggers() == [])
    }

    @Test func `a table that has triggers already is reported by them`() async throws {
        let devices = (0..<300).map { Device(id: UUID(), name: "\($0)") }
        try fixture.write { tx in try tx.insert(devices) }
        let both = fixture.store.changes(in: Plain.table, Device.table).makeAsyncIterator()
        try fixture.run(
            "REPLACE INTO plain VALUES (1, 'new')", "REPLACE INTO device SELECT * FROM device")
        #expect(try await both.next() != nil)
        #expect(try fixture.triggers() == ["plain", "device"])
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(1...300)) == 300)
            #expect(try tx.delete(Device.self, keys: devices.map(\.id)) == 300)
        }
        guard case .commit(let rows)? = try await both.next() else {
            Issue.record("no commit was reported")
            return
        }
        #expect(rows.count == 600)
        #expect(Set(rows.map(\.table)) == ["plain", "device"])
    }

    /// The statement is known before the table gets triggers, and is compiled again with them.
    @Test func `triggers that come later are told as well`() async throws {
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(401...500)) == 100)
        }
        let loop = fixture.store.changes(in: Plain.table).makeAsyncIterator()
        try fixture.write { tx throws in
            try tx.execute("REPLACE INTO plain VALUES (1, 'new')")
            #expect(try tx.delete(Plain.self, keys: Array(2...300)) == 299)
        }
        let rows = try await loop.rows()
        #expect(Set(rows) == Set((2...300).map { "delete plain \($0)" } + ["update plain 1"]))
        #expect(rows.count == 300)
        #expect(try fixture.triggers() == ["plain"])
    }

    @Test func `more rows than a commit lists are a rescan`() async throws {
        try fixture.write { tx in try tx.insert((501...12_000).map { Plain(id: $0, name: "") }) }
        let loop = fixture.store.changes(in: Plain.self).makeAsyncIterator()
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(1...20_000)) == 12_000)
        }
        #expect(try await loop.rows() == ["rescan tooManyRows"])
    }

    @Test func `observers of the table look again, and those of others do not`() async throws {
        let looks = Counter()
        let own = fixture.store.observe { tx in try tx.count(Plain.all) }.makeAsyncIterator()
        let other = fixture.store.observe { tx -> Int in
            looks.add()
            return try tx.rows("SELECT * FROM other").count
        }.makeAsyncIterator()
        #expect(try await own.next() == 500)
        #expect(try await other.next() == 0)
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(1...300)) == 300)
        }
        #expect(try await own.next() == 200)
        try fixture.run("INSERT INTO other VALUES (1)")
        #expect(try await other.next() == 1)
        #expect(looks.count == 2)
    }

    @Test func `a change history lists the keys in their order`() throws {
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array(401...500)) == 100)
            try tx.keepHistory(of: Plain.table)
        }
        let start = try fixture.read { tx in try tx.changeToken() }
        try fixture.write { tx throws in
            #expect(try tx.delete(Plain.self, keys: Array((101...300).reversed())) == 200)
        }
        let told = try fixture.store.changes(since: start).changes
        #expect(told.map(\.text) == (101...300).reversed().map { "delete plain \($0)" })
    }
}
