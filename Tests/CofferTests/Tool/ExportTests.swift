import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct ExportTests {
    @Test(arguments: ["csv", "jsonl", "sql"])
    func `a text that is not UTF-8 ends an export with its column`(format: String) throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(id INTEGER, odd TEXT)")
        try store.execute("INSERT INTO t VALUES (1, 'good'), (2, CAST(x'ff00fe' AS TEXT))")
        let output = try Tool.run(
            ["export", store.path, "--format", format]
                + (format == "sql" ? [] : ["--table", "t"]) + ["--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        #expect(output.exitCode == 25, "\(output.errorText)")
        #expect(output.errorText.contains("row 2"), "\(output.errorText)")
        #expect(output.errorText.contains("column odd"), "\(output.errorText)")
        #expect(output.errorText.contains("hex("), "\(output.errorText)")
    }

    @Test func `Ctrl-C ends an export whose statement gives no row, and leaves no file`() throws {
        let store = try ToolStore()
        let file = store.folder.path("out.jsonl")
        let endless =
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) "
            + "SELECT count(*) FROM c"
        let tool = try Tool.start(
            [
                "export", store.path, "--sql", endless, "--format", "jsonl", "--output", file,
                "--raw-key-fd", "3",
            ], descriptors: [3: Tool.key(1)])
        try tool.waitForError("in plaintext")
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    /// Stores four texts of 1 MB, and exports them again and again until SIGINT.
    ///
    /// - Returns: The time from the signal to the end of the process.
    private func interruptedExport(
        _ store: ToolStore, _ format: String, to file: String?
    ) throws -> Duration {
        let endless =
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) "
            + "SELECT i, body FROM c CROSS JOIN t"
        let tool = try Tool.start(
            ["export", store.path, "--sql", endless, "--format", format, "--raw-key-fd", "3"]
                + ["--progress", "json"] + (file.map { ["--output", $0] } ?? []),
            descriptors: [3: Tool.key(1)])
        try tool.waitForError("\"done\"")
        let start = ContinuousClock.now
        tool.send(SIGINT)
        let output = try tool.finish()
        let duration = ContinuousClock.now - start
        #expect(output.exitCode == 130, "\(output.errorText)")
        if let file {
            #expect(output.stdout.isEmpty)
            #expect(
                output.errorText.contains("interrupted: \(file) was not made"),
                "\(output.errorText)")
        } else {
            #expect(!output.stdout.isEmpty)
            #expect(
                output.errorText.contains("interrupted; standard output may have only a part"),
                "\(output.errorText)")
        }
        return duration
    }

    @Test(arguments: ["csv", "jsonl"], [true, false])
    func `Ctrl-C ends an export within a second among rows of 1 MB, and leaves no file`(
        format: String, hasFile: Bool
    ) throws {
        let store = try ToolStore()
        let text = String(repeating: "a \"row\", ", count: 100_000)
        try store.execute(
            "CREATE TABLE t(body TEXT)", "INSERT INTO t VALUES (\(text)), (\(text))",
            "INSERT INTO t SELECT body FROM t")
        let file = hasFile ? store.folder.path("out.\(format)") : nil
        // A busy machine may delay one of them.
        let isFast = try (0..<3).contains { _ in
            try interruptedExport(store, format, to: file) < .seconds(1)
        }
        #expect(isFast)
        let left = try FileManager.default.contentsOfDirectory(atPath: store.folder.url.path)
        #expect(left.filter { !$0.hasPrefix("store.db-") } == ["store.db"])
    }

    @Test func `a file that exists is never replaced, and a failure leaves none`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(a)", "INSERT INTO t VALUES (1), (x'00')")
        let file = try store.write(Data("mine".utf8), as: "there.sql")
        try store.fail("export", ["--output", file], exitCode: 22, saying: "exists already")
        #expect(try Data(contentsOf: URL(filePath: file)) == Data("mine".utf8))
        let before = try FileManager.default.contentsOfDirectory(atPath: store.folder.url.path)
        try store.fail(
            "export",
            ["--table", "t", "--format", "csv", "--output", store.folder.path("new.csv")],
            saying: "blob")
        let after = try FileManager.default.contentsOfDirectory(atPath: store.folder.url.path)
        #expect(
            before.filter { !$0.hasPrefix("store.db-") }.sorted()
                == after.filter { !$0.hasPrefix("store.db-") }.sorted())
        try store.fail("export", ["--output", "/no/such/folder/x.sql"], exitCode: 10)
    }

    @Test func `a text that is not UTF-8 is an error in each format`() throws {
        let store = try ToolStore()
        try store.execute(
            "CREATE TABLE t(a)", "INSERT INTO t VALUES ('good'), (CAST(x'61ff' AS TEXT))")
        for format in ["csv", "jsonl", "sql"] {
            try store.fail(
                "export", ["--table", "t", "--format", format], exitCode: 25, saying: "UTF-8")
        }
    }

    @Test func `tables are named, and one that is missing is exit code 10`() throws {
        let store = try ToolStore()
        try store.execute(
            "CREATE TABLE a(x)", "CREATE TABLE b(x)", "CREATE INDEX ia ON a(x)",
            "CREATE INDEX ib ON b(x)", "CREATE VIEW v AS SELECT 7 AS seven")
        let dump = try store.succeed("export", ["--table", "A"]).text
        #expect(dump.contains("CREATE TABLE a(x);") && dump.contains("INDEX ia"))
        #expect(!dump.contains(" b(") && !dump.contains("VIEW"))
        let view = try store.succeed("export", ["--table", "v", "--format", "csv"]).text
        #expect(view == "seven\n7\n")
        let select = try store.succeed("export", ["--sql", "SELECT 1 AS a", "--format", "jsonl"])
        #expect(select.text == "{\"a\":1}\n")
        try store.fail("export", ["--table", "nix"], exitCode: 10, saying: "nix")
        try store.fail("export", ["--table", "nix", "--format", "csv"], exitCode: 10)
        for arguments in [
            ["--format", "csv"], ["--format", "csv", "--table", "a", "--table", "b"],
            ["--sql", "SELECT 1"], ["--null", "x"], ["--format", "csv", "--sql", "DELETE FROM a"],
        ] {
            try store.fail("export", arguments, exitCode: 2)
        }
    }

    @Test func `a virtual table is refused, since SQL text cannot hold it`() throws {
        let store = try ToolStore()
        try store.execute("CREATE VIRTUAL TABLE f USING fts3(x)", "CREATE TABLE t(a)")
        try store.fail("export", saying: "f is a virtual table")
        try store.succeed("export", ["--table", "t"])
    }

    @Test func `progress goes to standard error, with the total`() throws {
        let store = try ToolStore()
        try store.execute(
            "CREATE TABLE t(a)",
            """
            INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
            SELECT i FROM n
            """)
        let output = try store.succeed("export", ["--progress", "json"])
        #expect(output.errorText.contains("\"total\":5000"))
        #expect(output.text.split(separator: "\n").count == 5004)
    }
}
