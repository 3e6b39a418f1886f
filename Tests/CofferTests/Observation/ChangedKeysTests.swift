import Foundation
import Testing

@testable import Coffer

/// The keys by which changed rows are reported.
@Suite(.againstHanging, .onOwnThreads) struct ChangedKeysTests {
    private struct Memo: Record {
        var id: UUID
        var text: String
    }

    private static let schema = [
        "CREATE TABLE k(k TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, u UNIQUE, v)",
        "CREATE TABLE nullable(k TEXT PRIMARY KEY, v)",
        "CREATE TABLE pair(a NOT NULL, b NOT NULL DEFAULT 1, v, PRIMARY KEY (b, a))",
        "CREATE TABLE int(k INT NOT NULL PRIMARY KEY, v)",
        "CREATE TABLE unsaid(id INTEGER PRIMARY KEY, u NOT NULL DEFAULT 5 UNIQUE)",
        "INSERT INTO k(rowid, k, u) VALUES (1, 'a', 10), (2, 'b', 20)",
        "INSERT INTO nullable(rowid, k) VALUES (1, NULL), (2, NULL), (3, 'c')",
        "INSERT INTO pair(a, b) VALUES (1, 1), (1, 2), (1.5, 2)",
        "INSERT INTO int(rowid, k) VALUES (7, 70), (8, 80)",
        "INSERT INTO unsaid VALUES (1, 5), (2, 6)",
    ]

    /// A write, and the changes that Coffer reports of it.
    private static let writes: [(sql: String, rows: [String])] = [
        ("INSERT INTO k(k) VALUES ('c')", ["insert k c"]),
        ("UPDATE k SET v = 1 WHERE rowid = 1", ["update k a"]),
        ("UPDATE k SET rowid = 9 WHERE k = 'a'", ["update k a"]),
        ("UPDATE k SET k = 'A' WHERE k = 'a'", ["delete k a", "insert k A"]),
        ("DELETE FROM k", ["delete k a", "delete k b"]),
        // REPLACE that hits by the row id, by the key in another case, and by another key.
        ("REPLACE INTO k(rowid, k) VALUES (1, 'c')", ["delete k a", "insert k c"]),
        ("REPLACE INTO k(rowid, k) VALUES (1, 'b')", ["delete k a", "update k b"]),
        ("REPLACE INTO k(k) VALUES ('A')", ["delete k a", "insert k A"]),
        ("REPLACE INTO k(k) VALUES ('a')", ["update k a"]),
        ("REPLACE INTO k(k, u) VALUES ('c', 10)", ["delete k a", "insert k c"]),
        ("UPDATE OR REPLACE k SET rowid = 2 WHERE k = 'a'", ["update k a", "delete k b"]),
        (
            "UPDATE OR REPLACE k SET k = 'B' WHERE k = 'a'",
            [
                "delete k a", "delete k b", "insert k B",
            ]
        ),
        ("DELETE FROM nullable WHERE k IS NULL", ["delete nullable 1", "delete nullable 2"]),
        ("UPDATE nullable SET k = 'd' WHERE k = 'c'", ["update nullable 3"]),
        (
            "REPLACE INTO nullable(rowid, k) VALUES (9, 'c')",
            [
                "delete nullable 3", "insert nullable 9",
            ]
        ),
        ("DELETE FROM pair WHERE b = 2", ["delete pair 2,1", "delete pair 2,1.5"]),
        ("UPDATE pair SET a = 1.0 WHERE b = 1", ["delete pair 1,1", "insert pair 1,1.0"]),
        ("REPLACE INTO pair(a, b) VALUES (1.0, 1)", ["delete pair 1,1", "insert pair 1,1.0"]),
        // NULL becomes the default, which another row has.
        ("REPLACE INTO pair(a, b) VALUES (1, NULL)", ["update pair 1,1"]),
        (
            "UPDATE OR REPLACE pair SET b = NULL WHERE a = 1 AND b = 2",
            [
                "update pair 1,1", "delete pair 2,1",
            ]
        ),
        ("REPLACE INTO unsaid VALUES (3, NULL)", ["delete unsaid 1", "insert unsaid 3"]),
        ("DELETE FROM int WHERE k = 70", ["delete int 70"]),
        ("REPLACE INTO int(rowid, k) VALUES (7, 80)", ["delete int 70", "update int 80"]),
    ]

    private static let tables = ["k", "nullable", "pair", "int", "unsaid"]

    private func prepared() throws -> ObservationFixture {
        let fixture = try ObservationFixture()
        for sql in Self.schema { try fixture.run(sql) }
        return fixture
    }

    @Test(arguments: writes.indices)
    func `a row is reported by its primary key, or by its row id if that key may be NULL`(
        index: Int
    ) async throws {
        let fixture = try prepared()
        try fixture.write { tx in for table in Self.tables { try tx.keepHistory(of: table) } }
        let token = try fixture.read { tx in try tx.changeToken() }
        let (sql, rows) = Self.writes[index]
        let loop = fixture.store.changes(in: "k", "nullable", "pair", "int", "unsaid")
            .makeAsyncIterator()
        try fixture.run(sql)
        let told = try await loop.rows()
        #expect(told.sorted() == rows.sorted())
        let logged = try await fixture.store.changes(since: token).changes.map(\.text)
        #expect(logged.sorted() == rows.sorted())
    }

