extension RecordTable {
    /// A decoder of rows that have some columns of the table.
    ///
    /// - Parameters:
    ///   - positions: The columns' positions in the plan, in the order of the rows.
    ///   - offset: How many columns of another table each row has before them.
    ///   - leavesLazy: Whether the rows hold sizes instead of the values of `Lazy` properties.
    ///   - stored: The stored properties of the decoded type; `nil` decodes by its `init(from:)`.
    /// - Throws: `.mismatch` if the file does not tell from when dates count; errors of reading the
    ///   schema.
    func makeDecoder(
        of positions: [Int], after offset: Int = 0, leavesLazy: Bool = false,
        stored: StoredProperties? = nil, _ connection: Connection
    ) throws(StoreError) -> RowDecoder {
        // The rows may become a type that reads as a date what the record reads as a number.
        let since2001 = plan.hasDates ? since2001 : try plan.columnsFrom2001(connection)
        // Empty names hide the other table's columns from the decoder, because no column has one.
        let hidden = Array(repeating: "", count: offset)
        return RowDecoder(
            plan, names: hidden + positions.map { plan.columns[$0].name }, key: decoder.key,
            leavesLazy: leavesLazy, stored: stored,
            since2001: ColumnSet(
                positions.indices.filter { since2001.contains(Int32(positions[$0])) }
                    .map { $0 + offset }))
    }
}
