import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a column of a result tells about the dates in it.
enum DateOrigin: Sendable {
    case since1970
    case since2001
    /// An expression, of a statement that touches columns that count from 2001.
    case unknown

    /// The date that a number stands for.
    ///
    /// - Parameter column: The name in the result, for the error.
    /// - Throws: `.mismatch` if the number does not say from when it counts.
    func date(_ seconds: Double, column: String) throws(StoreError) -> Date {
        switch self {
        case .since1970: return Date(timeIntervalSince1970: seconds)
        case .since2001: return Date(timeIntervalSinceReferenceDate: seconds)
        case .unknown:
            throw StoreError(
                .mismatch,
                "the result's column is an expression, which does not tell from when dates count",
                hint: "Say it: row.date(\"\(column)\", as: .secondsSince2001), or .unixSeconds. "
                    + "tx.dateEncoding(of:) returns the encoding of a property's column.",
                column: column)
        }
    }

    /// The error for a date in a column of a view that is an expression.
    static func unknownInView(_ column: String) -> StoreError {
        StoreError(
            .mismatch,
            "the view's column is an expression, which does not tell from when its dates count",
            hint: "Say it in static var encodings: .date(.secondsSince2001), or .unixSeconds.",
            column: column)
    }
}

extension Statement {
    /// Whether a column of the result is a table's column that counts from 2001.
    func countsFrom2001(_ index: Int) -> Bool {
        guard let raw, let type = sqlite3_column_decltype(raw, Int32(index)) else { return false }
        return sqlite3_stricmp(type, DateColumns.declaredType) == 0
    }

    /// What each column of the result tells about its dates.
    ///
    /// - Throws: Errors of reading the schema.
    func dateOrigins(count: Int) throws(StoreError) -> [DateOrigin] {
        let raw = try pointer()
        var origins: [DateOrigin] = []
        var isDeclared = true
        for index in 0..<count {
            let hasType = sqlite3_column_decltype(raw, Int32(index)) != nil
            isDeclared = isDeclared && hasType
            origins.append(
                hasType ? countsFrom2001(index) ? .since2001 : .since1970 : .unknown)
        }
        guard let connection else { return origins.map { $0 == .unknown ? .since1970 : $0 } }
        let columns = try DateColumns.of(connection)
        let isCompound = try columns.isCompound(self, connection)
        if isDeclared, !isCompound { return origins }
        guard try columns.isTouched(by: self, connection) else {
            return Array(repeating: .since1970, count: count)
        }
        return isCompound ? Array(repeating: .unknown, count: count) : origins
    }
}

extension Connection {
    /// Refuses CREATE TABLE … AS SELECT of columns that count from 2001: SQLite would declare the
    /// new ones as REAL, "determined by the expression affinity of the corresponding expression"
    /// (<https://www.sqlite.org/lang_createtable.html>), and they would be read 31 years off.
    ///
    /// - Throws: `.misuse` for such a statement; errors of reading the schema.
    func requireKeptDates(_ statement: Statement) throws(StoreError) {
        let text = statement.sql
        let copying =
            /(?is)^\s*create\s+(?:temp\s+|temporary\s+)?table\b.*?\bas\b[\s(]*\b(select|with)\b/
        guard let match = text.firstMatch(of: copying) else { return }
        // What the engine refuses to compile alone, it will refuse as a part too.
        let select = try? compile(String(text[match.1.startIndex...]), persistent: false)
        guard let select else { return }
        defer { select.finalize() }
        let names = select.columnNames
        guard let index = names.indices.first(where: { select.countsFrom2001($0) }) else { return }
        throw StoreError(
            .misuse,
            "CREATE TABLE … AS would declare a column of dates as REAL, and it counts from 2001",
            hint: "Create the table with \(DateColumns.declaredType) for this column, then INSERT "
                + "INTO … SELECT.", sql: text, column: names[index])
    }
}
