#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The names of a result's columns, shared by its rows.
final class ColumnNames: Sendable {
    let names: [String]
    /// Whether all names in the file are UTF-8; a repaired name could be mistaken for another.
    let isExact: Bool

    /// What each column tells about its dates; `nil` while no row had a real number.
    let dates: [DateOrigin]?

    init(_ names: [String], isExact: Bool = true, dates: [DateOrigin]? = nil) {
        self.names = names
        self.isExact = isExact
        self.dates = dates
    }

    /// The Swift value of an SQL value in a column. A date counts as the column says.
    ///
    /// - Throws: `.mismatch` if it does not fit the type.
    @inline(__always)
    func made<T: ValueConvertible>(
        _ value: Value, at index: Int, as type: T.Type
    ) throws(StoreError) -> T {
        guard let dates, T.self == Date.self || T.self == Date?.self,
            let seconds = value.seconds
        else { return try T(value) }
        let date = try dates[index].date(seconds, column: names[index])
        // Equal types have the same bits.
        return T.self == Date.self
            ? unsafeBitCast(date, to: type) : unsafeBitCast(Optional(date), to: type)
    }

    /// Position of a name, counted from 0: an exact match, else one that differs only in the case
    /// of ASCII letters, as SQL compares names. The first of several matches counts. `nil` if no
    /// name matches.
    func index(of name: String) -> Int? {
        // Texts that differ in Unicode normalisation only are equal to Swift, not to SQLite.
        let exact = SQLText(name)
        return names.firstIndex { SQLText($0) == exact }
            ?? names.firstIndex { $0.isSameName(as: name) }
    }
}

extension String {
    fileprivate func isSameName(as other: String) -> Bool {
        utf8.elementsEqual(other.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    fileprivate var asciiLowercased: UInt8 { 0x41...0x5a ~= self ? self + 0x20 : self }
}

/// One row of a result, with its own copy of the values.
public struct Row: Sendable {
    /// The values, in the order of the columns.
    public let values: [Value]
    let columns: ColumnNames

    init(columns: ColumnNames, values: [Value]) {
        self.columns = columns
        self.values = values
    }

    /// The names of the columns, as the SQL gives them.
    public var columnNames: [String] { columns.names }

    /// The value in a column by position, counted from 0; `nil` if there is no such column.
    public subscript(index: Int) -> Value? {
        // No `?:` here: of `Value` and `nil` it would make a `Value`, and its `nil` is NULL.
        guard values.indices.contains(index) else { return Optional.none }
        return values[index]
    }

    /// The value in a column by name; `nil` if there is no such column.
    ///
    /// An exact match comes before one in another ASCII case; the first of several counts.
    ///
    /// - Complexity: O(*columns*).
    public subscript(name: String) -> Value? { columns.index(of: name).map { values[$0] } }

    /// Position of a column by name, counted from 0, as the subscript finds it; `nil` if there is
    /// no such column.
    public func columnIndex(of name: String) -> Int? { columns.index(of: name) }

    /// Names and values, in the order of the columns; duplicate names are kept.
    public var pairs: [(name: String, value: Value)] {
        Array(zip(columns.names, values)).map { (name: $0, value: $1) }
    }

    /// The values by name. The first of several equal names counts; `pairs` has them all.
    public var dictionary: [String: Value] {
        Dictionary(zip(columns.names, values)) { first, _ in first }
    }

    /// The value in a column by position, counted from 0, as a Swift type.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column, `.mismatch` if the stored
    ///   value does not fit the type.
    public func get<T: ValueConvertible>(
        _ index: Int, as type: T.Type = T.self
    ) throws -> T {
        guard values.indices.contains(index) else {
            throw StoreError(.notFound, "the row has no column \(index)")
        }
        return try columns.made(values[index], at: index, as: type)
    }

    /// The value in a column by name, as a Swift type.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column, `.mismatch` if the stored
    ///   value does not fit the type.
    public func get<T: ValueConvertible>(
        _ name: String, as type: T.Type = T.self
    ) throws -> T {
        try read(name, as: type)
    }

    func read<T: ValueConvertible>(
        _ name: String, as type: T.Type = T.self
    ) throws(StoreError) -> T {
        guard let index = columns.index(of: name) else {
            throw StoreError(.notFound, "the row has no column named \(name)", column: name)
        }
        do throws(StoreError) {
            return try columns.made(values[index], at: index, as: type)
        } catch {
            throw StoreError(error.code, error.message, hint: error.hint, column: name)
        }
    }
}

/// The names and values in one line, for a person to read.
extension Row: CustomStringConvertible {
    /// Such as `[id: 1, title: "Milk", body: 12 bytes, author: NULL]`. The bytes of blobs are left
    /// out.
    public var description: String {
        let parts = pairs.map { pair in
            let value =
                switch pair.value {
                case .null: "NULL"
                case .integer(let integer): "\(integer)"
                case .real(let real): "\(real)"
                case .text(let text): text.debugDescription
                case .blob(let data): "\(data.count) bytes"
                }
            return "\(pair.name): \(value)"
        }
        return "[\(parts.joined(separator: ", "))]"
    }
}

/// Two rows are equal if their columns have the same names and values, in the same order.
extension Row: Equatable {
    /// Whether both rows have the same values and column names, in the same order. Compares names
    /// by their bytes, as SQLite does.
    public static func == (left: Row, right: Row) -> Bool {
        left.values == right.values
            && left.columns.names.elementsEqual(right.columns.names) { SQLText($0) == SQLText($1) }
    }
}
