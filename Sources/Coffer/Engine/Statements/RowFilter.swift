#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Selects rows of a table: rows whose columns have the given values, or all rows.
///
/// ```swift
/// try connection.delete(from: "note", where: ["author": 7, "removed": nil])
/// try connection.delete(from: "note", where: .all)
/// ```
///
/// Values are bound, and compared by the column's rules; `nil` matches NULL. Every row needs
/// `.all`: a filter without columns is `.misuse` where it is used.
public struct RowFilter: Sendable, ExpressibleByDictionaryLiteral {
    /// `nil` for all rows.
    private let columns: Result<ColumnValues, StoreError>?

    /// Every row of the table.
    public static let all = RowFilter(columns: nil)

    /// The rows in which each of the columns has its value.
    ///
    /// - Parameter values: The values by column name; `nil` matches NULL. If it is empty, each use
    ///   of the filter throws `.misuse`.
    public init(_ values: [String: (any ValueConvertible)?]) {
        self.init(values.map { ($0.key, $0.value) })
    }

    /// The rows in which each of the columns has its value, as `init(_:)`.
    public init(dictionaryLiteral elements: (String, (any ValueConvertible)?)...) {
        self.init(elements)
    }

    private init(_ pairs: [(String, (any ValueConvertible)?)]) {
        self.init(
            columns: Result { () throws(StoreError) in
                guard !pairs.isEmpty else {
                    throw StoreError(
                        .misuse, "the filter names no column",
                        hint: "Use .all to mean every row.")
                }
                return try ColumnValues(pairs)
            })
    }

    private init(columns: Result<ColumnValues, StoreError>?) {
        self.columns = columns
    }

    /// The WHERE clause, with a space before it and its values as arguments; empty for all rows.
    ///
    /// - Throws: `.misuse` if the filter names no column or one twice, `.mismatch` for a value that
    ///   cannot be stored, `.sql` for an invalid name.
    func clause(table: String) throws(StoreError) -> SQL {
        guard let columns = try columns?.get() else { return "" }
        let quotedTable = try table.quotedIdentifier()
        var sql = SQL(text: " WHERE ")
        for (index, column) in columns.columns.enumerated() {
            if index > 0 { sql.append(" AND ") }
            // Qualified, because SQLite takes a quoted name that is not a column for a text.
            sql.append(SQL(text: "\(quotedTable).\(column.quotedName)"))
            sql.append(column.value == .null ? SQL(text: " IS NULL") : column.sql(" = ?", table))
        }
        return sql
    }
}

/// A column to order rows by.
///
/// ```swift
/// let rows = try connection.rows(in: "note", orderedBy: ["author", .descending("created")])
/// ```
public struct RowOrder: Sendable, Hashable, ExpressibleByStringLiteral {
    private let column: String
    private let direction: String

    /// Orders rows by a column: smallest value first, NULL before all others.
    public static func ascending(_ column: String) -> RowOrder {
        RowOrder(column: column, direction: "ASC")
    }

    /// Orders rows by a column: greatest value first, NULL after all others.
    public static func descending(_ column: String) -> RowOrder {
        RowOrder(column: column, direction: "DESC")
    }

    /// Orders rows by the column of this name, as `ascending(_:)`.
    public init(stringLiteral column: String) {
        self.init(column: column, direction: "ASC")
    }

    private init(column: String, direction: String) {
        self.column = column
        self.direction = direction
    }

    func term(table quotedTable: String) throws(StoreError) -> String {
        "\(quotedTable).\(try column.quotedIdentifier()) \(direction)"
    }
}

/// The effect of an insert or upsert.
public struct RowChange: Sendable, Hashable {
    /// The number of added or changed rows. Zero is not an error: the table's ON CONFLICT clause
    /// or a trigger asked for it.
    public let rowCount: Int
    /// The row id of the row that was added; `nil` if none was, or if the table has no row ids.
    public let insertedRowID: Int64?
}

/// Columns with their values, ordered by name, so that the same columns give the same SQL text and
/// the statement cache finds it.
struct ColumnValues: Sendable {
    struct Column: Sendable {
        let name: String
        let quotedName: String
        let value: Value
        /// Whether the value is a date that counts from 2001.
        let isDate: Bool