    @Test func `a record is reported by its id, also when it is deleted`() async throws {
        let fixture = try ObservationFixture()
        let (first, second) = (UUID(), UUID())
        try fixture.write { tx in
            try tx.insert(Memo(id: first, text: "one"))
            try tx.keepHistory(of: Memo.table)
        }
        let token = try fixture.read { tx in try tx.changeToken() }
        let loop = fixture.store.changes(in: Memo.self).makeAsyncIterator()
        let steps: [(ChangedRow.Kind, UUID, @Sendable (inout WriteTransaction) throws -> Void)] = [
            (.insert, second, { try $0.insert(Memo(id: second, text: "two")) }),
            (.update, first, { try $0.update(Memo(id: first, text: "three")) }),
            (.delete, first, { try $0.delete(Memo(id: first, text: "")) }),
        ]
        for (kind, id, step) in steps {
            try fixture.write { tx in try step(&tx) }
            let event = try await loop.next()
            guard case .commit(let rows)? = event else {
                Issue.record("no rows were told")
                return
            }
            #expect(rows.map(\.kind) == [kind])
            #expect(try rows.map { try $0.key(as: UUID.self) } == [id])
        }
        let batch = try await fixture.store.changes(since: token)
        #expect(batch.changes.map(\.kind) == [.insert, .delete])
        #expect(try batch.changes.map { try $0.key() } == [second, first])
    }

    @Test func `a change of a bucket gives its key back, of each type`() async throws {
        let id = UUID(uuidString: "6F9619FF-8B86-D011-B42D-00CF4FC964FF")
        try await expectKey(Date(timeIntervalSinceReferenceDate: 0.1))
        try await expectKey(UInt64.max)
        try await expectKey(CompositeKey("a", 7))
        try await expectKey(try #require(id))
        try await expectKey("text")
    }

    private func expectKey<K: BucketKey>(_ key: K) async throws {
        let fixture = try ObservationFixture()
        let (bucket, other) = (Bucket<K, Int>("b"), Bucket<K, Int>("other"))
        // Makes the table, of which a loop is told as a change of the schema.
        try await fixture.store.set(1, for: key, in: bucket)
        let loop = fixture.store.changes(in: bucket.table).makeAsyncIterator()
        try await fixture.store.set(2, for: key, in: bucket)
        guard case .commit(let rows)? = try await loop.next(), let row = rows.first else {
            Issue.record("no rows were told")
            return
        }
        #expect(try row.key(in: bucket) == key)
        expect(.mismatch) { try row.key(in: other) }
    }

    @Test func `the number of a date is never taken for a date of another count`() throws {
        let row = ChangedRow(table: "t", key: [1.0], kind: .insert)
        expect(.mismatch) { try row.key(as: Date.self) }
        expect(.mismatch) { try row.key(as: Date?.self) }
        let encoding = DateEncoding.secondsSince2001
        #expect(try encoding.date(of: row.key[0]) == Date(timeIntervalSinceReferenceDate: 1))
    }

    @Test func `a key of another type or of several columns is a mismatch`() throws {
        let row = ChangedRow(table: "t", key: [7], kind: .insert)
        #expect(try row.key() == 7)
        #expect(try row.key(as: UInt8.self) == 7)
        #expect(expect(.mismatch) { try row.key(as: String.self) }?.table == "t")
        let pair = ChangedRow(table: "t", key: [7, 8], kind: .insert)
        expect(.mismatch) { try pair.key(as: Int.self) }
    }

    @Test func `a blob that is written in place is reported and logged by the row's key`()
        async throws
    {
        let fixture = try prepared()
        try fixture.run(
            "UPDATE k SET v = zeroblob(100)", "UPDATE other SET v = 1",
            "INSERT INTO other VALUES (zeroblob(9))")
        try fixture.write { tx in try tx.keepHistory(of: "k") }
        let token = try fixture.read { tx in try tx.changeToken() }
        let loop = fixture.store.changes(in: "k").makeAsyncIterator()
        try fixture.write { tx in
            try tx.withWritableBlob("v", in: "K", row: 2) { blob in
                try blob.write([1, 2, 3] as [UInt8], at: 5)
            }
            try tx.withWritableBlob("v", in: "other", row: 1) { blob in
                try blob.write([1] as [UInt8], at: 0)
            }
        }
        let told = try await loop.rows()
        #expect(told == ["update k b"])
        let logged = try await fixture.store.changes(since: token)
        #expect(logged.changes.map(\.text) == ["update k b"])
        try fixture.write { tx in
            try tx.keepHistory(of: "k")
            try tx.stopKeepingHistory(of: "k")
        }
        try fixture.write { tx in
            try tx.withWritableBlob("v", in: "k", row: 1) { blob in
                try blob.write([1] as [UInt8], at: 0)
            }
        }
        #expect(try await fixture.store.changes(since: logged.next).changes == [])
    }

    @Test func `a table that is made again with another key does not confuse the change log`()
        throws
    {
        let fixture = try prepared()
        try fixture.write { tx in try tx.keepHistory(of: "pair") }
        let token = try fixture.read { tx in try tx.changeToken() }
        try fixture.run("REPLACE INTO pair(a, b) VALUES (1, 2)", "DROP TABLE pair")
        try fixture.run("CREATE TABLE pair(a INTEGER PRIMARY KEY)", "INSERT INTO pair VALUES (2)")
        let batch = try fixture.store.changes(since: token)
        #expect(batch.changes.map(\.text) == ["update pair 2,1"])
    }
}
