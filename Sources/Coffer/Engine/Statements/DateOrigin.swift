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
        let text = statement.compiledText.withoutComments
        let creating = /(?i)^\s*create\s+(?:temp\s+|temporary\s+)?table\b/
        guard text.firstMatch(of: creating) != nil, let select = copied(by: text) else { return }
        defer { select.finalize() }
        let dates = try DateColumns.of(self)
        let names = select.columnNames
        let origins = try select.dateOrigins(count: names.count)
        let column = names.indices.first { select.countsFrom2001($0) }
        // A value made of a date, or one of several SELECTs, tells no type.
        var isMadeOfDates = false
        if column == nil, origins.contains(.unknown) {
            isMadeOfDates = try dates.isCompound(select, self)
            if !isMadeOfDates { isMadeOfDates = try dates.isNamed(by: select, self) }
        }
        guard column != nil || isMadeOfDates else { return }
        throw StoreError(
            .misuse,
            "CREATE TABLE … AS would not declare that a column of dates counts from 2001",
            hint: "Create the table with \(DateColumns.declaredType) for this column, then INSERT "
                + "INTO … SELECT.", sql: statement.sql, column: column.map { names[$0] })
    }

    /// The SELECT of a CREATE TABLE … AS SELECT, compiled. `nil` if there is none, or if the engine
    /// refuses it alone, as it then will as a part.
    private func copied(by text: String) -> Statement? {
        for match in text.matches(of: /(?i)\bas\b[\s(]*\b(select|with)\b/) {
            let select = try? compile(String(text[match.1.startIndex...]), persistent: false)
            if let select { return select }
        }
        return nil
    }
}

extension Statement {
    /// The text that the engine compiled; `sql` is empty for a statement of a script.
    var compiledText: String {
        guard sql.isEmpty, let raw, let text = sqlite3_sql(raw) else { return sql }
        return String(cString: text)
    }
}

extension String {
    /// The text with a space in place of each comment. Quoted words keep what looks like one. See
    /// <https://www.sqlite.org/lang_comment.html>.
    fileprivate var withoutComments: String {
        let bytes = Array(utf8)
        var kept: [UInt8] = []
        var index = 0
        /// The position after the next of these bytes, or the end.
        func end(of closing: [UInt8], from start: Int) -> Int {
            var index = start
            while index < bytes.count {
                if bytes[index...].starts(with: closing) { return index + closing.count }
                index += 1
            }
            return bytes.count
        }
        while index < bytes.count {
            let byte = bytes[index]
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            var after = index + 1
            switch (byte, next) {
            case (UInt8(ascii: "-"), UInt8(ascii: "-")):
                after = end(of: [10], from: index)
                kept.append(32)
            case (UInt8(ascii: "/"), UInt8(ascii: "*")):
                after = end(of: Array("*/".utf8), from: index + 2)
                kept.append(32)
            case (UInt8(ascii: "'"), _), (UInt8(ascii: "\""), _), (UInt8(ascii: "`"), _):
                after = end(of: [byte], from: index + 1)
                kept += bytes[index..<after]
            case (UInt8(ascii: "["), _):
                after = end(of: [UInt8(ascii: "]")], from: index + 1)
                kept += bytes[index..<after]
            default: kept.append(byte)
            }
            index = after
        }
        return String(decoding: kept, as: UTF8.self)
    }
}
