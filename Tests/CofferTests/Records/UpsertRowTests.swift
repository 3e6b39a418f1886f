import Coffer
import Foundation
import Testing

/// The row id that `upsert(_:conflictingOn:)` returns.
@Suite(.againstHanging, .onOwnThreads) struct UpsertRowTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Download: Record {
        static var indexes: [Index<Self>] { [Index(\.url, isUnique: true)] }
        var id = UUID()
        var url: String?
        var done = 0
    }

    struct Fast: Record {
        static let access = RecordAccess.storedProperties
        static var indexes: [Index<Self>] { [Index(\.url, \.part, isUnique: true)] }
        var id: Int64?
        var url: String
        var part: UUID
        var done = 0
    }

    struct Tight: Record {
        static var isWithoutRowID: Bool { true }
        static var indexes: [Index<Self>] { [Index(\.url, isUnique: true)] }
        var id: Int
        var url: String
    }

    @Test func `it is that of the updated row, whatever was inserted last`() throws {
        try store.write { tx throws in
            for number in 1...3 {
                let made = Download(url: "u\(number)")
                #expect(try tx.upsert(made, conflictingOn: \.url) == Int64(number))
            }
            for number in [2, 1, 3, 2] {
                let again = Download(url: "u\(number)", done: 1)
                #expect(try tx.upsert(again, conflictingOn: \.url) == Int64(number))
            }
            // NULL conflicts with nothing.
            #expect(try tx.upsert(Download(url: nil), conflictingOn: \.url) == 4)
            #expect(try tx.upsert(Download(url: nil), conflictingOn: \.url) == 5)
            let first = try #require(try tx.first(Download.where(\.url == "u1")))
            let byKey = try tx.upsert(first, conflictingOn: \.id)
            #expect(byKey == 1)
            #expect(try tx.count(Download.where(\.done == 1)) == 3)
        }
    }

    @Test func `it is the key of a record whose key is an integer`() throws {
        #expect(try Fast.accessReport().reason == nil)
        let parts = [UUID(), UUID()]
        try store.write { tx throws in
            var ids: [Int64] = []
            for round in 0..<3 {
                for part in parts {
                    let fast = Fast(id: nil, url: "u", part: part, done: round)
                    ids.append(try tx.upsert(fast, conflictingOn: \.part, \.url))
                }
            }
            #expect(ids == [1, 2, 1, 2, 1, 2])
            #expect(try tx.find(Fast.self, ids[3])?.done == 2)
            let moved = Fast(id: 2, url: "v", part: parts[0])
            #expect(try tx.upsert(moved, conflictingOn: \.id) == 2)
        }
    }

    @Test func `it is 0 as for insert, without row ids or without a row`() throws {
        try store.write { tx throws in
            #expect(try tx.insert(Tight(id: 1, url: "a")) == 0)
            #expect(try tx.upsert(Tight(id: 2, url: "b"), conflictingOn: \.url) == 0)
            #expect(try tx.upsert(Tight(id: 3, url: "b"), conflictingOn: \.url) == 0)
            try tx.upsert(Download(url: "u"), conflictingOn: \.url)
            try tx.execute("CREATE TABLE log(what TEXT)")
            try tx.execute("INSERT INTO log VALUES ('x'), ('y'), ('z')")
            try tx.execute(
                """
                CREATE TRIGGER logged AFTER UPDATE ON download BEGIN
                INSERT INTO log VALUES ('update'); END
                """)
            #expect(try tx.upsert(Download(url: "u"), conflictingOn: \.url) == 1)
            try tx.execute(
                """
                CREATE TRIGGER removed AFTER UPDATE ON download BEGIN
                DELETE FROM download; END
                """)
            #expect(try tx.upsert(Download(url: "u"), conflictingOn: \.url) == 0)
        }
    }

    @Test func `an update that a trigger ignores is .constraint, and changes nothing`() throws {
        try store.write { tx throws in
            try tx.upsert(Download(url: "u", done: 1), conflictingOn: \.url)
            try tx.execute(
                """
                CREATE TRIGGER kept BEFORE UPDATE ON download BEGIN SELECT RAISE(IGNORE); END
                """)
        }
        expect(.constraint) {
            try store.write { tx in
                try tx.upsert(Download(url: "u", done: 2), conflictingOn: \.url)
            }
        }
        #expect(try store.read { tx in try tx.fetch(Download.all).map(\.done) } == [1])
    }

    @Test func `it is right again after the table was made again`() throws {
        struct Undo: Error {}
        for round in 0..<2 {
            _ = try? store.write { tx throws in
                for number in [1, 2, 1] {
                    let row = try tx.upsert(Download(url: "u\(number)"), conflictingOn: \.url)
                    #expect(row == Int64(number), "round \(round)")
                }
                throw Undo()
            }
        }
    }
}
