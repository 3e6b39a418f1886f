import Foundation
import Testing

@testable import Coffer

/// Random writes. The changes reported for each commit must be those that a comparison of the rows
/// before and after it finds.
@Suite(.againstHanging, .onOwnThreads) struct ChangesAgainstTruthTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 11 ^ state << 21
        }

        mutating func pick<T>(_ choices: [T]) -> T { choices[Int(next() % UInt64(choices.count))] }
    }

    private static let schema = [
        "CREATE TABLE a(id INTEGER PRIMARY KEY, u UNIQUE, n TEXT COLLATE NOCASE UNIQUE, x, y)",
        "CREATE UNIQUE INDEX axy ON a(x, y)",
        """
        CREATE TABLE b(k TEXT COLLATE NOCASE, l, u UNIQUE, v, PRIMARY KEY (l, k)) WITHOUT ROWID
        """,
        "CREATE TABLE c(v, \"rowid\", \"odd \"\"name\" UNIQUE ON CONFLICT REPLACE)",
        "CREATE TABLE d(k TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, u UNIQUE, v)",
        "CREATE TABLE e(a NOT NULL, b NOT NULL DEFAULT 2, v, PRIMARY KEY (b, a))",
        "CREATE TABLE f(k TEXT PRIMARY KEY, v)",
        """
        CREATE TRIGGER ab AFTER DELETE ON a WHEN old.u % 3 = 0 BEGIN
            INSERT OR REPLACE INTO c(v, "odd ""name") VALUES (old.u, old.u % 2);
        END
        """,
    ]

    /// The key by which each table's rows are reported.
    private static let keys = [
        "a": "id", "b": "l, k", "c": "_rowid_", "d": "k", "e": "b, a", "f": "rowid",
    ]

    private static func keyedStatement(_ random: inout Random) -> String {
        let (i, j, k) = (random.next() % 5, random.next() % 5, random.next() % 4)
        let or = random.pick(["", "OR REPLACE", "OR REPLACE", "OR IGNORE", "OR FAIL"])
        let name = random.pick(["'p'", "'P'", "'q'", "'é'", "NULL", "x'00'"])
        let number = random.pick(["1", "1.0", "'1'", "2", "NULL"])
        return random.pick([
            "INSERT \(or) INTO d(rowid, k, u) VALUES (\(i), \(name), \(j))",
            "INSERT \(or) INTO d(k, v) VALUES (\(name), \(j)), ('p', \(k))",
            "UPDATE \(or) d SET rowid = \(i) WHERE k = \(name)",
            "UPDATE \(or) d SET k = \(name) WHERE rowid % 3 = \(k)",
            "UPDATE \(or) d SET rowid = rowid + 1, u = \(j) WHERE u = \(i)",
            "INSERT \(or) INTO e(rowid, a, b, v) VALUES (\(i), \(k), \(number), \(j))",
            "UPDATE \(or) e SET b = \(number) WHERE a = \(k)",
            "UPDATE \(or) e SET a = a * 1.0, rowid = \(i) WHERE b = \(number)",
            "INSERT \(or) INTO f(rowid, k) VALUES (\(i), \(name))",
            "INSERT \(or) INTO f(k, v) VALUES (\(name), \(k))",
            "UPDATE \(or) f SET k = \(name) WHERE rowid = \(i)",
            "DELETE FROM \(random.pick(["d", "e", "f"])) WHERE rowid % 3 = \(k)",
            "DELETE FROM \(random.pick(["d", "e", "f"])) WHERE v = \(j)",
        ])
    }

    private static func statement(_ random: inout Random) -> String {
        if random.next() % 2 == 0 { return keyedStatement(&random) }
        let (i, j, k) = (random.next() % 7, random.next() % 7, random.next() % 4)
        let or = random.pick(["", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT"])
        let name = random.pick(["'p'", "'P'", "'q'", "'é'", "NULL", "x'00'"])
        return random.pick([
            "INSERT \(or) INTO a(u, n, x, y) VALUES (\(i), \(name), \(j), \(k))",
            "INSERT \(or) INTO a(id, u, n) VALUES (\(i), \(j), \(name)), (\(j), \(k), 'z')",
            "UPDATE \(or) a SET u = \(i), x = \(j) WHERE id % 3 = \(k)",
            "UPDATE \(or) a SET id = id + \(k) WHERE u = \(i)",
            "UPDATE \(or) a SET n = \(name) WHERE id = \(i)",
            "DELETE FROM a WHERE id = \(i)", "DELETE FROM a WHERE u < \(k)",
            "INSERT \(or) INTO b VALUES (\(name), \(k), \(i), \(j))",
            "INSERT \(or) INTO b SELECT n, id % 3, u, x FROM a",
            "UPDATE \(or) b SET k = \(name) WHERE l = \(k)",
            "UPDATE \(or) b SET l = l + 1, u = \(j) WHERE v = \(i)",
            "DELETE FROM b WHERE l = \(k)",
            "INSERT INTO c(v, \"odd \"\"name\") VALUES (\(i), \(j))",
            "INSERT INTO c(_rowid_, v) VALUES (\(i), \(j))",
            "UPDATE c SET \"odd \"\"name\" = \(j) WHERE v = \(i)",
            k == 0 ? "DELETE FROM \(random.pick(["a", "b", "c"]))" : "DELETE FROM c WHERE v = \(i)",
        ])
    }

    /// Tables, and statements at random.
    private struct Subject: Sendable {
        let schema: [String]
        /// The key by which each table's rows are reported.
        let keys: [String: String]
        let statement: @Sendable (inout Random) -> String
    }

    private static let everyStatement = Subject(
        schema: schema, keys: keys, statement: { statement(&$0) })

    /// Statements that need no triggers.
    private static let plainStatements = Subject(
        schema: [
            "CREATE TABLE a(id INTEGER PRIMARY KEY, u UNIQUE, v)",
            """
            CREATE TABLE b(
                id INTEGER PRIMARY KEY, a REFERENCES a ON DELETE CASCADE, w CHECK (w <> 5))
            """,
            "CREATE TABLE c(v)", "CREATE TABLE copied(v)",
            "CREATE TABLE d(k TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, v)",
            """
            CREATE TRIGGER counted AFTER INSERT ON b BEGIN
                UPDATE a SET v = v + 1 WHERE id = new.a;
            END
            """,
            """
            CREATE TRIGGER kept AFTER DELETE ON b WHEN old.w % 2 = 0 BEGIN
                INSERT INTO c VALUES (old.w);
            END
            """,
            "INSERT INTO copied VALUES (1), (2)",
        ], keys: ["a": "id", "b": "id", "c": "rowid", "d": "k"],
        statement: { random in
            let (i, j, k) = (random.next() % 7, random.next() % 7, random.next() % 4)
            let or = random.pick(["", "OR IGNORE", "OR ABORT"])
            let name = random.pick(["'p'", "'P'", "'q'", "'é'", "'r'"])
            return random.pick([
                "INSERT \(or) INTO a(u, v) VALUES (\(i), \(j))",
                "INSERT \(or) INTO a(id, u) VALUES (\(i), \(j)), (\(j), \(k)), (\(k), \(i))",
                "UPDATE \(or) a SET u = u + \(k), v = \(j) WHERE id % 3 = \(k)",
                "UPDATE a SET v = \(i) WHERE u > \(j)",
                "DELETE FROM a WHERE id = \(i)", "DELETE FROM a WHERE u < \(k)",
                "INSERT \(or) INTO b VALUES (\(i), \(j), \(k)), (\(j), \(i), \(i))",
                "INSERT \(or) INTO b(a, w) SELECT id, u FROM a",
                "UPDATE \(or) b SET a = \(j), w = w + 1 WHERE id <> \(i)",
                "DELETE FROM b WHERE w >= \(j)",
                "INSERT INTO c(rowid, v) VALUES (\(i), \(j))",
                "INSERT INTO c SELECT * FROM copied",
                "UPDATE c SET v = v + 1 WHERE v = \(i)", "DELETE FROM c WHERE v = \(j)",
                "INSERT \(or) INTO d VALUES (\(name), \(i)), ('s\(j)', \(k))",
                "UPDATE d SET v = \(i) WHERE k = \(name)",
            ])
        })

    /// All rows by table and key.
    private func rows(
        _ store: Store, _ keys: [String: String]
    ) throws -> [String: [String: [Value]]] {
        try store.read { tx in
            var all: [String: [String: [Value]]] = [:]
            for (table, key) in keys {
                // The values include the row id, which can change as well.
                let rowID = ["d", "e"].contains(table) ? "rowid, " : ""
                let sql = SQL(text: "SELECT \(key), \(rowID)* FROM \(table)")
                let width = key.split(separator: ",").count
                var found: [String: [Value]] = [:]
                for row in try tx.rows(sql) {
                    found["\(row.values.prefix(width))"] = row.values
                }
                all[table] = found
            }
            return all
        }
    }

    /// The changes that a comparison of all rows finds.
    private func differences(
        _ before: [String: [String: [Value]]], _ after: [String: [String: [Value]]]
    ) -> Set<String> {
        var differences: Set<String> = []
        for (table, old) in before {
            let new = after[table] ?? [:]
            for key in old.keys where new[key] == nil {
                differences.insert("delete \(table) \(key)")
            }
            for (key, row) in new {
                if old[key] == nil { differences.insert("insert \(table) \(key)") }
                if let was = old[key], was != row { differences.insert("update \(table) \(key)") }
            }
        }
        return differences
    }

    /// Writes at random, and compares what a loop is told with what a comparison finds.
    private func compare(_ subject: Subject, _ fixture: ObservationFixture, seed: Int) async throws
    {
        for sql in subject.schema { try fixture.run(sql) }
        let events = ObservedChanges(
            core: fixture.store.core, tables: subject.keys.keys.sorted(),
            maximumWaitingRowCount: 10_000
        ).makeAsyncIterator()
        var random = Random(state: UInt64(seed))
        var before = try rows(fixture.store, subject.keys)
        for _ in 0..<250 {
            try? fixture.write { tx in
                for _ in 0...random.next() % 5 {
                    let sql = subject.statement(&random)
                    try? tx.savepoint { part in
                        _ = try? part.execute(SQL(text: sql))
                        if random.next() % 5 == 0 { throw Undo() }
                    }
                }
                if random.next() % 8 == 0 { throw Undo() }
            }
            let after = try rows(fixture.store, subject.keys)
            let expected = differences(before, after)
            before = after
            // A row that is like no other marks the end of this round, also if nothing was changed.
            try fixture.run("INSERT INTO c(_rowid_) VALUES (1000000)")
            try fixture.run("DELETE FROM c WHERE _rowid_ = 1000000")
            var told: Set<String> = []
            while let event = try await events.next(), case .commit(let rows) = event {
                let texts = rows.map { "\($0.kind.rawValue) \($0.table) \($0.key)" }
                if rows.first?.key == [1_000_000] {
                    if rows.first?.kind == .delete { break }
                    continue
                }
                #expect(Set(texts).count == texts.count)
                told.formUnion(texts)
            }
            // An update to the same values is reported, but cannot be seen in the rows.
            let rest = told.subtracting(expected)
            #expect(expected.isSubset(of: told), "\(expected.subtracting(told))")
            #expect(rest.allSatisfy { $0.hasPrefix("update") }, "\(rest)")
        }
    }

    @Test(arguments: 1...(isLongRun ? 40 : 4))
    func `the reported changes are those that a comparison finds`(seed: Int) async throws {
        try await compare(Self.everyStatement, try ObservationFixture(), seed: seed)
    }

    @Test(arguments: 1...(isLongRun ? 40 : 4))
    func `plain statements are reported as a comparison finds, without triggers`(
        seed: Int
    ) async throws {
        let fixture = try ObservationFixture()
        try await compare(Self.plainStatements, fixture, seed: seed)
        #expect(try fixture.triggers() == [])
    }
}
