#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Another form in which a column stores its values, for tables that other programs read or made.
///
/// ```swift
/// static var encodings: [PartialKeyPath<Note>: ColumnEncoding] {
///     [\.created: .date(.iso8601), \.id: .uuidText]
/// }
/// ```
public struct ColumnEncoding: Sendable {
    let storage: Storage
    /// The type of the properties it applies to, without `Optional`.
    let type: Any.Type
    private let form: Form

    private enum Form {
        case date(DateEncoding)
        case uuidText
    }

    /// A `Date` in one of the forms that programs use in SQL. Anything that the form omits, such as
    /// the milliseconds, is lost.
    public static func date(_ encoding: DateEncoding) -> ColumnEncoding {
        ColumnEncoding(storage: encoding.storage, type: Date.self, form: .date(encoding))
    }

    /// A `UUID` as 36 characters in upper case instead of 16 bytes. Coffer also reads lower case.
    /// Keys and conditions use upper case, so they find no row that has the UUID in lower case.
    public static let uuidText = ColumnEncoding(storage: .text, type: UUID.self, form: .uuidText)

    /// Whether the stored values sort as the Swift values do.
    var isOrdered: Bool {
        if case .date(let encoding) = form { encoding.isOrdered } else { true }
    }

    /// Whether equal values are stored alike by two encodings; `nil` is the usual form.
    static func areAlike(_ left: ColumnEncoding?, _ right: ColumnEncoding?) -> Bool {
        switch (left?.form, right?.form) {
        case (nil, nil), (.uuidText, .uuidText): true
        case (.date(let encoding), .date(let other)): encoding.isSame(as: other)
        default: false
        }
    }

    /// Whether its values are texts that SQLite takes for no number. A column of affinity NUMERIC,
    /// such as GRDB's DATETIME, leaves them as they are.
    var isNeverNumber: Bool {
        switch form {
        case .date(let encoding): encoding.isNeverNumber
        case .uuidText: true
        }
    }

    /// The encoding of dates; `nil` for another type.
    var dates: DateEncoding? {
        if case .date(let encoding) = form { encoding } else { nil }
    }

    /// Whether its dates count from 2001, as those of new columns do.
    var countsFrom2001: Bool { dates?.countsFrom2001 ?? false }

    /// Converts a value from Coffer's usual form to the column's form. The usual form of a date is
    /// seconds since 2001.
    func stored(_ value: Value) throws(StoreError) -> Value {
        switch (form, value) {
        case (.date(let encoding), .real(let seconds)):
            return try encoding.encode(Date(timeIntervalSinceReferenceDate: seconds))
        case (.uuidText, .blob(let bytes)):
            return .text(try UUID(.blob(bytes)).uuidString)
        default: return value
        }
    }

    /// Converts a value from the column's form to Coffer's usual form.
    func usual(_ stored: Value) throws(StoreError) -> Value {
        switch (form, stored) {
        case (_, .null): return .null
        case (.date(let encoding), _):
            return .real(try encoding.decode(stored).timeIntervalSinceReferenceDate)
        case (.uuidText, .text(let text)):
            guard let uuid = UUID(uuidString: text) else {
                throw StoreError(.mismatch, "a text is not a UUID")
            }
            return uuid.asValue()
        case (.uuidText, _): throw .mismatch(stored, UUID.self)
        }
    }
}

extension RecordColumn {
    /// Whether a new column for it counts dates from 2001.
    var countsFrom2001IfNew: Bool { encoding?.countsFrom2001 ?? (coding == .date) }

    /// The declared type of a new column.
    var declaredType: String {
        countsFrom2001IfNew ? DateColumns.declaredType : storage.sqlType
    }
}

extension RecordPlan {
    /// The columns of the type's table that count from 2001, as the file declares them, or as the
    /// type's encodings do. For a missing table, as it would be made.
    ///
    /// - Throws: `.mismatch` if the type declares another encoding of dates for such a column, or
    ///   if a view's column does not tell.
    ///   Errors of reading the schema.
    func columnsFrom2001(_ connection: Connection) throws(StoreError) -> ColumnSet {
        let found = try DateColumns.of(connection).table(table, connection)
        guard let found else { return columnsFrom2001IfNew }
        var positions: [Int] = []
        for (position, column) in columns.enumerated() {
            let isDeclaredSo = found.from2001.contains(column.name.asciiLowercased)
            let isDate = column.kind == .date || column.type == Date.self
            if isDate, column.encoding == nil,
                found.unknown.contains(column.name.asciiLowercased)
            {
                throw DateOrigin.unknownInView(column.name).with(table: table)
            }
            guard isDeclaredSo || column.encoding?.countsFrom2001 == true else { continue }
            if column.type == Date.self, column.encoding?.countsFrom2001 == false {
                throw StoreError(
                    .mismatch,
                    "static var encodings of \(typeName) gives a date another form than the "
                        + "column, which is declared as \(DateColumns.declaredType)",
                    hint: "Leave the property out of static var encodings.", table: table,
                    column: column.name)
            }
            positions.append(position)
        }
        return ColumnSet(positions)
    }

    /// The columns that count from 2001 in a table that Coffer makes.
    var columnsFrom2001IfNew: ColumnSet {
        ColumnSet(columns.indices.filter { columns[$0].countsFrom2001IfNew })
    }
}

extension RecordPlan {
    /// Applies the encodings that the type declares to its columns.
    static func encode<R: Record>(
        _ columns: [RecordColumn], as type: R.Type
    ) throws(StoreError) -> [RecordColumn] {
        let encodings = R.encodings
        guard !encodings.isEmpty else { return columns }
        let plain = try plain(columns, of: type)
        var columns = columns
        for (path, encoding) in encodings {
            let position = try plain.position(of: path)
            guard columns[position].type == encoding.type else {
                throw StoreError(
                    .misuse,
                    "static var encodings of \(plain.typeName) gives a \(columns[position].type) "
                        + "the form of a \(encoding.type)",
                    table: plain.table, column: columns[position].name)
            }
            columns[position].encoding = encoding
            columns[position].storage = encoding.storage
        }
        return columns
    }
}
