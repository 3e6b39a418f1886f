import Coffer
import Foundation
import SwiftCSV

struct Airport: Record {
    static let key = ["faa"]
    var faa: String
    var name: String
    var lat: Double
    var lon: Double
    var alt: Int
    var tz: Int
    var dst: String
    var tzone: String?
}

struct Plane: Record {
    static let key = ["tailnum"]
    var tailnum: String
    var year: Int?
    var type: String
    var manufacturer: String
    var model: String
    var engines: Int
    var seats: Int
    var speed: Int?
    var engine: String
}

struct Attachment: Record {
    static let key = ["name"]
    var name: String
    var content: Data
}

struct Settings: Codable {
    var home: String
    var units: String
}

extension Airport {
    static func load() throws -> [Airport] {
        try DataFiles.rows("airports.csv").map { row in
            Airport(
                faa: row.text("faa"), name: row.text("name"), lat: try row.number("lat"),
                lon: try row.number("lon"), alt: try row.number("alt"), tz: try row.number("tz"),
                dst: row.text("dst"), tzone: row.optionalText("tzone"))
        }
    }
}

extension Plane {
    static func load() throws -> [Plane] {
        try DataFiles.rows("planes.csv").map { row in
            Plane(
                tailnum: row.text("tailnum"), year: row.optionalNumber("year"),
                type: row.text("type"), manufacturer: row.text("manufacturer"),
                model: row.text("model"), engines: try row.number("engines"),
                seats: try row.number("seats"), speed: row.optionalNumber("speed"),
                engine: row.text("engine"))
        }
    }
}

/// The CSV files of `Examples/Data`, found relative to this source.
enum DataFiles {
    static func url(_ name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Data").appending(path: name)
    }

    static func rows(_ name: String) throws -> [[String: String]] {
        try NamedCSV(url: url(name), delimiter: .comma, loadColumns: false).rows
    }
}

struct MissingNumber: Error { let column: String }

extension [String: String] {
    /// `NA` is how the data set writes an unknown value.
    func optionalText(_ column: String) -> String? { self[column] == "NA" ? nil : self[column] }

    func text(_ column: String) -> String { self[column] ?? "" }

    func optionalNumber<N: LosslessStringConvertible>(_ column: String) -> N? {
        self[column].flatMap { N($0) }
    }

    func number<N: LosslessStringConvertible>(_ column: String) throws -> N {
        guard let number: N = optionalNumber(column) else { throw MissingNumber(column: column) }
        return number
    }
}
