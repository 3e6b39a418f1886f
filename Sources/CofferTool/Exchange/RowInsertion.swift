import Coffer
import Foundation

/// A statement that inserts records into some columns of a table.
///
/// An engine takes a limited number of arguments, SQLCipher 3.4.1 only 999. For the fields beyond
/// that the statement calls a function: a value must never be part of SQL text, and an INSERT of
/// some columns with an UPDATE of the rest would break NOT NULL and fire triggers twice.
struct RowInsertion {
    let statement: Statement
    let columns: [ImportTable.Column]
    private let argumentCount: Int
    private let fields: FieldsBeyondArguments

    /// - Parameter fields: Shared by all insertions of an import.
    init(
        into table: ImportTable, _ columns: [ImportTable.Column], _ fields: FieldsBeyondArguments,
        in connection: Connection
    ) throws {
        let argumentCount = min(columns.count, try connection.limit(.parameterNumber))
        (self.columns, self.argumentCount, self.fields) = (columns, argumentCount, fields)
        if columns.count > argumentCount { try fields.register(on: connection) }
        var sql: SQL = "INSERT INTO \(identifier: table.name)"
        if columns.isEmpty {
            sql.append(SQL(text: " DEFAULT VALUES"))
        } else {
            for (index, column) in columns.enumerated() {
                sql.append(SQL(text: index == 0 ? "(" : ", "))
                sql.append("\(identifier: column.name)")
            }
            let values = columns.indices.map { index in
                index < argumentCount ? "?" : "\(FieldsBeyondArguments.function)(\(index))"
            }
            sql.append(SQL(text: ") VALUES (\(values.joined(separator: ", ")))"))
        }
        statement = try connection.prepare(sql.text)
    }

    /// Sets the value of a column for the next run of the statement.
    ///
    /// - Parameter value: Its bytes must stay as they are until the run has ended.
    func bind(_ value: BorrowedValue, at index: Int) throws {
        if index < argumentCount {
            try statement.bind(borrowing: value, at: index)
        } else {
            fields.values[index] = Value(copying: value)
        }
    }
}

/// The fields of a record that are not arguments, by their positions.
final class FieldsBeyondArguments {
    static let function = "coffer_imported_field"
    fileprivate var values: [Int: Value] = [:]
    private var isRegistered = false

    fileprivate func register(on connection: Connection) throws {
        guard !isRegistered else { return }
        try connection.register(function: Self.function, argumentCount: 1) { [self] in
            let index: Int = try $0.get(0)
            return values[index] ?? .null
        }
        isRegistered = true
    }
}

extension Value {
    init(copying value: BorrowedValue) {
        self =
            switch value {
            case .null: .null
            case .integer(let integer): .integer(integer)
            case .real(let real): .real(real)
            case .text(let bytes): .text(String(decoding: bytes, as: UTF8.self))
            case .blob(let bytes): .blob(Data(bytes))
            }
    }
}
