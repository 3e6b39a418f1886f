#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Another form in which a column keeps its values, for tables that other programs read or made.
///
/// ```swift
/// static var encodings: [PartialKeyPath<Note>: ColumnEncoding] {
///     [\.created: .date(.iso8601), \.id: .uuidText]
/// }
/// ```
public struct ColumnEncoding: Sendable {
    let storage: Storage
    /// The properties that it is for, without `Optional`.
    let type: Any.Type
    private let form: Form

    private enum Form {
        case date(DateEncoding)
        case uuidText
    }

    /// A `Date` in one of SQL's many forms. What the form leaves out, such as the milliseconds, is
    /// lost.
    public static func date(_ encoding: DateEncoding) -> ColumnEncoding {
        ColumnEncoding(storage: encoding.storage, type: Date.self, form: .date(encoding))
    }

    /// A `UUID` as 36 characters of upper case instead of 16 bytes. Lower case is read as well, but
    /// keys and conditions are of upper case, and find no row that has it in lower case.
    public static let uuidText = ColumnEncoding(storage: .text, type: UUID.self, form: .uuidText)

    /// Whether the stored values order as those they stand for.
    var isOrdered: Bool {
        if case .date(let encoding) = form { encoding.isOrdered } else { true }
    }

    /// The column's form of a value in Coffer's usual form.
    func stored(_ value: Value) throws(StoreError) -> Value {
        switch (form, value) {
        case (.date(let encoding), .real(let seconds)):
            return try encoding.encode(Date(timeIntervalSince1970: seconds))
        case (.uuidText, .blob(let bytes)):
            return .text(try UUID(.blob(bytes)).uuidString)
        default: return value
        }
    }

    /// Coffer's usual form of a value in the column's form.
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
    /// The column's form of a value in Coffer's usual form.
    func stored(_ value: Value) throws(StoreError) -> Value {
        try encoding?.stored(value) ?? value
    }
}

extension RecordPlan {
    /// Gives columns the forms that the type declares.
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
