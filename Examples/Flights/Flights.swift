import Coffer
import Foundation
import Report

/// Every flight that left New York in 2013, as records: imported, and queried by key path. Python's
/// sqlite3 gets the same questions, and must give the same answers.
///
/// Run it with `make demo`, after `make data`. It makes its store again each time.
@main
struct Flights {
    static func main() async throws {
        var report = Report()
        let folder = URL.temporaryDirectory.appending(path: "coffer-flights")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let key = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        let path = folder.appending(path: "flights.db").path
        let store = try await Store(path: path, key: .raw(Data(key)))

        let flights = try Flight.load()
        report.lap("read \(flights.count) rows of CSV")
        try await store.write { tx in try tx.insert(flights) }
        report.lap("import them as records")
        let read = try await store.read { tx in try tx.fetch(Flight.order(by: \.id)) }
        report.lap("fetch them all")
        report.check("what was read is what was written", read == flights)

        let answers = try await store.read { tx in
            var answers: [[Answer]] = []
            for question in questions { answers.append(try question.swift(&tx)) }
            return answers
        }
        report.lap("answer \(questions.count) questions by key path")
        let expected = try Python.answers(to: questions.map(\.sql))
        report.lap("Python reads the CSV and answers them")
        for (question, (found, wanted)) in zip(questions, zip(answers, expected)) {
            report.check(question.text, found == wanted)
            if found != wanted { print("    Coffer: \(found)\n    Python: \(wanted)") }
        }
        try await store.close()
        try? FileManager.default.removeItem(at: folder)
        report.end()
    }
}
