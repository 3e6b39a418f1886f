/// The column of one property, to read it from many rows without looking up its key path again.
///
/// ```swift
/// let amount = try Payment.column(\.amount)
/// var largest = 0
/// try tx.forEachRow(Payment.all) { row in largest = max(largest, try row[amount]) }
/// ```
public struct PropertyColumn<R: Record, V: Codable>: Sendable {
    @usableFromInline let reading: ColumnReading

    fileprivate init(_ reading: ColumnReading) { self.reading = reading }
}

extension Record {
    /// The column of a property, for ``BorrowedRow``.
    ///
    /// - Parameter path: A property with a column.
    /// - Throws: `StoreError` `.misuse` for a key path without a column.
    /// - Complexity: O(*columns*), and no access to a store.
    public static func column<V: Codable>(
        _ path: KeyPath<Self, V>
    ) throws -> PropertyColumn<Self, V> {
        let plan = try RecordPlan.of(Self.self)
        let position = try plan.position(of: path)
        return PropertyColumn(ColumnReading(of: V.self, at: position, plan))
    }
}

/// Makes the value of one property from its column.
@usableFromInline final class ColumnReading: Sendable {
    let table: String
    let name: String
    /// The position of the column in the record type's plan.
    let position: Int
    /// Whether the value is made without a coder.
    let isPlain: Bool
    /// Must only be used where `isPlain` is true.
    let property: StoredProperty
    private let coder: (any StoredCoder)?

    init(of type: any Codable.Type, at position: Int, _ plan: RecordPlan) {
        let column = plan.columns[position]
        (table, name, self.position) = (plan.table, column.name, position)
        (property, coder) = StoredProperty.of(type, column, at: position, offset: 0)
        isPlain = coder == nil
    }

    /// Initialises memory for a value of the property's type by its coder. If this throws, the
    /// memory stays uninitialised.
    @inline(never)
    func decode(
        into memory: UnsafeMutableRawPointer, _ column: Int32, _ decoder: RowDecoder
    ) throws {
        try coder?.initialize(memory, column, decoder)
    }
}
