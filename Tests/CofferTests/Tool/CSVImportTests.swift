import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct CSVImportTests {
    /// Imports a text and returns the rows of the table `t`, or nothing if it fails.
    private func rows(
        _ text: String, _ options: [String] = [], sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [[Value]] {
        let store = try ToolStore()
        let arguments = ["-", "--format", "csv", "--table", "t"] + options
        try store.succeed(
            "import", arguments, input: Data(text.utf8), sourceLocation: sourceLocation)
        return try store.rows("SELECT * FROM t")
    }

    /// Expects that a text is refused, with these words, and leaves nothing.
    private func refuse(
        _ data: Data, _ options: [String] = [], saying words: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let store = try ToolStore()
        let arguments = ["-", "--format", "csv", "--table", "t"] + options
        let output = try store.run("import", arguments, input: data)
        #expect(output.exitCode == 25, "\(output.errorText)", sourceLocation: sourceLocation)
        for word in words where !word.isEmpty {
            #expect(
                output.errorText.contains(word), "\(output.errorText)",
                sourceLocation: sourceLocation)
        }
        #expect(try store.tables() == [], sourceLocation: sourceLocation)
    }

    private func refuse(
        _ text: String, _ options: [String] = [], saying word: String, and other: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try refuse(
            Data(text.utf8), options, saying: word, other, sourceLocation: sourceLocation)
    }

    @Test(arguments: [("a;b\n1;2\n", "--delimiter ';'"), ("a\tb\n1\t2\n", "--delimiter tab")])
    func `a header of one column with another delimiter has a hint`(
        text: String, option: String
    ) throws {
        let store = try ToolStore()
        let arguments = ["-", "--format", "csv", "--table"]
        let made = try store.succeed("import", arguments + ["new"], input: Data(text.utf8))
        #expect(made.errorText.contains(option), "\(made.errorText)")
        try store.execute("CREATE TABLE t(a, b)")
        try store.fail(
            "import", arguments + ["t"], input: Data(text.utf8), exitCode: 25, saying: option)
        // Suggests nothing if the option was given, or if the table has a column of that name.
        let given = try store.succeed(
            "import", arguments + ["other", "--delimiter", ","], input: Data(text.utf8))
        #expect(given.errorText.isEmpty, "\(given.errorText)")
        let again = try store.succeed("import", arguments + ["new"], input: Data(text.utf8))
        #expect(again.errorText.isEmpty, "\(again.errorText)")
    }

    @Test func `columns get the type that all their fields have`() throws {
        let store = try ToolStore()
        let text = "i,r,t,n,m\n1,1,1,,1\n-5,1.5,007,,1e3\n,,,,\n9223372036854775807,-2,x,,2\n"
        try store.succeed(
            "import", ["-", "--format", "csv", "--table", "t"], input: Data(text.utf8))
        #expect(
            try store.rows("SELECT sql FROM sqlite_master") == [
                [
                    .text(
                        "CREATE TABLE \"t\"(\"i\" INTEGER, \"r\" REAL, \"t\" TEXT, \"n\" TEXT, "
                            + "\"m\" REAL)")
                ]
            ])
        #expect(
            try store.rows("SELECT * FROM t") == [
                [1, 1.0, "1", nil, 1.0], [-5, 1.5, "007", nil, 1000.0], [nil, nil, nil, nil, nil],
                [.integer(.max), -2.0, "x", nil, 2.0],
            ])
    }

    @Test func `a field that is not a plain number makes its column text`() throws {
        let fields = [
            "007", "+5", "-0", " 5", "5 ", "0x10", "inf", "nan", "1_000", ".5", "5.", "--5",
        ]
        for field in fields {
            let stored = try rows("a\n\(field)\n1\n")
            #expect(stored == [[.text(field)], ["1"]])
        }
        for altered in [
            "9007199254740993.5", "0.12345678901234567890123", "12345678901234567890.5", "1e-400",
        ] {
            #expect(try rows("a\n\(altered)\n")[0][0] == .text(altered))
        }
        for (kept, real) in [
            ("0.1", 0.1), ("12.50", 12.5), ("1e5", 1e5), ("0.30000000000000004", 0.1 + 0.2),
            ("1.7976931348623157e308", .greatestFiniteMagnitude),
            ("5e-324", .leastNonzeroMagnitude), ("0.0", 0),
            ("123456789012.345", 123456789012.345),
        ] {
            #expect(try rows("a\n\(kept)\n")[0][0] == .real(real), "\(kept)")
        }
        #expect(try rows("a\n9007199254740993\n1.5\n")[0][0] == "9007199254740993")
        #expect(try rows("a\n90000000000000000000\n")[0][0] == .real(9e19))
        #expect(try rows("a\n90000000000000000001\n")[0][0] == "90000000000000000001")
    }

    @Test func `--text and --null are obeyed`() throws {
        #expect(try rows("a,b\n007,\n", ["--text"]) == [["007", nil]])
        #expect(try rows("a,b\nNA,\n1,x\n", ["--null", "NA"]) == [[nil, ""], [1, "x"]])
    }

    @Test func `delimiters and line ends of all kinds are read`() throws {
        #expect(try rows("a;b\n1;x,y\n", ["--delimiter", ";"]) == [[1, "x,y"]])
        #expect(try rows("a\tb\n\t x \n", ["--delimiter", "tab"]) == [[nil, " x "]])
        #expect(try rows("a,b\r\n1,2\r\n3,\r\n") == [[1, 2], [3, nil]])
        #expect(try rows("a,b\n1,2") == [[1, 2]])
        #expect(try rows("a,b\n1,") == [[1, nil]])
        #expect(try rows("\u{feff}a,b\n1,2\n") == [[1, 2]])
        #expect(try rows("a\n\nx\n") == [[nil], ["x"]])
        #expect(try rows("a,b\n") == [])
        #expect(try rows("a,b\n1,2\n\n\r\n") == [[1, 2]])
        #expect(try rows("a\n\"\"\n") == [[nil]])
    }

    private static let awkwardTexts = [
        "\u{301}", "a\u{301}", "Å", "à", "…", "\u{85}", "\u{2028}", "\u{a0}x", " x ", "\t", "🧪",
        "\u{0}", "\u{b}", "\u{c}", "'", "\\", "\u{feff}x", "\u{200d}", "é,", "x\ny", "x\r\ny", "\r",
        "\"", "\"\"", "a\"b", ",", "\n", "\"\n\"", "Ā", "Ŀ",
    ]

    /// The text as fields of CSV: in quotes, and plain if it may be.
    private static func fields(_ text: String) -> [String] {
        let quoted = "\"" + text.replacingQuotes() + "\""
        let isPlain = !text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
        return isPlain ? [quoted, text] : [quoted]
    }

    @Test(arguments: ["\n", "\r\n"])
    func `no text is altered`(end: String) throws {
        let records = Self.awkwardTexts.flatMap { text in
            Self.fields(text).map { (text, "\($0),\($0)\(end)") }
        }
        let rows = try rows("a,b\n" + records.map(\.1).joined())
        try #require(rows.count == records.count)
        for (row, (text, record)) in zip(rows, records) {
            try #require(row.count == 2)
            for value in row { #expect(isIdentical(value, .text(text)), "\(record): \(value)") }
        }
    }

    @Test(arguments: awkwardTexts)
    func `no text at the end of a file is altered`(text: String) throws {
        for field in Self.fields(text) {
            let rows = try rows("a,b\n\(field),\(field)")
            try #require(rows.count == 1 && rows[0].count == 2)
            for value in rows[0] { #expect(isIdentical(value, .text(text)), "\(value)") }
        }
    }

    @Test func `a file that is not CSV is refused with its line`() throws {
        try refuse("a,b\n1,2\n3\n", saying: "line 3", and: "1 fields")
        try refuse("a,b\n1,2,3\n", saying: "line 2", and: "3 fields")
        try refuse("a,b\n1,2\n\n3,4\n", saying: "line 3", and: "1 fields")
        try refuse("a,b\n1,2\n\"\"\n", saying: "line 3", and: "1 fields")
        try refuse("a,b\n1,\"x\n2,3\n", saying: "line 2", and: "never ends")
        try refuse("a\n\"x\"y\n", saying: "line 2", and: "closing quote")
        try refuse("a\n\"x\" \n", saying: "line 2", and: "closing quote")
        try refuse("a\nx\"y\"\n", saying: "line 2", and: "inside a field")
        try refuse("a\nx\"\"y\n", saying: "line 2", and: "inside a field")
        try refuse("a\n \"y\"\n", saying: "line 2", and: "inside a field")
        try refuse("a\nx\ry\n", saying: "line 2", and: "carriage return")
        try refuse("a\n1\r", saying: "line 2", and: "carriage return")
        try refuse("a,a\n1,2\n", saying: "line 1", and: "the column a appears twice")
        try refuse("a,\n1,2\n", saying: "name")
        try refuse("", saying: "no header")
    }

    @Test func `records that the table ignores are not counted as imported`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a INTEGER UNIQUE ON CONFLICT IGNORE, b)")
        let arguments = ["-", "--table", "t", "--format"]
        let csv = try store.succeed(
            "import", arguments + ["csv"], input: Data("a,b\n1,2\n1,3\n2,4\n".utf8))
        #expect(csv.text.contains("imported: 2 rows"))
        #expect(csv.errorText.contains("1 record was not stored"))
        let json = try store.succeed(
            "import", arguments + ["jsonl"], input: Data("{\"a\":2}\n{\"a\":3}\n".utf8))
        #expect(json.text.contains("imported: 1 row"))
    }

    private func imported(
        _ schema: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [(text: String, warning: String)] {
        let inputs = ["csv": "a,b\n1,2\n1,3\n1,4\n", "jsonl": "{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n"]
        return try inputs.map { format, input in
            let store = try ToolStore()
            for text in schema.components(separatedBy: "|") { try store.execute(SQL(text: text)) }
            let output = try store.succeed(
                "import", ["-", "--table", "T", "--format", format], input: Data(input.utf8),
                sourceLocation: sourceLocation)
            return (output.text, output.errorText)
        }
    }

    /// The changes of a trigger counted as those of the record.
    @Test func `a record that a trigger ignores and logs is not counted as imported`() throws {
        let outputs = try imported(
            """
            CREATE TABLE t(a, b)|CREATE TABLE log(a)|CREATE TRIGGER r BEFORE INSERT ON t BEGIN
            INSERT INTO log VALUES (new.a); SELECT RAISE(IGNORE); END
            """)
        for output in outputs {
            #expect(output.text.contains("imported: 0 rows"), "\(output.text)")
            #expect(output.warning.contains("3 records were not stored"), "\(output.warning)")
        }
    }

    @Test(arguments: [
        """
        CREATE TABLE t(a INTEGER UNIQUE ON CONFLICT REPLACE, b)|
        INSERT INTO t VALUES (1, 1), (2, 2)
        """,
        """
        CREATE TABLE t(a INTEGER, b)|INSERT INTO t VALUES (1, 1), (2, 2)|
        CREATE TRIGGER r AFTER INSERT ON t
        BEGIN DELETE FROM t WHERE a = new.a AND rowid < new.rowid; END
        """,
    ])
    func `rows that an import replaced or removed are warned of`(schema: String) throws {
        for output in try imported(schema) {
            #expect(output.text.contains("imported: 3 rows"), "\(output.text)")
            #expect(output.warning.contains("3 rows were replaced or removed"), "\(output.warning)")
            #expect(output.warning.contains("had 2 rows and has 2"), "\(output.warning)")
        }
    }

    @Test func `rows that go through a view or with a trigger are counted without a warning`()
        throws
    {
        let schemas = [
            """
            CREATE TABLE u(a, b)|CREATE VIEW t AS SELECT a, b FROM u|
            CREATE TRIGGER r INSTEAD OF INSERT ON t BEGIN INSERT INTO u VALUES (new.a, new.b); END
            """,
            """
            CREATE TABLE t(a, b)|CREATE TABLE u(a)|
            CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a); END
            """,
        ]
        for schema in schemas {
            for output in try imported(schema) {
                #expect(output.text.contains("imported: 3 rows"), "\(output.text)")
                #expect(!output.warning.contains("warning"), "\(output.warning)")
            }
        }
    }

    @Test func `more columns than the engine binds are imported into a new table`() throws {
        let names = (0..<1200).map { "c\($0)" }.joined(separator: ",")
        let text = names + "\n" + (0..<1200).map(String.init).joined(separator: ",") + "\n"
        #expect(try rows(text) == [(0..<1200).map { .integer($0) }])
    }

    @Test func `a text that is not UTF-8 is refused with its line`() throws {
        try refuse(Data("a,b\n1,2\n1,".utf8) + [0xff, 0x0a], saying: "line 3", "field 2", "UTF-8")
        // Cut through a character: the delimiter must not be lost.
        try refuse(Data("a,b\n".utf8) + [0xe2, 0x82, 0x2c, 0x31, 0x0a], saying: "line 2", "UTF-8")
    }

    @Test func `a later field that would lose digits is refused, and never shown`() throws {
        // More than the first chunk, which decides the types.
        let filler = String(repeating: "x", count: 2000)
        let many = "a,b,c\n" + String(repeating: "1,1.5,\(filler)\n", count: 600)
        for field in ["007", "1.5", "secret", "9223372036854775808"] {
            try refuse(many + "\(field),1,x\n", saying: "line 602: column a", and: "--text")
        }
        try refuse(many + "1,nan,x\n", saying: "column b")
        try refuse(many + "1,9007199254740993,x\n", saying: "16 bytes")
        let output = try ToolStore().run(
            "import", ["-", "--format", "csv", "--table", "t"],
            input: Data((many + "secret,1,x\n").utf8))
        #expect(!output.errorText.contains("secret"))
    }

    @Test func `a record may be longer than a chunk`() throws {
        let long = String(repeating: "é\n", count: 500_000)
        let rows = try rows("a,b\n1,\"\(long)\"\n2,x\n")
        #expect(rows == [[1, .text(long)], [2, "x"]])
    }

    @Test func `an existing table takes fields by its own types`() throws {
        let store = try ToolStore()
        try store.execute(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, d DATE, x, s TEXT NOT NULL DEFAULT 'd')"
        )
        let arguments = ["-", "--format", "csv", "--table", "T"]
        let text = "X,R,D,ID\n007,2,2013-01-01,\ny,1.5,5,9\n"
        try store.succeed("import", arguments, input: Data(text.utf8))
        #expect(
            try store.rows("SELECT * FROM t ORDER BY id") == [
                [1, 2.0, "2013-01-01", "007", "d"], [9, 1.5, 5, "y", "d"],
            ])
        for (text, words) in [
            ("id,nix\n1,2\n", "no column named nix"), ("id,ID\n1,2\n", "appears twice"),
            ("id\n007\n", "column id"), ("id\nx\n", "column id"), ("d\n007\n", "column d"),
            ("r\n9007199254740993\n", "column r"), ("id\n9\n", "line 2: UNIQUE"),
            ("id,s\n10,\n", "NOT NULL"),
        ] {
            let exitCode: Int32 = words.contains("N") ? 23 : 25
            try store.fail(
                "import", arguments, input: Data(text.utf8), exitCode: exitCode, saying: words)
        }
        try store.fail("import", arguments + ["--text"], input: Data("x\n1\n".utf8), exitCode: 2)
        #expect(try store.rows("SELECT count(*) FROM t") == [[2]])
    }

    @Test func `two columns of a new table with one name are refused`() throws {
        try refuse(Data("id,ID\n1,2\n".utf8), saying: "line 1: the column ID appears twice")
    }

    @Test func `names are distinguished as SQLite does it`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(\u{c9}, \u{e9}, e\u{301}, a)")
        let arguments = ["-", "--format", "csv", "--table", "t"]
        let text = "e\u{301},\u{e9},\u{c9},A\n1,2,3,4\n"
        try store.succeed("import", arguments, input: Data(text.utf8))
        #expect(try store.rows("SELECT * FROM t") == [["3", "2", "1", "4"]])
        let null = ["--null", "\u{e9}"]
        try store.succeed("import", arguments + null, input: Data("a\ne\u{301}\n\u{e9}\n".utf8))
        #expect(
            try store.rows("SELECT a FROM t") == [["4"], [.text("e\u{301}")], [nil]])
    }

    @Test func `the format and the table must be known`() throws {
        let store = try ToolStore()
        let file = try store.write(Data("a\n1\n".utf8), as: "x.csv")
        try store.fail("import", [file], exitCode: 2, saying: "--table")
        try store.fail("import", ["-", "--table", "t"], exitCode: 2, saying: "--format")
        try store.fail("import", ["/no/such.csv", "--table", "t"], exitCode: 10)
        try store.fail("import", [store.path, "--format", "sql"], exitCode: 2, saying: "itself")
        try store.fail(
            "import", [file, "--table", "t", "--format", "jsonl", "--text"], exitCode: 2)
        let both = try Tool.run(
            ["import", store.path, "-", "--format", "sql", "--passphrase-stdin"])
        #expect(both.exitCode == 2)
        let report = try store.succeed("import", [file, "--table", "t", "--json"])
        #expect(report.text.contains("\"rowCount\":1"))
        #expect(report.text.contains("\"isTableMade\":true"))
    }

    @Test func `Ctrl-C imports nothing and is exit code 130`() throws {
        let store = try ToolStore()
        let tool = try Tool.start(
            [
                "import", store.path, "-", "--format", "csv", "--table", "t", "--progress", "json",
                "--raw-key-fd", "3",
            ], descriptors: [3: Tool.key(1)])
        let line = "0123456789abcdefghij\n"
        try tool.write(Data(("a\n" + String(repeating: line, count: 60_000)).utf8))
        // The import is in the middle of its transaction, and waits for more.
        try tool.waitForError("\"done\"")
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(output.stdout.isEmpty)
        #expect(try store.tables() == [])
    }

    @Test(.onSmallDisk)
    func `a full disk imports nothing and is exit code 17`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a)", "INSERT INTO t VALUES (1)")
        let file = try store.write(
            Data(("a\n" + String(repeating: "0123456789abcdefghij\n", count: 100_000)).utf8),
            as: "big.csv")
        let mount = store.folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let output = try Tool.run(
            ["import", mount + "/small.db", file, "--table", "t", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)],
            under: [
                "unshare", "-Urm", "sh", "-c",
                "mount -t tmpfs -o size=1500k tmpfs \"$1\" && cp \"$2\" \"$1/small.db\" && shift 2 "
                    + "&& exec \"$@\"",
                "sh", mount, store.path,
            ])
        #expect(output.exitCode == 17, "\(output.errorText)")
        #expect(output.stdout.isEmpty)
    }
}

extension String {
    fileprivate func replacingQuotes() -> String {
        // By scalar, because a combining mark behind a quote belongs to the quote's Character.
        unicodeScalars.map { $0 == "\"" ? "\"\"" : String($0) }.joined()
    }
}