        /// SQL with one `?`, for the value.
        func sql(_ text: String, _ table: String) -> SQL {
            var sql = SQL(text: text, arguments: [value])
            if isDate { sql.dates = [DateArgument(0, table: table, column: name)] }
            return sql
        }
    }

    /// The number of arguments in one statement that every SQLite accepts.
    /// See <https://www.sqlite.org/limits.html>, number 9.
    static let maximumCount = 999

    let columns: [Column]

    /// Makes columns of names and values, in the order of the names' bytes; `nil` becomes NULL.
    ///
    /// - Throws: `.misuse` for a column that is named twice, `.mismatch` for a value that cannot
    ///   be stored, `.sql` for an empty name or one with NUL.
    init(_ pairs: [(String, (any ValueConvertible)?)]) throws(StoreError) {
        var columns: [Column] = []
        var seen: Set<SQLText> = []
        for (name, value) in pairs {
            guard seen.insert(SQLText(name.asciiLowercased)).inserted else {
                throw StoreError(
                    .misuse, "a column is named twice",
                    hint: "Names that differ only in case are the same.", column: name)
            }
            do throws(StoreError) {
                let date = value as? Date
                let stored: Value?
                if let date {
                    stored = try date.timeIntervalSinceReferenceDate.asValue()
                } else {
                    stored = try value?.asValue()
                }
                columns.append(
                    Column(
                        name: name, quotedName: try name.quotedIdentifier(),
                        value: stored ?? .null, isDate: date != nil))
            } catch {
                throw StoreError(error.code, error.message, column: name)
            }
        }
        columns.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        self.init(columns)
    }

    /// The values of a row to be written.
    ///
    /// - Throws: As `init(_:)`; `.misuse` if there are no values.
    init(row values: [String: (any ValueConvertible)?]) throws(StoreError) {
        guard !values.isEmpty else {
            throw StoreError(.misuse, "no value is given", hint: "Name at least one column.")
        }
        try self.init(values.map { ($0.key, $0.value) })
    }

    private init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Splits the columns into those with these names (`key`) and the others (`rest`). Names that
    /// differ only in the case of ASCII letters are the same.
    ///
    /// - Throws: `.misuse` if a name has no value or is listed twice, or if there are no names.
    func split(by names: [String]) throws(StoreError) -> (key: ColumnValues, rest: ColumnValues) {
        guard !names.isEmpty else {
            throw StoreError(.misuse, "the list of conflicting columns is empty")
        }
        func isNamed(_ column: Column) -> Bool {
            names.contains { $0.isSameIdentifier(as: column.name) }
        }
        let key = columns.filter(isNamed)
        for name in names where !key.contains(where: { $0.name.isSameIdentifier(as: name) }) {
            throw StoreError(
                .misuse, "a column that could conflict has no value", column: name)
        }
        guard key.count == names.count else {
            throw StoreError(.misuse, "a column that could conflict is named twice")
        }
        return (ColumnValues(key), ColumnValues(columns.filter { !isNamed($0) }))
    }

    var names: String { columns.map(\.quotedName).joined(separator: ", ") }
    var placeholders: String { columns.map { _ in "?" }.joined(separator: ", ") }
    var assignments: String { columns.map { "\($0.quotedName) = ?" }.joined(separator: ", ") }

    func insertion(into table: String) throws(StoreError) -> SQL {
        let quotedTable = try table.quotedIdentifier()
        return sql("INSERT INTO \(quotedTable) (\(names)) VALUES (\(placeholders))", table)
    }

    /// SQL with a `?` for each value.
    func sql(_ text: String, _ table: String) -> SQL {
        var sql = SQL(text: text, arguments: columns.map(\.value))
        for (index, column) in columns.enumerated() where column.isDate {
            sql.dates.append(DateArgument(index, table: table, column: column.name))
        }
        return sql
    }
}

extension SQL {
    /// The SQL itself, if one statement can bind its arguments.
    ///
    /// - Throws: `.tooBig` for more than 999 arguments, which not every SQLite accepts.
    func requireFewArguments() throws(StoreError) -> SQL {
        guard arguments.count <= ColumnValues.maximumCount else {
            throw StoreError(
                .tooBig, "\(arguments.count) values are more than one statement can bind",
                hint: "At most \(ColumnValues.maximumCount): write the row in parts.")
        }
        return self
    }
}
