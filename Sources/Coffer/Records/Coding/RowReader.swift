import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads columns of one record type from the rows of a statement.
final class RowReader {
    /// The positions in the plan of the columns that the rows have, in the order of the rows.
    let positions: [Int]
    /// The SQL of these columns.
    let selectedColumns: String
    /// Valid as long as this object lives.
    var source: RowSource { RowSource(state: decoder.state, places: places) }
    private let decoder: RowDecoder
    private let places: UnsafeMutablePointer<Int32>

    /// - Parameters:
    ///   - positions: Which columns of the table's plan the rows have; all of them if it is empty.
    ///   - offset: How many columns of another table each row has before them.
    /// - Throws: As `RecordTable.makeDecoder(of:after:leavesLazy:stored:_:)`.
    init(
        _ table: RecordTable, _ connection: Connection, columns positions: [Int] = [],
        after offset: Int = 0
    ) throws(StoreError) {
        let plan = table.plan
        let positions = positions.isEmpty ? Array(plan.columns.indices) : positions
        decoder = try table.makeDecoder(
            of: positions, after: offset, leavesLazy: true, connection)
        self.positions = positions
        let selected = plan.selectedColumns
        selectedColumns = positions.map { selected[$0] }.joined(separator: ", ")
        places = .allocate(capacity: plan.columns.count)
        places.initialize(repeating: KeyMap.absent, count: plan.columns.count)
        for (index, position) in positions.enumerated() {
            places[position] = Int32(index + offset)
        }
    }

    deinit { places.deallocate() }

    /// Reads from the rows of this statement, until `end()`.
    func begin(_ statement: Statement) throws(StoreError) { try decoder.begin(statement) }

    func end() { decoder.end() }
}

/// The columns of one record type in the rows of a statement.
@usableFromInline struct RowSource {
    // Both belong to a `RowReader`, which outlives the loop over the rows.

    let state: UnsafeMutablePointer<RowState>
    /// For each column of the plan its position in the row, negative if the row lacks it.
    let places: UnsafePointer<Int32>

    /// - Throws: `.misuse` if the query does not read the column.
    @inline(__always)
    private func place(_ column: ColumnReading) throws -> Int32 {
        let place = places[column.position]
        guard place >= 0 else { throw unread(column) }
        return place
    }

    @inline(never)
    private func unread(_ column: ColumnReading) -> StoreError {
        StoreError(
            .misuse, "the loop does not read this column",
            hint: "Name its property in forEachRow(_:reading:_:), or leave reading out.",
            table: column.table, column: column.name)
    }

    @usableFromInline
    func initialize(_ memory: UnsafeMutableRawPointer, _ column: ColumnReading) throws {
        let place = try place(column)
        guard column.isPlain else {
            return try column.decode(into: memory, place, state.pointee.decoder)
        }
        var property = column.property
        property.column = place
        try property.initialize(memory, state.pointee.raw(place), state)
    }

    @usableFromInline
    func integer(_ column: ColumnReading) throws -> Int64 {
        let place = try place(column)
        return try state.pointee.integer(state.pointee.raw(place), place, for: Int64.self)
    }

    @usableFromInline
    func real(_ column: ColumnReading) throws -> Double {
        let place = try place(column)
        return try state.pointee.real(state.pointee.raw(place), place, for: Double.self)
    }

    @usableFromInline
    func bool(_ column: ColumnReading) throws -> Bool {
        let place = try place(column)
        return try state.pointee.bool(state.pointee.raw(place), place)
    }

    /// The date of a column that has no encoding of its own, or else by its encoding.
    @usableFromInline
    func date(_ column: ColumnReading) throws -> Date {
        let place = try place(column)
        guard column.isPlain else { return try encodedDate(column) }
        return try state.pointee.date(state.pointee.raw(place), place)
    }

    @inline(never)
    private func encodedDate(_ column: ColumnReading) throws -> Date {
        var date = Date.distantPast
        // The memory of a date needs no end, so another date may begin there.
        try withUnsafeMutableBytes(of: &date) { memory in
            guard let start = memory.baseAddress else { return }
            try initialize(start, column)
        }
        return date
    }

    @inline(__always)
    func utf8(_ column: ColumnReading) throws -> UnsafeBufferPointer<UInt8> {
        let place = try place(column)
        return try state.pointee.exactUTF8(state.pointee.raw(place), place, for: String.self)
    }

    /// `nil` for NULL.
    @inline(__always)
    func utf8(ifAny column: ColumnReading) throws -> UnsafeBufferPointer<UInt8>? {
        let place = try place(column)
        let value = state.pointee.raw(place)
        guard sqlite3_value_type(value) != SQLITE_NULL else { return nil }
        return try state.pointee.exactUTF8(value, place, for: String.self)
    }

    @inline(__always)
    func bytes(_ column: ColumnReading, _ type: Any.Type) throws -> UnsafeRawBufferPointer {
        let place = try place(column)
        return try state.pointee.blob(state.pointee.raw(place), place, for: type)
    }

    /// `nil` for NULL.
    @inline(__always)
    func bytes(
        ifAny column: ColumnReading, _ type: Any.Type
    ) throws -> UnsafeRawBufferPointer? {
        let place = try place(column)
        let value = state.pointee.raw(place)
        guard sqlite3_value_type(value) != SQLITE_NULL else { return nil }
        return try state.pointee.blob(value, place, for: type)
    }
}
