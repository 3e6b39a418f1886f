#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An argument for a column whose declared type tells from when its dates count. Until the SQL
/// runs, the argument counts from 2001.
struct DateArgument: Sendable {
    private(set) var index: Int
    let table: String
    let column: String
    /// The values that the argument packs; `nil` for a single value.
    let list: [Value]?

    init(_ index: Int, table: String, column: String, list: [Value]? = nil) {
        (self.index, self.table, self.column, self.list) = (index, table, column, list)
    }

    func moved(by count: Int) -> DateArgument {
        var moved = self
        moved.index += count
        return moved
    }

    /// The argument as the column holds it. A missing table has no rows, so anything fits.
    ///
    /// - Throws: `.mismatch` if the column is an expression of a view, which does not tell; errors
    ///   of reading the schema.
    func value(of sql: SQL, _ connection: Connection) throws(StoreError) -> Value {
        let value = sql.arguments[index]
        guard try connection.countsFrom2001(column, of: table) == false else { return value }
        if let list { return .blob(ValueList.pack(list.map(\.countedFrom1970))) }
        return value.countedFrom1970
    }
}

/// Two columns whose dates are compared with each other.
struct DatePair: Sendable {
    let tables: (String, String)
    let columns: (String, String)

    /// - Throws: `.mismatch` unless the file says that both columns count from the same moment;
    ///   errors of reading the schema.
    func requireOneCount(on connection: Connection) throws(StoreError) {
        let first = try connection.countsFrom2001(columns.0, of: tables.0)
        let second = try connection.countsFrom2001(columns.1, of: tables.1)
        // A missing table has no rows to compare.
        guard let first, let second, first != second else { return }
        throw StoreError(
            .mismatch,
            "the dates of \(columns.0) and \(columns.1) count from different moments",
            hint: "Declare both columns alike, REAL_SINCE_2001 or not, or compare in Swift.",
            table: tables.0, column: columns.0)
    }
}

extension Connection {
    /// Whether the dates of a column count from 2001, as its declared type says; `nil` for a column
    /// of a table that is missing.
    ///
    /// - Throws: `.mismatch` if the column is an expression of a view, which does not tell; errors
    ///   of reading the schema.
    fileprivate func countsFrom2001(
        _ column: String, of table: String
    ) throws(StoreError) -> Bool? {
        guard let found = try DateColumns.of(self).table(table, self) else { return nil }
        let name = column.asciiLowercased
        if found.unknown.contains(name) {
            throw DateOrigin.unknownInView(column).with(table: table)
        }
        return found.from2001.contains(name)
    }
}

extension Statement {
    /// - Throws: `.misuse` if the statement touches a table with columns that count from 2001:
    ///   nothing tells whether a plain date is for one of them. Errors of reading the schema.
    func requirePlainDates(on connection: Connection) throws(StoreError) {
        guard try DateColumns.of(connection).isTouched(by: self, connection) else { return }
        throw StoreError(
            .misuse, "a date is bound, and columns that the statement touches count from 2001",
            hint: "Name the property whose column it is for: \\(date, for: \\Note.created). Or say "
                + "the encoding: \\(date, as: .secondsSince2001) for such a column.", sql: sql)
    }
}

extension Value {
    /// The number of a real, or of an integer that a `Double` holds exactly, which may be a date.
    var seconds: Double? {
        switch self {
        case .real(let seconds): seconds
        case .integer(let integer): Double(exactly: integer)
        default: nil
        }
    }

    /// Seconds since 1970 from seconds since 2001; any other value unchanged.
    var countedFrom1970: Value {
        guard case .real(let seconds) = self else { return self }
        return .real(Date(timeIntervalSinceReferenceDate: seconds).timeIntervalSince1970)
    }
}
