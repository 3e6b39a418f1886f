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

    /// Converts a value from Coffer's usual form to the column's form.
    func stored(_ value: Value) throws(StoreError) -> Value {
        switch (form, value) {
        case (.date(let encoding), .real(let seconds)):
            return try encoding.encode(Date(timeIntervalSince1970: seconds))
        case (.uuidText, .blob(let bytes)):
            return .text(try UUID(.blob(bytes)).uuidString)
        default: return value
        }
    }

    /// Converts a value from the column's form to Coffer's usual form.
    func usual(_ stored: Value) throws(StoreError) -> Value {
        switch (form, stored) {
        case (_, .null): return .null
        case (.date(let encoding), _): return try encoding.decode(stored).asValue()
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
    /// Converts a value from Coffer's usual form to the column's form.
    func stored(_ value: Value) throws(StoreError) -> Value {
        try encoding?.stored(value) ?? value
    }
}

extension RecordPlan {
    /// Applies the encodings that the type declares to its columns.
    static func encode<R: Record>(
        _ columns: [RecordColumn], as type: R.Type
    ) throws(StoreError) -> [RecordColumn] {
        let encodings = R.encodings
        guard !encodings.isEmpty else { return columns }
        let plain = try RecordPlan(
            typeName: String(describing: type), table: R.table, columns: columns, key: R.key,
            isWithoutRowID: R.isWithoutRowID
        ) { plan throws(StoreError) in try TableDeclaration(type, plan) }
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
