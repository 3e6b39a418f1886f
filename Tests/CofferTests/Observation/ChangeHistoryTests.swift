import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ChangeHistoryTests {
    private func logged(
        _ tables: String..., maximumEntryCount: Int = 100_000
    ) throws
        -> ObservationFixture
    {
        let fixture = try ObservationFixture()
        try fixture.write { tx in
            for table in tables {
                try tx.keepHistory(of: table, maximumEntryCount: maximumEntryCount)
            }
        }
        return fixture
    }

    private func token(_ fixture: ObservationFixture) throws -> ChangeToken {
        try fixture.store.read { tx in try tx.changeToken() }
    }

    @Test func `changes since a token are reported once, across restarts`() throws {
        let fixture = try logged("t", "w")
        let start = try token(fixture)
        try fixture.run(
            "INSERT INTO t(id, u) VALUES (1, 10), (2, 20), (3, 30)", "INSERT INTO other VALUES (1)",
            "REPLACE INTO t(id, u) VALUES (4, 20)", "DELETE FROM t WHERE id = 3",
            "INSERT INTO w VALUES ('a', 1, 1)")
        try? fixture.write { tx in
            try tx.execute("DELETE FROM t")
            throw Undo()
        }
        let first = try fixture.store.changes(since: start)
        #expect(first.changes.map(\.text) == ["insert t 1", "insert t 4", "insert w a"])
        #expect(!first.hasMore)
        let kept = try #require(ChangeToken(first.next.description))
        try fixture.store.close()
        let store = try Store(path: fixture.path, key: .numbered(1), configuration: .testing())
        #expect(try store.changes(since: kept).changes == [])
        try store.write { tx in
            try tx.execute("DELETE FROM w")
            try tx.execute("UPDATE t SET id = 9 WHERE id = 1")
            try tx.execute("REPLACE INTO t(id, u) VALUES (11, 20)")
        }
        let second = try store.changes(since: kept)
        #expect(
            Set(second.changes.map(\.text)) == [
                "delete w a", "delete t 1", "insert t 9", "delete t 4", "insert t 11",
            ])
        #expect(try store.changes(since: second.next).changes == [])
        #expect(try store.changes(since: kept) == second, "a token can be used again")
    }

    @Test func `other programs write to the change log as well`() throws {
        let fixture = try logged("t")
        let start = try token(fixture)
        #expect(try Peer.run(["insert", "wal", fixture.path, "1", "7"]) == ["inserted"])
        let raw = try RawConnection(
            fixture.path, key: 1, pragmas: RawConnection.settings(of: fixture.store.profile))
        #expect(raw.run("INSERT INTO t(id, u) VALUES (7, 70); DELETE FROM t WHERE id = 1") == 0)
        #expect(raw.run("REPLACE INTO t(id, u) VALUES (8, 70)") == 0)
        let batch = try fixture.store.changes(since: start)
        #expect(batch.changes.map(\.text) == ["insert t 8"])
    }

    private struct Item: Record, Equatable {
        static let table = "item"
        static var indexes: [Index<Self>] { [Index(\.name, isUnique: true)] }
        var id: Int64
        var name: String
    }

    /// A store with a history of items, and one of them.
    private func items() throws -> ObservationFixture {
        let fixture = try ObservationFixture()
        try fixture.write { tx in
            try tx.create(Item.self)
            try tx.keepHistory(of: Item.table)
            try tx.insert(Item(id: 1, name: "a"))
        }
        return fixture
    }

    @Test func `a record that a constraint refuses leaves no row and no change`() async throws {
        let fixture = try items()
        try fixture.write { tx in try tx.insert(Item(id: 2, name: "b")) }
        let start = try token(fixture)
        let loop = fixture.store.changes(in: Item.self).makeAsyncIterator()
        try fixture.write { tx in
            #expect(throws: StoreError.self) { try tx.insert(Item(id: 1, name: "c")) }
            #expect(throws: StoreError.self) { try tx.insert(Item(id: 3, name: "a")) }
            #expect(throws: StoreError.self) { try tx.update(Item(id: 2, name: "a")) }
            try tx.insert(Item(id: 4, name: "d"))
            try tx.update(Item(id: 1, name: "e"))
        }
        let rows = try fixture.read { tx in try tx.fetch(Item.all) }
        #expect(
            rows == [
                Item(id: 1, name: "e"), Item(id: 2, name: "b"), Item(id: 4, name: "d"),
            ])
        let expected: Set = ["insert item 4", "update item 1"]
        let logged = try await fixture.store.changes(since: start).changes
        #expect(Set(logged.map(\.text)) == expected)
        #expect(try await Set(loop.rows()) == expected)
        #expect(try fixture.triggers() == [])
    }

    @Test func `a record that a trigger refuses leaves no row and no change`() throws {
        let fixture = try items()
        try fixture.run(
            "CREATE TABLE taken(name UNIQUE)", "INSERT INTO taken VALUES ('b')",
            """
            CREATE TRIGGER taking AFTER INSERT ON item BEGIN
                INSERT INTO taken VALUES (new.name);
            END
            """)
        let start = try token(fixture)
        try fixture.write { tx in
            #expect(throws: StoreError.self) { try tx.insert(Item(id: 2, name: "b")) }
            try tx.insert(Item(id: 3, name: "c"))
        }
        let rows = try fixture.read { tx in try tx.fetch(Item.all) }
        #expect(rows == [Item(id: 1, name: "a"), Item(id: 3, name: "c")])
        let changes = try fixture.store.changes(since: start).changes
        #expect(changes.map(\.text) == ["insert item 3"])
    }

    @Test func `a batch is bounded and the next one continues`() throws {
        let fixture = try logged("t")
        var next = try token(fixture)
        for id in 1...10 { try fixture.run("INSERT INTO t(id) VALUES (\(id))") }
        var told: [String] = []
        var batchCount = 0
        while true {
            let batch = try fixture.store.changes(since: next, maximumEntryCount: 3)
            told += batch.changes.map(\.text)
            next = batch.next
            batchCount += 1
            guard batch.hasMore else { break }
        }
        #expect(told == (1...10).map { "insert t \($0)" })
        #expect(batchCount == 4)
        expect(.misuse) { try fixture.store.changes(since: next, maximumEntryCount: 0) }
    }

    @Test func `the change log is bounded, and a token that is too old says so`() throws {
        let fixture = try logged("t", maximumEntryCount: 500)
        let start = try token(fixture)
        try fixture.write { tx in
            for id in 1...400 { try tx.execute("INSERT INTO t(id) VALUES (\(id))") }
        }
        #expect(try fixture.store.changes(since: start).changes.count == 400)
        let later = try token(fixture)
        try fixture.write { tx in
            for id in 401...2000 { try tx.execute("INSERT INTO t(id) VALUES (\(id))") }
        }
        expect(.tokenExpired) { try fixture.store.changes(since: start) }
        expect(.tokenExpired) { try fixture.store.changes(since: later) }
        let count = try fixture.store.read { tx in
            try tx.scalar("SELECT count(*) FROM \"coffer:log\"", as: Int.self)
        }
        #expect(try #require(count) < 500 + 256)
        let ahead = ChangeToken(history: start.history, position: 1_000_000)
        expect(.tokenExpired) { try fixture.store.changes(since: ahead) }
        let strange = ChangeToken(history: "0", position: 0)
        expect(.tokenExpired) { try fixture.store.changes(since: strange) }
        #expect(try fixture.store.changes(since: try token(fixture)).changes == [])
    }

    @Test func `logging is opt-in for each table, and ends`() throws {
        let fixture = try ObservationFixture()
        expect(.notFound) { try token(fixture) }
        try fixture.write { tx in
            expect(.notFound) { try tx.keepHistory(of: "nothing") }
            expect(.unsupported) { try tx.keepHistory(of: "joined") }
            expect(.misuse) { try tx.keepHistory(of: "t", maximumEntryCount: 0) }
            try tx.execute("CREATE TABLE p(a, b)")
            try tx.execute("CREATE UNIQUE INDEX pi ON p(a) WHERE b = 0")
            expect(.unsupported) { try tx.keepHistory(of: "p") }
            try tx.keepHistory(of: "T")
            expect(.misuse) { try tx.keepHistory(of: "coffer:log") }
            try tx.keepHistory(of: "t")
        }
        let start = try token(fixture)
        try fixture.run("INSERT INTO t(id) VALUES (1)", "INSERT INTO w(k) VALUES ('a')")
        try fixture.write { tx in
            try tx.stopKeepingHistory(of: "t")
            try tx.stopKeepingHistory(of: "w")
        }
        try fixture.run("INSERT INTO t(id) VALUES (2)")
        let batch = try fixture.store.changes(since: start)
        #expect(batch.changes.map(\.text) == ["insert t 1"])
        try fixture.run("DROP TABLE t")
        #expect(try fixture.store.changes(since: start).changes.count == 1)
    }

    @Test func `a token is a text, also in JSON`() throws {
        let token = ChangeToken(history: "0123456789abcdef", position: 7)
        #expect(token.description == "0123456789abcdef-7")
        let data = try JSONEncoder().encode([token])
        #expect(String(decoding: data, as: UTF8.self) == "[\"0123456789abcdef-7\"]")
        #expect(try JSONDecoder().decode([ChangeToken].self, from: data) == [token])
        for text in ["", "x", "-1", "x-", "x--1", "x-y", "x-1-2"] {
            #expect(ChangeToken(text) == nil, "\(text)")
        }
    }
}

extension RawConnection {
    /// The settings with which another program reads one of Coffer's files.
    static func settings(of profile: CipherProfile) -> [String] {
        profile == .sqlcipher4 ? [] : ["PRAGMA cipher_page_size = \(profile.pageByteCount)"]
    }
}
