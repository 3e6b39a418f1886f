public import Coffer
public import Foundation

/// The row of all rooms: each storage class, and some NULLs.
public struct Note: Record, Equatable {
    public var id: Int64
    public var title: String
    public var score: Double
    public var remark: String?
    public var body: Data

    /// The number of rows that an iteration reads or writes, so that the figures are those of one
    /// row.
    public static let count = 1000

    public static let thousand = (0..<count).map { Note($0) }

    public init(_ number: Int, version: Int = 1) {
        id = Int64(number)
        title = "Note \(number), version \(version)"
        score = Double(number) / 8
        remark = number.isMultiple(of: 4) ? nil : "remark \(number)"
        body = Data(repeating: UInt8(truncatingIfNeeded: number), count: 64)
    }

    /// A row of `SELECT *`.
    public init(_ row: Row) throws {
        id = try row.get("id")
        title = try row.get("title")
        score = try row.get("score")
        remark = try row.get("remark")
        body = try row.get("body")
    }

    /// Its values in the order of the columns.
    public var values: [Value] {
        [
            .integer(id), .text(title), .real(score), remark.map { .text($0) } ?? .null,
            .blob(body),
        ]
    }
}
