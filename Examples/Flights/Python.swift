import Foundation

/// The same questions for another program: Python's csv and sqlite3, which share no code with
/// Coffer.
enum Python {
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
        answers = [[v for row in db.execute(sql) for v in row] for sql in sys.argv[2:]]
        json.dump(answers, sys.stdout)
        """

    static func answers(to questions: [String]) throws -> [[Answer]] {
        let python = Process()
        python.executableURL = URL(filePath: "/usr/bin/env")
        python.arguments = ["python3", "-c", script, DataFiles.flights.path] + questions
        let output = Pipe()
        python.standardOutput = output
        try python.run()
        let json = output.fileHandleForReading.readDataToEndOfFile()
        python.waitUntilExit()
        return try JSONDecoder().decode([[Answer]].self, from: json)
    }
}

extension Answer: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .nothing
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }
}
