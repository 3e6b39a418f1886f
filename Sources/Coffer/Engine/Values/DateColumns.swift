import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The columns of a file whose declared type says that their dates count from 2001.
///
/// A `Date` of Swift counts from 2001. Adding the seconds since 1970 rounds two of three dates. So
/// new columns hold the count from 2001, and every date comes back to the bit. Only the declared
/// type tells the two counts apart: the numbers alone would be read 31 years off.
///
/// Found once for each schema of a connection.
final class DateColumns {
    /// The declared type of a column that counts from 2001. SQLite gives it the affinity REAL; see
    /// section 3.1 of <https://www.sqlite.org/datatype3.html>.
    static let declaredType = "REAL_SINCE_2001"

    /// The names in lower case, by the table's name in lower case; `nil` for a table that is
    /// missing.
    private var tables: [String: Set<String>?] = [:]
    private var isAnywhere: Bool?

    static func of(_ connection: Connection) throws(StoreError) -> DateColumns {
        let id = ObjectIdentifier(DateColumns.self)
        if let known = try connection.attachment(id) as? DateColumns { return known }
        let made = DateColumns()
        connection.attach(made, as: id)
        return made
    }

    /// The columns of a table or view that count from 2001, in lower case; `nil` if SQL finds
    /// nothing under this name.
    ///
    /// - Throws: Errors of reading the schema, such as `.damaged`.
    func columns(
        of table: String, _ connection: Connection
    ) throws(StoreError) -> Set<String>? {
        if let known = tables[table.asciiLowercased] { return known }
        let found = try connection.unobserved { () throws(StoreError) in
            try find(table, connection)
        }
        tables[table.asciiLowercased] = .some(found)
        return found
    }

    private func find(
        _ table: String, _ connection: Connection
    ) throws(StoreError) -> Set<String>? {
        // Also tells the columns of a view, and has no row for a table that is missing.
        let rows = try connection.rows("PRAGMA table_info(\(identifier: table))", isReadOnly: true)
        guard !rows.isEmpty else { return nil }
        var columns: Set<String> = []
        for row in rows where row["type"]?.isDeclaredType == true {
            columns.insert(try row.read("name", as: String.self).asciiLowercased)
        }
        return columns
    }

    /// Whether a column of the file, of an attached file or of a temporary table counts from 2001.
    ///
    /// - Throws: Errors of reading the schema, such as `.damaged`.
    /// - Complexity: O(*objects of the schema*) the first time, then O(1).
    func isAnywhere(_ connection: Connection) throws(StoreError) -> Bool {
        if let isAnywhere { return isAnywhere }
        let found = try connection.unobserved { () throws(StoreError) in
            let handle = try connection.current()
            // Reading the list of temporary tables would open their database.
            let hasTemporary = sqlite3_db_readonly(handle.db, "temp") >= 0
            let schemas = ["main"] + (hasTemporary ? ["temp"] : []) + handle.attached.map(\.name)
            for schema in schemas {
                let list = schema == "temp" ? "sqlite_temp_master" : "sqlite_master"
                let row = try connection.firstRow(
                    """
                    SELECT 1 FROM \(identifier: schema).\(identifier: list)
                    WHERE sql LIKE \("%\(Self.declaredType)%")
                    """, isReadOnly: true)
                if row != nil { return true }
            }
            return false
        }
        isAnywhere = found
        return found
    }
}

extension Connection {
    /// Runs queries that an observer of the transaction must not see.
    fileprivate func unobserved<T>(
        _ body: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let handle = try current()
        let observer = handle.touchObserver
        handle.touchObserver = nil
        defer { handle.touchObserver = observer }
        return try body()
    }
}

extension DateColumns {
    /// - Throws: `.misuse` if a column of the file counts from 2001: nothing tells whether a plain
    ///   date is for it. Errors of reading the schema.
    static func requireCountFrom1970(
        _ connection: Connection, sql: String
    ) throws(StoreError) {
        guard try of(connection).isAnywhere(connection) else { return }
        throw StoreError(
            .misuse, "a date is bound, and columns of this file count from 1970 or from 2001",
            hint: "Name the property whose column it is for: \\(date, for: \\Note.created). Or say "
                + "the encoding: \\(date, as: .unixSeconds).", sql: sql)
    }
}

/// An argument for a column whose declared type tells from when its dates count. Until the SQL
/// runs, the argument counts from 2001.
struct DateArgument: Sendable {
    fileprivate(set) var index: Int
    let table: String
    let column: String
    /// The values that the argument packs; `nil` for a single value.
    var list: [Value]?

    init(_ index: Int, table: String, column: String, list: [Value]? = nil) {
        (self.index, self.table, self.column, self.list) = (index, table, column, list)
    }

    func moved(by count: Int) -> DateArgument {
        var moved = self
        moved.index += count
        return moved
    }

    /// The argument as the column holds it. A missing table has no rows, so anything fits.
    func value(of sql: SQL, _ connection: Connection) throws(StoreError) -> Value {
        let columns = try DateColumns.of(connection).columns(of: table, connection)
        let value = sql.arguments[index]
        if columns?.contains(column.asciiLowercased) != false { return value }
        if let list { return .blob(ValueList.pack(list.map(\.countedFrom1970))) }
        return value.countedFrom1970
    }
}

/// What a column of a result tells about the dates in it.
enum DateOrigin: Sendable {
    case since1970
    case since2001
    /// An expression, in a file with columns that count from 2001.
    case unknown
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
        var isMixed: Bool?
        var origins: [DateOrigin] = []
        for index in 0..<count {
            guard sqlite3_column_decltype(raw, Int32(index)) == nil else {
                origins.append(countsFrom2001(index) ? .since2001 : .since1970)
                continue
            }
            if isMixed == nil, let connection {
                isMixed = try DateColumns.of(connection).isAnywhere(connection)
            }
            origins.append(isMixed == true ? .unknown : .since1970)
        }
        return origins
    }
}

extension DateOrigin {
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
}

extension Value {
    /// Whether it is the declared type of a column that counts from 2001.
    fileprivate var isDeclaredType: Bool {
        guard case .text(let type) = self else { return false }
        return type.asciiLowercased == DateColumns.declaredType.asciiLowercased
    }

    /// The number of a real, which may be a date.
    var seconds: Double? {
        if case .real(let seconds) = self { seconds } else { nil }
    }

    /// Seconds since 1970 from seconds since 2001; any other value unchanged.
    var countedFrom1970: Value {
        guard let seconds else { return self }
        return .real(Date(timeIntervalSinceReferenceDate: seconds).timeIntervalSince1970)
    }
}
