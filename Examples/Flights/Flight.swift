import Coffer
import Foundation

/// One flight that left New York in 2013. Values that the data does not have are nil.
struct Flight: Record, Equatable {
    static var access: RecordAccess { .storedProperties }
    static var indexes: [Index<Self>] { [Index(\.carrier), Index(\.origin)] }

    var id: Int
    var year: Int
    var month: Int
    var day: Int
    /// Hours and minutes, as 517 for 5:17.
    var departure: Int?
    var scheduledDeparture: Int
    /// Minutes; negative for a flight that left early.
    var departureDelay: Int?
    var arrival: Int?
    var scheduledArrival: Int
    var arrivalDelay: Int?
    var carrier: String
    var flight: Int
    var tailNumber: String?
    var origin: String
    var destination: String
    /// Minutes.
    var airTime: Int?
    /// Miles.
    var distance: Int
    var hour: Int
    var minute: Int
    var scheduled: Date
}

struct WrongRow: Error {
    let line: Int
}

extension Flight {
    /// The rows of the file that `make data` fetches. It has no quotes.
    static func load() throws -> [Flight] {
        let lines = try String(contentsOf: DataFiles.flights, encoding: .utf8).utf8
            .split(separator: UInt8(ascii: "\n"))
        return try lines.dropFirst().enumerated().map { index, line in
            guard let flight = Flight(id: index + 1, line: line) else {
                throw WrongRow(line: index + 2)
            }
            return flight
        }
    }

    /// - Returns: `nil` for a line that is not a flight.
    private init?(id: Int, line: Substring.UTF8View) {
        let cells = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard cells.count == 19 else { return nil }
        func known(_ index: Int) -> Int? { cells[index] == "NA" ? nil : Int(cells[index]) }
        guard let year = Int(cells[0]), let month = Int(cells[1]), let day = Int(cells[2]),
            let scheduledDeparture = Int(cells[4]), let scheduledArrival = Int(cells[7]),
            let flight = Int(cells[10]), let distance = Int(cells[15]), let hour = Int(cells[16]),
            let minute = Int(cells[17]),
            let scheduled = try? Date(String(cells[18]), strategy: .iso8601)
        else { return nil }
        self.init(
            id: id, year: year, month: month, day: day, departure: known(3),
            scheduledDeparture: scheduledDeparture, departureDelay: known(5), arrival: known(6),
            scheduledArrival: scheduledArrival, arrivalDelay: known(8), carrier: String(cells[9]),
            flight: flight, tailNumber: cells[11] == "NA" ? nil : String(cells[11]),
            origin: String(cells[12]), destination: String(cells[13]), airTime: known(14),
            distance: distance, hour: hour, minute: minute, scheduled: scheduled)
    }
}

enum DataFiles {
    /// `make data` puts it there.
    static let flights = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build-data").appending(path: "flights.csv")
}
