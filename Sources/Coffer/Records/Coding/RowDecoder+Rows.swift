extension RowDecoder {
    /// Steps the statement once and decodes its row; `nil` if there is no row. The caller resets
    /// the statement. Throws errors of the step, and `.mismatch` for a row that does not fit the
    /// type.
    func first<R: Record>(_ type: R.Type, _ statement: Statement) throws(StoreError) -> R? {
        try begin(statement)
        defer { end() }
        guard try statement.advance() else { return nil }
        return try decode(type)
    }

    /// The first row, decoded into uninitialised memory.
    ///
    /// - Returns: Whether there is a first row.
    func first<R: Record>(
        into place: UnsafeMutablePointer<R>, _ statement: Statement
    ) throws(StoreError) -> Bool {
        try begin(statement)
        defer { end() }
        guard try statement.advance() else { return false }
        do {
            if let stored {
                try stored.initialize(place, state)
            } else {
                place.initialize(to: try R(from: self))
            }
        } catch {
            throw wrapped(error)
        }
        return true
    }

    /// The statement's current row, decoded.
    func current<R: Record>(_ type: R.Type, _ statement: Statement) throws(StoreError) -> R {
        try begin(statement)
        defer { end() }
        return try decode(type)
    }

    /// Decodes up to `maximumCount` further rows. A shorter result, which may be empty, means that
    /// no row remains.
    func next<R: Record>(
        _ maximumCount: Int, _ type: R.Type, _ statement: Statement
    ) throws(StoreError) -> [R] {
        try begin(statement)
        defer { end() }
        var rows: [R] = []
        while rows.count < maximumCount, try statement.advance() { rows.append(try decode(type)) }
        return rows
    }

    @inline(__always)
    private func decode<R: Record>(_ type: R.Type) throws(StoreError) -> R {
        do {
            guard let stored else { return try R(from: self) }
            let place = place(for: type)
            try stored.initialize(place, state)
            return place.move()
        } catch {
            throw wrapped(error)
        }
    }

    /// All rows, each decoded in its final memory.
    ///
    /// - Parameter isAtRow: Whether the first row is already the statement's current row.
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
            lastCount = min(rows.count, Self.maximumExpectedCount)
            return rows
        } catch {
            throw wrapped(error)
        }
    }

    /// All rows, each decoded in its final memory. Calls `body` at each of them.
    func all<R: Record>(
        _ type: R.Type, _ statement: Statement, atEach body: () throws(StoreError) -> Void
    ) throws(StoreError) -> [R] {
        try begin(statement)
        defer { end() }
        do {
            return try [R].collecting(expectedCount: 0) { rows in
                while try statement.advance() {
                    if let stored {
                        try rows.appendInPlace { try stored.initialize($0, state) }
                    } else {
                        try rows.append { try R(from: self) }
                    }
                    try body()
                }
            }
        } catch {
            throw wrapped(error)
        }
    }

    /// Decodes the rows of a join with keys, each in the place of its key. Of several rows of one
    /// key the first is taken. Resets the statement.
    ///
    /// - Parameters:
    ///   - start: Uninitialised memory for a record for each key that was asked for.
    ///   - isFound: For each of these, whether a record was made.
    func decode<R: Record>(
        into start: UnsafeMutablePointer<R>, _ isFound: inout [Bool], _ list: KeyList,
        _ statement: Statement
    ) throws(StoreError) {
        try begin(statement)
        defer { end() }
        try statement.handle.keyTable().lend(list, to: statement) { () throws(StoreError) in
            defer { statement.rewind() }
            do {
                while try statement.advance() {
                    guard let place = list.place else { throw KeyTable.noKey(statement) }
                    guard !isFound[place] else { continue }
                    if let stored {
                        try stored.initialize(start + place, state)
                    } else {
                        (start + place).initialize(to: try R(from: self))
                    }
                    isFound[place] = true
                }
            } catch {
                throw wrapped(error)
            }
        }
    }

    /// Decodes all rows into tuples, by the properties in `stored`.
    ///
    /// - Parameter isWanted: Whether the current row becomes a tuple; `nil` if all do.
    func allTuples<Values>(
        _ type: Values.Type, _ statement: Statement,
        where isWanted: (() throws(StoreError) -> Bool)? = nil
    ) throws(StoreError) -> [Values] {
        try begin(statement)
        defer { end() }
        guard let stored else { return [] }
        do {
            return try [Values].collecting(expectedCount: 0) { rows in
                while try statement.advance() {
                    if let isWanted, try !isWanted() { continue }
                    try rows.appendInPlace { try stored.initialize($0, state) }
                }
            }
        } catch {
            throw wrapped(error)
        }
    }

    /// Decodes the first row into a tuple, by the properties in `stored`; `nil` if there is no row.
    func firstTuple<Values>(
        _ type: Values.Type, _ statement: Statement
    ) throws(StoreError) -> Values? {
        try begin(statement)
        defer { end() }
        guard let stored, try statement.advance() else { return nil }
        do {
            let place = place(for: type)
            try stored.initialize(place, state)
            return place.move()
        } catch {
            throw wrapped(error)
        }
    }

    /// The most rows for which memory is allocated before they are read.
    static var maximumExpectedCount: Int { 65_536 }
}
