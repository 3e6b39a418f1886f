/// The names of a result's columns, shared by its rows.
final class ColumnNames: Sendable {
    let names: [String]
    /// Position by name; of equal names the first one counts.
    let positions: [String: Int]
    /// Whether all names are UTF-8 in the file; a repaired one could be taken for another.
    let isExact: Bool

    init(_ names: [String], isExact: Bool = true) {
        self.names = names
        self.isExact = isExact
        positions = Dictionary(
            names.enumerated().map { ($0.element, $0.offset) },
            uniquingKeysWith: { first, _ in first })
    }
}

/// One row of a result, with its own copy of the values.
public struct Row: Sendable {
    /// The values, in the order of the columns.
    public let values: [Value]
    private let columns: ColumnNames

    init(columns: ColumnNames, values: [Value]) {
        self.columns = columns
        self.values = values
    }

    /// The names of the columns, as the SQL gives them.
    public var columnNames: [String] { columns.names }

    /// The value in a column by position; `nil` if there is no such column.
    public subscript(index: Int) -> Value? {
        values.indices.contains(index) ? values[index] : nil
    }

    /// The value in a column by its exact name; `nil` if there is no such column. Of equal names
    /// the first one counts.
    public subscript(name: String) -> Value? { columns.positions[name].map { values[$0] } }

    /// The value in a column by position, as a Swift type.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column, `.mismatch` if the stored
    ///   value does not fit the type.
    public func get<T: ValueConvertible>(
        _ index: Int, as type: T.Type = T.self
    ) throws -> T {
        guard values.indices.contains(index) else {
            throw StoreError(.notFound, "the row has no column \(index)")
        }
        return try T(values[index])
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
        guard let index = columns.positions[name] else {
            throw StoreError(.notFound, "the row has no column named \(name)", column: name)
        }
        do throws(StoreError) {
            return try T(values[index])
        } catch {
            throw StoreError(error.code, error.message, column: name)
        }
    }
}
