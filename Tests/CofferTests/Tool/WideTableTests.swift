import Coffer
import Foundation
import Testing

/// Tables with more columns than SQLCipher 3.4.1 has arguments, which are 999.
@Suite(.againstHanging, .onOwnThreads) struct WideTableTests {
    private static let columnCount = 1500
    private let names = (0..<columnCount).map { "c\($0)" }

    /// A row with a value of each kind near the limit and at the end.
    private var row: [Value] {
        names.indices.map { index in
            switch index % 5 {
            case 0: .integer(Int64(index) - 700)
            case 1: .real(Double(index) + 0.5)
            case 2: .text("text é \(index)")
            case 3: .null
            default: .text("\"\(index)\"\n")
            }
        }
    }

    @Test func `all columns come back from CSV and from JSON lines`() throws {
        let store = try ToolStore()
        let connection = try store.connect()
        try connection.execute(SQL(text: "CREATE TABLE t(\(names.joined(separator: ", ")))"))
        let second = Array(row.reversed())
        for row in [row, second] {
            let literals = row.map { value in
                switch value {
                case .integer(let integer): "\(integer)"
                case .real(let real): "\(real)"
                case .text(let text): "'\(text)'"
                default: "NULL"
                }
            }
            try connection.execute(
                SQL(text: "INSERT INTO t VALUES (\(literals.joined(separator: ", ")))"))
        }
        connection.close()
        for format in ["csv", "jsonl"] {
            let file = store.folder.path("t.\(format)")
            try store.succeed("export", ["--table", "t", "--format", format, "--output", file])
            let other = try ToolStore()
            try other.execute(SQL(text: "CREATE TABLE t(\(names.joined(separator: ", ")))"))
            try other.succeed("import", [file, "--table", "t"])
            // A column without a type keeps what it is given: from CSV that is text.
            let expected = [row, second].map { format == "csv" ? $0.map(text) : $0 }
            #expect(try other.rows("SELECT * FROM t ORDER BY rowid") == expected)
        }
    }

    private func text(_ value: Value) -> Value {
        switch value {
        case .integer(let integer): .text("\(integer)")
        case .real(let real): .text("\(real)")
        default: value
        }
    }

    @Test func `constraints and defaults hold for the columns beyond`() throws {
        let store = try ToolStore()
        let columns = names.map { name in
            switch name {
            case "c1200": "c1200 INTEGER NOT NULL CHECK (c1200 > 0)"
            case "c1400": "c1400 TEXT DEFAULT 'd'"
            default: name
            }
        }
        try store.execute(
            SQL(text: "CREATE TABLE t(\(columns.joined(separator: ", ")))"),
            "CREATE TABLE log(c)",
            "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.c1200); END")
        let arguments = ["-", "--format", "csv", "--table", "t"]
        let header = names.filter { $0 != "c1400" }
        func record(_ value: String) -> String {
            header.map { $0 == "c1200" ? value : "x" }.joined(separator: ",") + "\n"
        }
        let start = header.joined(separator: ",") + "\n" + record("5")
        for (value, exitCode, words) in [
            ("", Int32(23), "NOT NULL"), ("-1", 23, "CHECK"), ("y", 25, "column c1200"),
        ] {
            try store.fail(
                "import", arguments, input: Data((start + record(value)).utf8),
                exitCode: exitCode, saying: words, "line 3")
        }
        #expect(try store.rows("SELECT count(*) FROM t") == [[0]])
        try store.succeed("import", arguments, input: Data((start + record("7")).utf8))
        #expect(
            try store.rows("SELECT c1200, typeof(c1200), c0, c1499, c1400 FROM t")
                == [[5, "integer", "x", "x", "d"], [7, "integer", "x", "x", "d"]])
        #expect(try store.rows("SELECT c FROM log") == [[5], [7]])
    }
}
