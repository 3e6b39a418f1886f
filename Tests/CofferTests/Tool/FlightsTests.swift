import Coffer
import Foundation
import Testing

/// A real file, imported completely and compared with what another program computes from it.
@Suite(.againstHanging, .onOwnThreads) struct FlightsTests {
    /// `Scripts/flights` puts it there.
    private static let file = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build-data/flights.csv").path

    private static let queries = [
        "SELECT count(*), sum(distance), avg(dep_delay), max(time_hour), min(time_hour) "
            + "FROM flight",
        "SELECT carrier, count(*), avg(arr_delay) FROM flight GROUP BY carrier ORDER BY carrier",
        "SELECT origin, dest, count(*), sum(air_time) FROM flight GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT month, day, count(dep_time), sum(flight), count(DISTINCT tailnum) FROM flight "
            + "GROUP BY 1, 2 ORDER BY 1, 2",
    ]

    /// Reads the file with Python's own csv and sqlite3, and prints the answers as JSON.
    private static let script = """
        import csv, json, sqlite3, sys
        db = sqlite3.connect(":memory:")
        with open(sys.argv[1], newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            names = next(rows)
            text = {"carrier", "tailnum", "origin", "dest", "time_hour"}
            columns = ",".join(n + (" TEXT" if n in text else " INTEGER") for n in names)
            db.execute(f"CREATE TABLE flight({columns})")
            places = ",".join("?" for _ in names)
            db.executemany(f"INSERT INTO flight VALUES ({places})",
                ([None if v == "NA" else v for v in row] for row in rows))
        for query in sys.argv[2:]:
            for row in db.execute(query):
                print(json.dumps({f"c{i}": v for i, v in enumerate(row)}, separators=(",", ":")))
        """

    @Test func `336 776 flights are the same to coffer and to Python's sqlite3`() throws {
        try #require(
            FileManager.default.fileExists(atPath: Self.file), "Scripts/flights fetches it")
        let store = try ToolStore()
        let report = try store.succeed(
            "import", [Self.file, "--table", "flight", "--null", "NA", "--json"])
        #expect(report.text.contains("\"rowCount\":336776"))
        let names = try store.rows("PRAGMA table_info(flight)").map { row in
            if case .text(let name) = row[1] { name } else { "" }
        }
        #expect(names.count == 19)
        // Nulls, storage classes and the sizes of all texts, for each column.
        let facts = names.flatMap {
            ["sum(\($0) IS NULL)", "count(DISTINCT typeof(\($0)))", "sum(length(\($0)))"]
        }
        let queries = Self.queries + ["SELECT \(facts.joined(separator: ",")) FROM flight"]
        let expected = try Tool.runProgram(
            ["python3", "-c", Self.script, Self.file] + queries)
        try #require(expected.exitCode == 0, "\(expected.errorText)")
        var found: [[Value]] = []
        for query in queries { found += try store.rows(SQL(text: query)) }
        // Python's answers, read by the import that other tests prove.
        let width = found.map(\.count).max() ?? 0
        let columns = (0..<width).map { "c\($0)" }
        let answers = try ToolStore()
        try answers.execute(SQL(text: "CREATE TABLE a(\(columns.joined(separator: ",")))"))
        try answers.succeed(
            "import", ["-", "--format", "jsonl", "--table", "a"], input: expected.stdout)
        let rows = try answers.rows("SELECT * FROM a ORDER BY rowid")
        #expect(rows.count == found.count)
        for (row, answer) in zip(found, rows) {
            #expect(row == Array(answer.prefix(row.count)))
        }
    }
}
