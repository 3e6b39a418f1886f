import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ChangesTests {
    /// A write, and the changes that Coffer reports of it.
    private static let writes: [(sql: [String], rows: [String])] = [
        (["INSERT INTO t(id, v) VALUES (3, 1), (4, 2)"], ["insert t 3", "insert t 4"]),
        (["UPDATE t SET v = 9 WHERE id = 1"], ["update t 1"]),
        (["UPDATE t SET id = 8 WHERE id = 1"], ["delete t 1", "insert t 8"]),
        (["DELETE FROM t WHERE id = 2"], ["delete t 2"]),
        (["DELETE FROM t"], ["delete t 1", "delete t 2", "delete t 100", "delete child 1"]),
        (["INSERT INTO w VALUES ('c', 1, 30)"], ["insert w c"]),
        (["UPDATE w SET v = 9 WHERE k = 'a'"], ["update w a"]),
        (["UPDATE w SET k = 'A' WHERE k = 'a'"], ["delete w a", "insert w A"]),
        (["DELETE FROM w"], ["delete w a", "delete w b"]),
        // REPLACE, by the key, by another unique column, and by both.
        (["REPLACE INTO t(id, v) VALUES (1, 5)"], ["update t 1"]),
        (["REPLACE INTO t(id, u) VALUES (7, 20)"], ["delete t 2", "insert t 7"]),
        (["REPLACE INTO t(id, u) VALUES (1, 20)"], ["update t 1", "delete t 2"]),
        (["UPDATE OR REPLACE t SET u = 20 WHERE id = 1"], ["delete t 2", "update t 1"]),
        (["UPDATE OR REPLACE t SET id = 2 WHERE id = 1"], ["update t 2", "delete t 1"]),
        (["REPLACE INTO w VALUES ('c', 1, 20)"], ["delete w b", "insert w c"]),
        (["REPLACE INTO w VALUES ('a', 1, 20)"], ["update w a", "delete w b"]),
        (
            ["INSERT OR IGNORE INTO t(id, u) VALUES (9, 20)", "UPDATE w SET v = 1 WHERE k = 'b'"],
            ["update w b"]
        ),
        // A row that was inserted and deleted leaves no change; one that was deleted and inserted
        // is the same row.
        (
            [
                "INSERT INTO t(id) VALUES (5)", "DELETE FROM t WHERE id = 5",
                "DELETE FROM w WHERE v = 1",
            ],
            ["delete w a"]
        ),
        (["DELETE FROM t WHERE id = 1", "INSERT INTO t(id) VALUES (1)"], ["update t 1"]),
        (["INSERT INTO t(id) VALUES (5)", "UPDATE t SET v = 5 WHERE id = 5"], ["insert t 5"]),
        // By a trigger and by a foreign key.
        (["INSERT INTO other VALUES ('log')"], ["insert log 1"]),
        (["DELETE FROM t WHERE id = 2"], ["delete t 2"]),
        (["DELETE FROM t WHERE id = 100"], ["delete child 1", "delete t 100"]),
    ]

    private func prepared() throws -> ObservationFixture {
        let fixture = try ObservationFixture()
        try fixture.run(
            "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (100, 1, 1000)",
            "INSERT INTO child VALUES (100, 1)",
            "INSERT INTO w VALUES ('a', 1, 10), ('b', 2, 20)")
        return fixture
    }

    @Test(arguments: writes.indices)
    func `a commit reports what became of each row`(index: Int) async throws {
        let fixture = try prepared()
        let (sql, rows) = Self.writes[index]
        let loop = fixture.store.changes(in: "T", "w", "child", "log").makeAsyncIterator()
        try fixture.write { tx in
            for sql in sql { try tx.execute(SQL(text: sql)) }
        }
        let told = try await loop.rows()
        #expect(Set(told) == Set(rows) && told.count == rows.count, "\(told)")
    }

    @Test(arguments: journalModes)
    func `events come in the order of the commits, one for each`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try ObservationFixture(mode)
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        for id in 1...5 {
            try await fixture.store.write { tx in
                try tx.execute("INSERT INTO t(id) VALUES (\(id)), (\(id + 100))")
            }
            try fixture.run("INSERT INTO other VALUES (1)")
        }
        for id in 1...5 {
            let told = try await loop.rows()
            #expect(told == ["insert t \(id)", "insert t \(id + 100)"])
        }
    }

    @Test func `events come in the order of the commits, no matter who wrote`() async throws {
        let folder = try TemporaryFolder()
        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try await store.write { tx in try tx.execute("CREATE TABLE n(id INTEGER PRIMARY KEY)") }
        let loop = store.changes(in: "n").makeAsyncIterator()
        let (writerCount, writeCount) = (8, 40)
        let writing = Task {
            // Ends the loop if a write fails.
            defer { try? store.close() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writerCount {
                    group.addTask {
                        for _ in 0..<writeCount {
                            if writer % 2 == 0 {
                                try await store.write { tx in
                                    try tx.execute("INSERT INTO n DEFAULT VALUES")
                                }
                            } else {
                                try await onThread {
                                    try store.write { tx in
                                        _ = try tx.execute("INSERT INTO n DEFAULT VALUES")
                                    }
                                }.value
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        var keys: [Value] = []
        while keys.count < writerCount * writeCount {
            guard case .commit(let rows) = try await loop.next() else {
                Issue.record("a commit was not told row by row")
                break
            }
            keys += rows.map(\.key[0])
        }
        try await writing.value
        // Each write takes the next number.
        #expect(keys == (1...writerCount * writeCount).map { .integer(Int64($0)) })
    }

    @Test func `a write that was rolled back is not reported`() async throws {
        let fixture = try prepared()
        let loop = fixture.store.changes(in: "t", "w").makeAsyncIterator()
        #expect(throws: Undo.self) {
            try fixture.write { tx in
                try tx.execute("DELETE FROM t")
                throw Undo()
            }
        }
        try fixture.write { tx in
            try tx.execute("INSERT INTO t(id) VALUES (3)")
            try? tx.savepoint { part in
                try part.execute("DELETE FROM w")
                try part.savepoint { inner in try inner.execute("INSERT INTO t(id) VALUES (4)") }
                throw Undo()
            }
            try? fixture.store.write { inner in
                try inner.execute("UPDATE t SET v = 99")
                throw Undo()
            }
            // Two rows go in before the third one fails.
            expect(.constraint) {
                try tx.execute("INSERT INTO t(id, u) VALUES (5, 50), (6, 60), (7, 10)")
            }
            expect(.constraint) {
                try tx.execute("INSERT OR FAIL INTO t(id, u) VALUES (8, 80), (9, 10)")
            }
        }
        let told = try await loop.rows()
        #expect(told == ["insert t 3", "insert t 8"], "OR FAIL keeps what it did before")
        try fixture.run("DELETE FROM w WHERE k = 'a'")
        let next = try await loop.rows()
        #expect(next == ["delete w a"])
    }

    @Test func `a bucket and a record type are followed by key`() async throws {
        struct Item: Record {
            var id: Int64
            var name: String
        }
        let fixture = try ObservationFixture()
        let store = fixture.store
        let bucket = Bucket<String, Int>("numbers")
        let numbers = store.changes(in: bucket).makeAsyncIterator()
        let items = store.changes(in: Item.self).makeAsyncIterator()
        try fixture.write { tx in
            try tx.set(1, for: "one", in: bucket)
            try tx.insert(Item(id: 7, name: "a"))
        }
        let (first, second) = (try await numbers.rows(), try await items.rows())
        #expect(first == ["rescan schema"] && second == first, "the tables are new")
        try fixture.write { tx in
            try tx.set(2, for: "one", in: bucket)
            try tx.set(2, for: "two", in: bucket)
            try tx.update(Item(id: 7, name: "b"))
        }
        let told = try await numbers.rows()
        #expect(told == ["update bucket:numbers one", "insert bucket:numbers two"])
        let item = try await items.next()
        #expect(item == .commit([ChangedRow(table: "item", key: [7], kind: .update)]))
        try fixture.write { tx in try tx.removeAll(in: bucket) }
        let removed = try await numbers.rows()
        #expect(Set(removed) == ["delete bucket:numbers one", "delete bucket:numbers two"])
    }

    @Test func `observing does not change what statements do and report`() async throws {
        let fixture = try prepared()
        try fixture.run(
            "CREATE TRIGGER gone AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.id); END")
        func work() throws -> [String] {
            try fixture.write { tx in
                var seen: [String] = []
                for sql in [
                    "INSERT INTO t(u) VALUES (55)", "REPLACE INTO t(u) VALUES (10)",
                    "INSERT OR IGNORE INTO t(u) VALUES (20)", "UPDATE t SET v = 1",
                    "DELETE FROM t WHERE u = 55", "DELETE FROM w WHERE 1",
                ] {
                    let count = try tx.execute(SQL(text: sql))
                    let row = try tx.firstRow("SELECT last_insert_rowid(), changes()")
                    let rest = try tx.rows("SELECT * FROM log").count
                    seen.append("\(count) \(row?.values ?? []) \(rest)")
                }
                seen.append("\(try tx.scalar("PRAGMA recursive_triggers", as: Int.self) ?? -1)")
                try tx.execute("DELETE FROM t")
                try tx.execute("DELETE FROM log")
                try tx.execute("INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (100, 1, 1000)")
                try tx.execute("INSERT INTO w VALUES ('a', 1, 10), ('b', 2, 20)")
                return seen
            }
        }
        let alone = try work()
        let loop = fixture.store.changes(in: "t", "w", "log").makeAsyncIterator()
        let observed = try work()
        #expect(alone == observed)
        _ = try await loop.next()
    }

    @Test func `a loop that falls behind is asked to read again, once`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t", maximumWaitingRowCount: 3).makeAsyncIterator()
        for id in 1...6 { try fixture.run("INSERT INTO t(id) VALUES (\(id))") }
        let told = try await loop.rows()
        #expect(told == ["rescan overflow"])
        try fixture.run("DELETE FROM t WHERE id = 6")
        let next = try await loop.rows()
        #expect(next == ["delete t 6"])
    }

    @Test func `a commit of too many rows is reported as one rescan`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t", maximumWaitingRowCount: 1 << 20)
            .makeAsyncIterator()
        let count = 12_000
        try fixture.write { tx in
            for id in 1...count { try tx.execute("INSERT INTO t(id) VALUES (\(id))") }
        }
        let told = try await loop.rows()
        #expect(told == ["rescan tooManyRows"])
        try fixture.run("DELETE FROM t WHERE id = 6")
        let next = try await loop.rows()
        #expect(next == ["delete t 6"])
    }

    @Test func `a change of the schema is reported, and observing goes on`() async throws {
        let fixture = try prepared()
        let loop = fixture.store.changes(in: "t", "late").makeAsyncIterator()
        try fixture.run(
            "INSERT INTO t(id) VALUES (3)", "ALTER TABLE t ADD COLUMN more",
            "INSERT INTO t(id) VALUES (4)")
        var told = try await loop.rows()
        #expect(told == ["rescan schema"])
        try fixture.run("CREATE TABLE late(v)")
        told = try await loop.rows()
        #expect(told == ["rescan schema"])
        try fixture.run("INSERT INTO t(id) VALUES (5)", "INSERT INTO late VALUES (1)")
        told = try await loop.rows()
        #expect(told == ["insert t 5", "insert late 1"])
        try fixture.run(
            "DROP TABLE late", "CREATE TABLE late(k PRIMARY KEY) WITHOUT ROWID",
            "INSERT INTO late VALUES ('x')")
        told = try await loop.rows()
        #expect(told == ["rescan schema"])
        try fixture.run("INSERT INTO late VALUES ('y')")
        told = try await loop.rows()
        #expect(told == ["insert late y"])
    }

    @Test func `a write that began before the loop is reported as a rescan`() async throws {
        let fixture = try ObservationFixture()
        let hold = Hold()
        let write = Task {
            try await fixture.store.write { tx in
                try tx.execute("INSERT INTO t(id) VALUES (1)")
                hold.stay()
            }
        }
        await hold.isEntered()
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        hold.release()
        try await write.value
        let told = try await loop.rows()
        #expect(told == ["rescan begunBefore"])
        try fixture.run("INSERT INTO t(id) VALUES (2)")
        let next = try await loop.rows()
        #expect(next == ["insert t 2"])
    }

    @Test func `REPLACE under a partial unique index is reported as a rescan`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run(
            "CREATE TABLE p(id INTEGER PRIMARY KEY, a, b)",
            "CREATE UNIQUE INDEX pi ON p(a) WHERE b = 0", "INSERT INTO p VALUES (1, 1, 0)")
        let loop = fixture.store.changes(in: "p").makeAsyncIterator()
        try fixture.run("INSERT INTO p VALUES (2, 2, 0)")
        var told = try await loop.rows()
        #expect(told == ["insert p 2"])
        try fixture.run("REPLACE INTO p VALUES (3, 1, 0)")
        told = try await loop.rows()
        #expect(told == ["rescan unknown"])
    }

    @Test func `a blob that is written in place is an update of its row`() async throws {
        let fixture = try prepared()
        try fixture.run("UPDATE t SET v = zeroblob(100) WHERE id = 2")
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        let values = fixture.store.observe { tx in try tx.rows("SELECT v FROM t WHERE id = 2") }
        let valueLoop = values.makeAsyncIterator()
        _ = try await valueLoop.next()
        try fixture.write { tx in
            try tx.withWritableBlob("v", in: "T", row: 2) { blob in
                try blob.write([1, 2, 3] as [UInt8], at: 5)
            }
        }
        let told = try await loop.rows()
        #expect(told == ["update t 2"])
        let value = try await valueLoop.next()
        #expect(value?.first?[0].map { "\($0)".contains("100") } == true)
    }

    @Test func `a view and a virtual table are refused`() async throws {
        let fixture = try ObservationFixture()
        try fixture.run("CREATE VIRTUAL TABLE words USING fts4(body)")
        for name in ["joined", "words"] {
            await ObserveTests.expectError(.unsupported) {
                for try await _ in fixture.store.changes(in: name) {}
            }
        }
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test func `a virtual table that is made later is reported as rescans`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t", "later").makeAsyncIterator()
        try fixture.run("INSERT INTO t(id) VALUES (1)")
        var told = try await loop.rows()
        #expect(told == ["insert t 1"])
        try fixture.run("CREATE VIRTUAL TABLE later USING fts4(body)")
        told = try await loop.rows()
        #expect(told == ["rescan schema"])
        try fixture.run("INSERT INTO later VALUES ('x')")
        told = try await loop.rows()
        #expect(told == ["rescan unknown"])
    }

    @Test func `observing goes on after the key was changed`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        try fixture.run("INSERT INTO t(id) VALUES (1)")
        var told = try await loop.rows()
        #expect(told == ["insert t 1"])
        try await fixture.store.rekey(to: .numbered(2))
        try fixture.run("INSERT INTO t(id) VALUES (2)")
        told = try await loop.rows()
        // The new connection cannot know whether somebody else has written in between.
        if told == ["rescan elsewhere"] {
            try fixture.run("INSERT INTO t(id) VALUES (3)")
            told = try await loop.rows()
        }
        #expect(told == ["insert t 2"] || told == ["insert t 3"])
    }

    @Test func `closing the store ends the loop after the events that wait`() async throws {
        let fixture = try ObservationFixture()
        let loop = fixture.store.changes(in: "t").makeAsyncIterator()
        try fixture.run("INSERT INTO t(id) VALUES (1)")
        // The table is examined before the first event.
        let first = try await loop.rows()
        try fixture.run("INSERT INTO t(id) VALUES (2)")
        try await fixture.store.close()
        let told = try await loop.rows()
        #expect(first == ["insert t 1"] && told == ["insert t 2"])
        await ObserveTests.expectError(.closed) { _ = try await loop.next() }
        let end = try await loop.next()
        #expect(end == nil)
    }

    @Test func `nothing is left on the connection once nobody observes`() async throws {
        let fixture = try ObservationFixture()
        func leftovers() throws -> Int {
            try fixture.write { tx in
                try tx.rows("SELECT name FROM sqlite_temp_master WHERE type = 'trigger'").count
            }
        }
        do {
            let loop = fixture.store.changes(in: "t").makeAsyncIterator()
            try fixture.run("REPLACE INTO t(id) VALUES (1)")
            #expect(try leftovers() > 0)
            _ = try await loop.next()
        }
        #expect(throws: Undo.self) { try fixture.write { _ in throw Undo() } }
        #expect(try leftovers() == 0)
        #expect(fixture.store.core.observation.begin(fixture.store.core.pool.writer) == nil)
    }
}
