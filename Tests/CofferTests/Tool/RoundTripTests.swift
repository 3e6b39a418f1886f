import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct RoundTripTests {
    /// Fills a table, and returns what it holds afterwards, because the engine may store -0.0 as
    /// 0.0.
    private func fill(_ store: ToolStore) throws -> [[Value]] {
        let connection = try store.connect()
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, w BLOB)")
        for value in awkwardValues {
            try connection.execute(
                SQL(text: "INSERT INTO t(v, w) VALUES (?, ?)", arguments: [value, value]))
        }
        return try connection.rows("SELECT * FROM t ORDER BY id").map(\.values)
    }

    private func expectSame(
        _ first: [[Value]], _ second: [[Value]], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(first.count == second.count, sourceLocation: sourceLocation)
        for (row, other) in zip(first, second) {
            #expect(
                row.count == other.count && zip(row, other).allSatisfy(isIdentical),
                "\(row) became \(other)", sourceLocation: sourceLocation)
        }
    }

    @Test func `JSON lines bring back every value`() throws {
        let store = try ToolStore()
        let before = try fill(store)
        let file = store.folder.path("t.jsonl")
        let report = try store.succeed(
            "export", ["--table", "t", "--format", "jsonl", "--output", file, "--json"])
        #expect(report.text.contains("\"rowCount\":\(awkwardValues.count)"))
        #expect(report.errorText.contains("plaintext"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        let other = try ToolStore()
        // A column without a type keeps what it is given.
        try other.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, w BLOB)")
        try other.succeed("import", [file, "--table", "t"])
        expectSame(before, try other.rows("SELECT * FROM t ORDER BY id"))
        // The first object has NULL, so the column of the new table has no type either.
        try other.succeed("import", [file, "--table", "made"])
        expectSame(before, try other.rows("SELECT * FROM made ORDER BY id"))
    }

    @Test func `CSV brings back text, numbers and NULL`() throws {
        let store = try ToolStore()
        let connection = try store.connect()
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT, r REAL)")
        for value in awkwardValues {
            switch value {
            case .text(let text): try connection.execute("INSERT INTO t(s) VALUES (\(text))")
            case .real(let real) where real.isFinite:
                try connection.execute("INSERT INTO t(r) VALUES (\(real))")
            case .integer(let integer) where integer != 1 && integer != 0:
                try connection.execute("INSERT INTO t(id) VALUES (\(integer))")
            default: break
            }
            // After the largest row id the engine would choose a random one.
            try connection.execute("DELETE FROM t WHERE id = \(Int64.max)")
        }
        connection.close()
        let before = try store.rows("SELECT * FROM t ORDER BY id")
        let csv = try store.succeed(
            "export", ["--table", "t", "--format", "csv", "--null", "\\N"]
        ).stdout
        let other = try ToolStore()
        let arguments = ["-", "--format", "csv", "--table", "t", "--null", "\\N"]
        try other.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT, r REAL)")
        try other.succeed("import", arguments, input: csv)
        expectSame(before, try other.rows("SELECT * FROM t ORDER BY id"))
    }

    /// Texts and blobs that are written piece by piece: characters of all lengths, quotes and
    /// escapes come at every place of a piece.
    private static let longValues: [Value] =
        (0..<8).map { offset in
            let text = String(repeating: "x", count: offset)
            return .text(text + String(repeating: "aé…🧪\"'\n\u{85}\\,", count: 20_000))
        } + [
            .text(String(repeating: "\"", count: 200_001)),
            .text(String(repeating: "'", count: 200_001)),
            .text(String(repeating: "a\r", count: 100_001)),
            .text(String(repeating: "é", count: 200_001) + "\u{0}"),
            .text(String(repeating: "plain", count: 100_001)),
        ]

    @Test func `long values come back from each format`() throws {
        let store = try ToolStore()
        let blobs: [Value] = [49_151, 49_152, 49_153, 200_000].map { count in
            .blob(Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }))
        }
        let connection = try store.connect()
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        for value in Self.longValues {
            try connection.execute("INSERT INTO t(v) VALUES (\(value))")
        }
        connection.close()
        for format in ["csv", "jsonl", "sql"] {
            if format == "jsonl" {
                let connection = try store.connect()
                for blob in blobs {
                    try connection.execute("INSERT INTO t(v) VALUES (\(blob))")
                }
                connection.close()
            }
            let file = store.folder.path("t.\(format)")
            let arguments = ["--table", "t", "--format", format]
            try store.succeed("export", arguments + ["--output", file])
            let streamed = try store.succeed("export", arguments).stdout
            #expect(try Data(contentsOf: URL(filePath: file)) == streamed)
            let other = try ToolStore()
            if format != "sql" { try other.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)") }
            try other.succeed("import", [file] + (format == "sql" ? [] : ["--table", "t"]))
            expectSame(
                try store.rows("SELECT * FROM t ORDER BY id"),
                try other.rows("SELECT * FROM t ORDER BY id"))
        }
    }

    /// A schema with what a dump can get wrong.
    private func fillSchema(_ store: ToolStore) throws {
        _ = try fill(store)
        try store.execute(
            "CREATE TABLE \"od d\"\"x\"(a, \"select\" TEXT /* -- */)",
            "INSERT INTO \"od d\"\"x\"(rowid, a) VALUES (50, 1), (-3, NULL), (7, 'seven')",
            "CREATE TABLE named(rowid TEXT, _rowid_, x); ",
            "INSERT INTO named(oid, rowid) VALUES (9, 'nine'), (4, 'four')",
            "CREATE TABLE without(k TEXT PRIMARY KEY, v) WITHOUT ROWID",
            "INSERT INTO without VALUES ('k', x'00'), ('b', 9e999)",
            "CREATE TABLE falling(id INTEGER PRIMARY KEY DESC, v)",
            "INSERT INTO falling(rowid, id, v) VALUES (20, 1, 2), (10, 5, 6)",
            "CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, p REFERENCES parent(id))",
            "CREATE TABLE parent(id INTEGER PRIMARY KEY)",
            "INSERT INTO parent VALUES (1), (2)",
            "INSERT INTO counted VALUES (5, 1), (100, 2)", "DELETE FROM counted WHERE id = 100",
            "CREATE UNIQUE INDEX i ON t(id, v) WHERE v IS NOT NULL",
            "CREATE VIEW seen AS SELECT v FROM t -- all\n",
            "CREATE TABLE log(x)",
            """
            CREATE TRIGGER tr AFTER INSERT ON log
            BEGIN INSERT INTO parent VALUES (77); SELECT 1; END
            """,
            "INSERT INTO log VALUES (1)", "PRAGMA user_version = 42")
    }

    private static let probes: [SQL] = [
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name",
        "SELECT * FROM t ORDER BY id", "SELECT rowid, * FROM \"od d\"\"x\" ORDER BY 1",
        "SELECT oid, * FROM named ORDER BY 1", "SELECT * FROM without ORDER BY k",
        "SELECT rowid, * FROM falling ORDER BY 1", "SELECT * FROM counted", "SELECT * FROM parent",
        "SELECT * FROM log", "SELECT name, seq FROM sqlite_sequence", "PRAGMA user_version",
    ]

    @Test func `SQL restores the whole database, in coffer and in the sqlcipher shell`() throws {
        let store = try ToolStore()
        try fillSchema(store)
        let file = store.folder.path("dump.sql")
        try store.succeed("export", ["--output", file])
        let dump = try Data(contentsOf: URL(filePath: file))
        let other = try ToolStore()
        try other.succeed("import", [file])
        for probe in Self.probes { expectSame(try store.rows(probe), try other.rows(probe)) }
        #expect(try other.succeed("export").stdout == dump)

        // The shell writes into an encrypted file; the library reads it.
        let shell = try ToolStore()
        let pragmas = try Tool.run(
            ["shell-key", shell.path, "--reveal", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        let made = try Tool.runProgram(
            ["sqlcipher", "-bail", shell.path], input: pragmas.stdout + dump)
        #expect(made.exitCode == 0, "\(made.errorText)")
        for probe in Self.probes { expectSame(try store.rows(probe), try shell.rows(probe)) }
    }

    @Test func `Python's sqlite3 reads the SQL back to an equal database`() throws {
        let store = try ToolStore()
        try fillSchema(store)
        let dump = try store.succeed("export").stdout
        // Python writes its own database again as JSON.
        let script = """
            import base64, json, math, sqlite3, sys
            def form(v):
                if isinstance(v, bytes): return {"$base64": base64.b64encode(v).decode()}
                if isinstance(v, float) and math.isinf(v):
                    return {"$real": "Infinity" if v > 0 else "-Infinity"}
                return v
            db = sqlite3.connect(":memory:")
            db.executescript(sys.stdin.buffer.read().decode())
            for table in ("t", "without", "falling", "log"):
                for row in db.execute(f"SELECT * FROM {table}"):
                    print(json.dumps({f"c{i}": form(v) for i, v in enumerate(row)}))
            """
        let printed = try Tool.runProgram(["python3", "-c", script], input: dump)
        #expect(printed.exitCode == 0, "\(printed.errorText)")
        let other = try ToolStore()
        try other.execute("CREATE TABLE p(c0, c1, c2)")
        try other.succeed(
            "import", ["-", "--format", "jsonl", "--table", "p"], input: printed.stdout)
        let sources: [SQL] = [
            "SELECT * FROM t", "SELECT *, NULL FROM without", "SELECT *, NULL FROM falling",
            "SELECT *, NULL, NULL FROM log",
        ]
        expectSame(try sources.flatMap(store.rows), try other.rows("SELECT * FROM p"))
    }

    @Test func `a dump of the sqlite3 module is imported completely or not at all`() throws {
        let script = """
            import sqlite3
            db = sqlite3.connect(":memory:")
            db.executescript(\"\"\"
                CREATE TABLE child(p REFERENCES parent(id)); CREATE TABLE parent(id PRIMARY KEY);
                INSERT INTO parent VALUES ('a;b''c'); INSERT INTO child VALUES ('a;b''c');
                CREATE TRIGGER tr AFTER INSERT ON child BEGIN SELECT 1; SELECT 2; END;\"\"\")
            print("PRAGMA foreign_keys=OFF;")
            print("\\n".join(db.iterdump()))
            """
        let dump = try Tool.runProgram(["python3", "-c", script]).stdout
        let store = try ToolStore()
        let arguments = ["-", "--format", "sql"]
        try store.succeed("import", arguments, input: dump)
        #expect(try store.rows("SELECT * FROM child") == [["a;b'c"]])
        let other = try ToolStore()
        let broken = dump + Data("INSERT INTO parent VALUES ('a;b''c');\n".utf8)
        try other.fail("import", arguments, input: broken, exitCode: 23, saying: "line 9: UNIQUE")
        for (text, words) in [
            ("CREATE TABLE x(a);\n\nnonsense;", "line 3"),
            ("CREATE TABLE x(a); ROLLBACK;", "ROLLBACK"),
            ("CREATE TABLE x(a); ROLLBACK TO s;", "one transaction"),
            ("CREATE TABLE x(a); PRAGMA journal_mode=DELETE;", "journal_mode"),
            ("CREATE TABLE x(a); INSERT INTO x VALUES ('open", "line 1"),
            ("CREATE TABLE x(a);\n\u{0}", "line 2: a NUL"), ("ATTACH 'x' AS y;", "ATTACH"),
        ] {
            let output = try other.run("import", arguments, input: Data(text.utf8))
            let isSQL = ["nonsense", "PRAGMA", "open", "ATTACH"].contains { text.contains($0) }
            #expect(output.exitCode == (isSQL ? 24 : 25), "\(output.errorText)")
            #expect(output.errorText.contains(words), "\(output.errorText)")
        }
        #expect(try other.tables() == [])
    }

    @Test func `reals of all sizes come back exactly, in Python's sqlite3 too`() throws {
        var generator = SeededGenerator(state: 7)
        var reals: [Double] = []
        while reals.count < 4000 {
            var bits = UInt64.random(in: 0 ... .max, using: &generator)
            if reals.count.isMultiple(of: 8) { bits &= ~(0x7ff << 52) }  // subnormal
            let real = Double(bitPattern: bits)
            if real.isFinite { reals.append(real) }
            reals.append(Double(Int.random(in: 0..<100_000_000, using: &generator)) / 1000)
        }
        let store = try ToolStore()
        let connection = try store.connect()
        try connection.execute("CREATE TABLE r(v)")
        try connection.transaction {
            for real in reals { try connection.execute("INSERT INTO r VALUES (\(real))") }
        }
        connection.close()
        let dump = try store.succeed("export").stdout
        let other = try ToolStore()
        try other.succeed("import", ["-", "--format", "sql"], input: dump)
        let before = try store.rows("SELECT v FROM r ORDER BY rowid")
        expectSame(before, try other.rows("SELECT v FROM r ORDER BY rowid"))
        let script = """
            import sqlite3, struct, sys
            db = sqlite3.connect(":memory:")
            db.executescript(sys.stdin.read())
            for (v,) in db.execute("SELECT v FROM r ORDER BY rowid"):
                print(struct.unpack("<Q", struct.pack("<d", v))[0])
            """
        let printed = try Tool.runProgram(["python3", "-c", script], input: dump)
        #expect(printed.exitCode == 0, "\(printed.errorText)")
        let read = printed.text.split(separator: "\n").compactMap { UInt64($0) }
        #expect(read.count == before.count)
        let different = zip(before, read).filter { row, bits in
            row[0] != .real(Double(bitPattern: bits))
        }
        #expect(different.isEmpty, "\(different.count) of \(read.count): \(different.prefix(3))")
    }

    @Test func `long values and wide tables come back too`() throws {
        let store = try ToolStore()
        let blob = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) })
        try store.execute("CREATE TABLE big(b)", "INSERT INTO big VALUES (\(blob))")
        let other = try ToolStore()
        try other.succeed(
            "import", ["-", "--format", "sql"], input: try store.succeed("export").stdout)
        #expect(try other.rows("SELECT b FROM big") == [[.blob(blob)]])
        let lines = try store.succeed("export", ["--table", "big", "--format", "jsonl"]).stdout
        try other.succeed("import", ["-", "--format", "jsonl", "--table", "b2"], input: lines)
        #expect(try other.rows("SELECT b FROM b2") == [[.blob(blob)]])
    }
}

/// The same numbers in every run.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
