extension RowDecoder {
    /// The first row, decoded.
    func first<R: Record>(_ type: R.Type, _ statement: Statement) throws(StoreError) -> R? {
        try begin(statement)
        defer { end() }
        guard try statement.advance() else { return nil }
        do {
            guard let stored else { return try R(from: self) }
            let place = place(for: type)
            try stored.initialize(place, state)
            return place.move()
        } catch {
            throw wrapped(error)
        }
    }

    /// All rows, decoded, each in its place.
    ///
    /// - Parameter isAtRow: Whether the statement stands at the first of them already.
    func all<R: Record>(
        _ type: R.Type, _ statement: Statement, isAtRow: Bool = false
    ) throws(StoreError) -> [R] {
        try begin(statement)
        defer { end() }
        do {
            let rows = try [R].collecting(expectedCount: lastCount) { rows in
                var isRow = try isAtRow || statement.advance()
                while isRow {
                    if let stored {
                        try rows.appendInPlace { try stored.initialize($0, state) }
                    } else {
                        try rows.append { try R(from: self) }
                    }
                    isRow = try statement.advance()
                }
            }
            lastCount = min(rows.count, Self.expectedCountMax)
            return rows
        } catch {
            throw wrapped(error)
        }
    }

    /// Memory for more rows is not asked for before they are there.
    static var expectedCountMax: Int { 65_536 }
}
