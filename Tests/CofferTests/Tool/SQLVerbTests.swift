import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct SQLVerbTests {
    @Test func `a statement reads, and changes only with --write`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a, b)", "INSERT INTO t VALUES (1, 'x'), (NULL, 2.0)")
        try store.fail("sql", ["DELETE FROM t"], exitCode: 26, saying: "--write")
        try store.fail("sql", ["PRAGMA user_version = 5"], exitCode: 26, saying: "--write")
        #expect(try store.rows("SELECT count(*) FROM t") == [[2]])
        let read = try store.succeed("sql", ["SELECT * FROM t"])
        #expect(read.text == "a  b\n-  ---\n1  x\n   2.0\n")
        let changed = try store.succeed("sql", ["DELETE FROM t WHERE a = 1", "--write"])
        #expect(changed.text == "changed: 1 row\n")
        let json = try store.succeed("sql", ["DELETE FROM t", "--write", "--json"])
        #expect(json.text == "{\"changedRowCount\":1,\"schema\":1}\n")
        #expect(try store.rows("SELECT count(*) FROM t") == [[0]])
    }

    @Test func `values are bound by their prefix`() throws {
        let store = try ToolStore()
        let file = try store.write(Data([0, 1, 255]), as: "bytes")
        let arguments = [
            "int:-9223372036854775808", "real:1", "real:-inf", "text:int:5", "null:", "hex:00fF",
            "file:\(file)", "plain", "-5", "http://x",
        ].flatMap { ["--bind", $0] }
        let places = Array(repeating: "?", count: 10).joined(separator: ",")
        try store.execute("CREATE TABLE t(a, b, c, d, e, f, g, h, i, j)")
        try store.succeed("sql", ["INSERT INTO t VALUES (\(places))", "--write"] + arguments)
        #expect(
            try store.rows("SELECT * FROM t") == [
                [
                    .integer(.min), .real(1), .real(-.infinity), "int:5", nil,
                    .blob(Data([0, 255])), .blob(Data([0, 1, 255])), "plain", "-5", "http://x",
                ]
            ])
    }

    @Test func `a value that cannot be bound is wrong usage`() throws {
        let store = try ToolStore()
        for value in [
            "int:1.5", "int:9223372036854775808", "real:x", "real:nan", "hex:0", "null:x",
        ] {
            try store.fail("sql", ["SELECT ?", "--bind", value], exitCode: 2, saying: "text:")
        }
        try store.fail("sql", ["SELECT ?"], exitCode: 2, saying: "1 parameters", "0 times")
        try store.fail("sql", ["SELECT 1", "--bind", "x"], exitCode: 2)
        try store.fail(
            "sql", ["SELECT ?", "--bind", "file:\(store.path)"], exitCode: 2, saying: "itself")
        try store.fail("sql", ["SELECT ?", "--bind", "file:/no/such"], exitCode: 10)
    }

    @Test func `exactly one statement runs, and none that controls transactions`() throws {
        let store = try ToolStore()
        try store.fail("sql", ["SELECT 1; SELECT 2"], exitCode: 24, saying: "more than one")
        try store.fail("sql", [""], exitCode: 24)
        try store.fail("sql", ["BEGIN", "--write"], exitCode: 2, saying: "BEGIN")
        try store.fail("sql", ["PRAGMA key = 'x'", "--write"], exitCode: 24)
    }

    @Test func `a script runs as one transaction, from a file or standard input`() throws {
        let store = try ToolStore()
        let script = """
            -- what the store begins with
            CREATE TABLE t(a, b);
            INSERT INTO t VALUES (1, ?), (2, ?);
            SELECT a, b FROM t; SELECT count(*) AS n FROM t WHERE a > ?;
            """
        let file = try store.write(Data(script.utf8), as: "change.sql")
        let binds = ["--bind", "x;y", "--bind", "int:7", "--bind", "int:1"]
        try store.fail("sql", ["--file", file] + binds, exitCode: 26, saying: "line 2", "--write")
        #expect(try store.tables() == [])
        let output = try store.succeed("sql", ["--file", file, "--write"] + binds)
        #expect(output.text == "a  b\n-  ---\n1  x;y\n2  7\n\nn\n-\n1\n")
        let lines = try store.succeed(
            "sql", ["--json"], input: Data("SELECT 1 AS a; SELECT 2 AS b".utf8))
        #expect(lines.text == "{\"a\":1}\n{\"b\":2}\n")
        let changed = try store.succeed(
            "sql", ["--write"], input: Data("DELETE FROM t; INSERT INTO t VALUES (1, 2)".utf8))
        #expect(changed.text == "changed: 3 rows\n")
    }

    @Test func `an error in a script names its line, and undoes what was before it`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a UNIQUE)")
        for (rest, code) in [
            ("INSERT INTO nix VALUES (1)", 24), ("INSERT INTO t VALUES (1)", 23), ("COMMIT", 2),
            ("SAVEPOINT s", 2), ("VACUUM", 2), ("SELECT ?", 2), ("SELECT", 24),
            ("PRAGMA foreign_keys = 0", 2), ("PRAGMA user_version = 5; SELECT nix", 24),
        ] {
            let script = "INSERT INTO t VALUES (1);\n/* -- */-- ;\n\(rest);\nSELECT 1"
            let output = try store.run("sql", ["--write"], input: Data(script.utf8))
            #expect(output.exitCode == code, "\(rest): \(output.errorText)")
            if rest != "SELECT ?" {
                #expect(output.errorText.contains("line 3"), "\(output.errorText)")
            }
            #expect(try store.rows("SELECT count(*) FROM t") == [[0]], "\(rest)")
            #expect(try store.rows("PRAGMA user_version") == [[0]], "\(rest)")
        }
        let script = Data("INSERT INTO t VALUES (1); INSERT INTO t VALUES (?)".utf8)
        let extra = try store.run(
            "sql", ["--write", "--bind", "int:2", "--bind", "int:3"], input: script)
        #expect(extra.exitCode == 2)
        #expect(try store.rows("SELECT count(*) FROM t") == [[0]])
    }

    @Test func `a setting or VACUUM works as the only statement of a script`() throws {
        let store = try ToolStore()
        try store.succeed(
            "sql", ["--write"], input: Data("-- make it small\nVACUUM;\n".utf8))
        try store.succeed("sql", ["--write"], input: Data("PRAGMA user_version = 5".utf8))
        #expect(try store.rows("PRAGMA user_version") == [[5]])
    }

    @Test func `a script that cannot be one is refused before the secret is asked for`() throws {
        let store = try ToolStore()
        let nul = try store.run("sql", [], input: Data("SELECT 1;\nSELECT \0".utf8))
        #expect(nul.exitCode == 25)
        #expect(nul.errorText.contains("line 2"))
        let empty = try store.run("sql", [], input: Data("-- nothing".utf8))
        #expect(empty.exitCode == 24)
        let missing = try Tool.run(["sql", store.path, "--file", "/no/such.sql"])
        #expect(missing.exitCode == 10)
        let both = try Tool.run(["sql", store.path, "SELECT 1", "--file", "/no/such.sql"])
        #expect(both.exitCode == 2)
    }

    @Test func `SQL comes from standard input, which cannot be the secret too`() throws {
        let store = try ToolStore()
        let output = try store.succeed("sql", ["-", "--json"], input: Data("SELECT 1 AS a\n".utf8))
        #expect(output.text == "{\"a\":1}\n")
        let both = try Tool.run(["sql", store.path, "-", "--passphrase-stdin"])
        #expect(both.exitCode == 2)
        let invalid = try store.run("sql", ["-"], input: Data([0xff]))
        #expect(invalid.exitCode == 25)
    }

    @Test func `JSON keeps every value and every column`() throws {
        let store = try ToolStore()
        let output = try store.succeed(
            "sql",
            [
                "SELECT 1 AS a, 1.0 AS a, 'x' || char(0) || char(10) AS \"a:2\", x'00ff', 9e999, "
                    + "NULL, -9223372036854775807 - 1 AS m",
                "--json",
            ])
        #expect(
            output.text == """
                {"a":1,"a:3":1.0,"a:2":"x\\u0000\\n","x'00ff'":{"$base64":"AP8="},\
                "9e999":{"$real":"Infinity"},"NULL":null,"m":-9223372036854775808}

                """)
    }

    @Test func `a table shows control characters instead of obeying them`() throws {
        let store = try ToolStore()
        let output = try store.succeed("sql", ["SELECT char(27) || '[31m' || char(10) AS a"])
        #expect(!output.stdout.contains(0x1b))
        #expect(output.text.split(separator: "\n").count == 3)
    }

    @Test func `CSV refuses what it cannot express`() throws {
        let store = try ToolStore()
        let output = try store.succeed(
            "sql", ["SELECT NULL AS a, 'x,y' AS b, 'q\"' AS c", "--format", "csv", "--null", "NA"])
        #expect(output.text == "a,b,c\nNA,\"x,y\",\"q\"\"\"\n")
        try store.fail("sql", ["SELECT x'00' AS a", "--format", "csv"], saying: "a holds a blob")
        try store.fail("sql", ["SELECT 9e999", "--format", "csv"], saying: "infinite")
        try store.fail(
            "sql", ["SELECT 'NA'", "--format", "csv", "--null", "NA"], saying: "--null")
        for (number, null) in [("-99", "-99"), ("1e3", "1000.0"), ("-1.5", "-1.5")] {
            try store.fail(
                "sql", ["SELECT \(number) AS a, NULL", "--format", "csv", "--null=\(null)"],
                saying: "column a holds the number", "--null")
        }
        let empty = try store.succeed("sql", ["SELECT ''", "--format", "csv"])
        #expect(empty.errorText.contains("--null"))
    }

    @Test func `a missing store is exit code 10, without a prompt for its key`() throws {
        let output = try Tool.run(["sql", "/no/such.db", "SELECT 1"])
        #expect(output.exitCode == 10)
    }

    @Test func `a foreign lock is exit code 11 and nothing is changed`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a)")
        let connection = try store.connect()
        defer { connection.close() }
        try connection.transaction {
            try store.fail(
                "sql", ["INSERT INTO t VALUES (1)", "--write", "--busy-timeout", "0.1"],
                exitCode: 11)
        }
        #expect(try store.rows("SELECT count(*) FROM t") == [[0]])
    }
}
