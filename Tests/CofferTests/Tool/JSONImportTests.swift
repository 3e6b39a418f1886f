import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct JSONImportTests {
    private let arguments = ["-", "--format", "jsonl", "--table", "t"]

    @Test func `a table is made of the first object, in its order`() throws {
        let store = try ToolStore()
        let lines = """
            {"z":1, "a":1.0, "m":"x", "b":{"$base64":"AP8="}, "n":null, "f":true}\r
            {"a":{"$real":"-Infinity"},"z":9223372036854775807}
            {"n":"\\u0000\\ud83e\\uddea\\u00e9\\/","m":null,"f":false}
            """
        try store.succeed("import", arguments, input: Data(lines.utf8))
        #expect(
            try store.rows("SELECT sql FROM sqlite_master") == [
                [
                    .text(
                        "CREATE TABLE \"t\"(\"z\" INTEGER, \"a\" REAL, \"m\" TEXT, \"b\" BLOB, "
                            + "\"n\", \"f\" INTEGER)")
                ]
            ])
        #expect(
            try store.rows("SELECT * FROM t") == [
                [1, 1.0, "x", .blob(Data([0, 255])), nil, 1],
                [.integer(.max), .real(-.infinity), nil, nil, nil, nil],
                [nil, nil, nil, nil, "\u{0}🧪é/", 0],
            ])
    }

    @Test(arguments: [
        ("{\"a\":1,\"a\":2}", "twice"), ("{\"a\":1,\"A\":2}", "the column A appears twice"),
        ("{\"a\":[1]}", "array"), ("{\"a\":{\"b\":1}}", "object"),
        ("{\"a\":{\"$base64\":\"%\"}}", "object"), ("{\"a\":{\"$real\":\"NaN\"}}", "object"),
        ("{\"a\":9223372036854775808}", "64 bits"), ("{\"a\":1e999}", "too large"),
        ("{\"a\":01}", "number"), ("{\"a\":1.}", "number"), ("{\"a\":-}", "number"),
        ("{\"a\":+1}", "not JSON"), ("{\"a\":NaN}", "not JSON"), ("{\"a\":\"x}", "end"),
        ("{\"a\":\"\\ud800\"}", "surrogate"), ("{\"a\":\"\\x\"}", "escape"),
        ("{\"a\":\"\t\"}", "control"), ("{\"a\":1} {}", "follows"), ("{\"a\":1,}", "quotes"),
        ("{\"a\" 1}", "colon"), ("[1]", "object"), ("{\"a\":1", "end"),
        ("{\"b\":1}", "no column named b"), ("{\"a\":1.5}", ""),
        ("{\"a\":0.12345678901234567890123}", "rounded"), ("{\"a\":1e-400}", "rounded"),
        ("{\"a\":12345678901234567890123.0}", "rounded"),
        ("{\"a\":9007199254740993.0}", "rounded"),
    ])
    func `input that is not a record is refused with its line, and nothing is imported`(
        line: String, words: String
    ) throws {
        let store = try ToolStore()
        let text = "{\"a\":1}\n\(line)\n{\"a\":3}\n"
        let output = try store.run("import", arguments, input: Data(text.utf8))
        if words.isEmpty { return #expect(output.exitCode == 0) }
        #expect(output.exitCode == 25)
        #expect(output.errorText.contains("line 2"), "\(output.errorText)")
        #expect(output.errorText.contains(words), "\(output.errorText)")
        #expect(try store.tables() == [])
    }

    @Test func `a number of any form is stored if a real holds it`() throws {
        let numbers: [(String, Double)] = [
            ("1.50", 1.5), ("15E-1", 1.5), ("-0.0", -0.0), ("0e9", 0), ("1E+22", 1e22),
            ("5e-324", .leastNonzeroMagnitude),
            ("1.7976931348623157e308", .greatestFiniteMagnitude),
            ("0.1000000000000000000", 0.1), ("9007199254740992.0", 9_007_199_254_740_992),
        ]
        let lines = numbers.map { "{\"a\":\($0.0)}\n" }.joined()
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a)")
        try store.succeed("import", arguments, input: Data(lines.utf8))
        #expect(try store.rows("SELECT a FROM t") == numbers.map { [.real($0.1)] })
    }

    @Test func `a value that the column would change is refused`() throws {
        for (first, second) in [
            ("1", "\"5\""), ("1", "2.0"), ("1.5", "9007199254740993"), ("\"x\"", "1"),
            ("\"x\"", "1.5"),
        ] {
            let store = try ToolStore()
            let text = "{\"a\":\(first)}\n{\"a\":\(second)}\n"
            try store.fail(
                "import", arguments, input: Data(text.utf8), exitCode: 25, saying: "line 2",
                "column a")
            #expect(try store.tables() == [])
        }
        // A program that writes 2.0 as 2 may fill an existing column of reals.
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a REAL, b TEXT DEFAULT 'd')")
        try store.succeed("import", arguments, input: Data("{\"A\":2}\n{}\n".utf8))
        #expect(try store.rows("SELECT * FROM t") == [[2.0, "d"], [nil, "d"]])
        try store.fail(
            "import", arguments, input: Data("{\"a\":2,\"A\":3}\n".utf8), exitCode: 25,
            saying: "twice")
        let big = Data("{\"a\":9007199254740993}\n".utf8)
        try store.fail("import", arguments, input: big, exitCode: 25, saying: "column a")
    }

    @Test func `an integer goes into a column that began with a real, after a byte order mark`()
        throws
    {
        let store = try ToolStore()
        let text = "\u{feff}{\"a\":1.5}\n{\"a\":2}\n"
        try store.succeed("import", arguments, input: Data(text.utf8))
        #expect(try store.rows("SELECT * FROM t") == [[1.5], [2.0]])
    }

    @Test func `blank lines are passed over, and counted as lines`() throws {
        let store = try ToolStore()
        let text = "\u{feff}\n{\"a\":1}\n \t\r\n\r\n{\"a\":2}\r\n\n \n"
        let output = try store.succeed("import", arguments, input: Data(text.utf8))
        #expect(output.text.contains("imported: 2 rows"))
        #expect(try store.rows("SELECT * FROM t") == [[1], [2]])
        try store.fail(
            "import", arguments, input: Data("{\"a\":3}\n\n{\"a\":\n".utf8), exitCode: 25,
            saying: "line 3")
        try store.fail(
            "import", arguments, input: Data("\n\n".utf8), exitCode: 25, saying: "no object")
        #expect(try store.rows("SELECT count(*) FROM t") == [[2]])
    }

    @Test func `text that is not UTF-8 is refused`() throws {
        let store = try ToolStore()
        let data = Data("{\"a\":\"".utf8) + [0xc3] + Data("\"}\n".utf8)
        try store.fail("import", arguments, input: data, exitCode: 25, saying: "line 1", "UTF-8")
    }
}
