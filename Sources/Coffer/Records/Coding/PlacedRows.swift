/// The target of `RowCollector` for a join with keys: makes each row in the place of its key.
///
/// It does not know the rows' type, as `CollectedRows`.
private struct PlacedRows {
    /// Unretained, because the decoder keeps it and waits for SQLite.
    let stored: Unmanaged<StoredProperties>
    let state: UnsafeMutablePointer<RowState>
    /// Unretained, because the caller keeps it and waits for SQLite.
    let list: Unmanaged<KeyList>
    /// Uninitialised memory for a record for each key that was asked for.
    let start: UnsafeMutableRawPointer
    let stride: Int
    /// For each of these, whether a record was made.
    let isFound: UnsafeMutableBufferPointer<Bool>
    var failure: (any Error)?
    /// Whether a row came without a key.
    var isWithoutKey = false

    /// Makes a row from its columns' values; returns `false` if they do not fit, or if no scan of
    /// the keys is at a key. Of several rows of one key the first is taken.
    @inline(__always)
    mutating func take(_ values: UnsafeMutablePointer<OpaquePointer?>) -> Bool {
        guard let place = list._withUnsafeGuaranteedRef({ $0.place }), place < isFound.count else {
            isWithoutKey = true
            return false
        }
        if isFound[place] { return true }
        state.pointee.values = values
        do {
            try stored._withUnsafeGuaranteedRef { stored in
                try stored.initialize(start + place &* stride, state, values: values)
            }
        } catch {
            failure = error
            return false
        }
        isFound[place] = true
        return true
    }
}

private func placeRow(
    target: UnsafeMutableRawPointer, values: UnsafeMutablePointer<OpaquePointer?>, count: Int32
) -> Bool {
    // `collect(into:_:_:_:)` passed this target to `RowCollector`, and waits for it.
    target.assumingMemoryBound(to: PlacedRows.self).pointee.take(values)
}

extension RowDecoder {
    /// As `decode(into:_:_:_:)`, for a SELECT whose only column is a call of the collector's
    /// function with the plan's columns. `collects(on:)` must be true.
    func collect<R: Record>(
        into start: UnsafeMutablePointer<R>, _ isFound: inout [Bool], _ list: KeyList,
        _ statement: Statement
    ) throws(StoreError) {
        guard let stored else { return }
        try begin(statement)
        defer {
            state.pointee.values = nil
            end()
        }
        let collector = try statement.handle.rowCollector()
        try statement.handle.keyTable().lend(list, to: statement) { () throws(StoreError) in
            defer { statement.rewind() }
            try isFound.withUnsafeMutableBufferPointer { isFound throws(StoreError) in
                var target = PlacedRows(
                    stored: .passUnretained(stored), state: state, list: .passUnretained(list),
                    start: UnsafeMutableRawPointer(start), stride: MemoryLayout<R>.stride,
                    isFound: isFound)
                do throws(StoreError) {
                    try withUnsafeMutablePointer(to: &target) { target throws(StoreError) in
                        try collector.run(
                            statement, columnCount: names.count, into: target, placeRow)
                    }
                } catch {
                    // A damaged page takes precedence over a row that could not be made from it.
                    guard error.code != .damaged else { throw error }
                    if target.isWithoutKey { throw KeyTable.noKey(statement) }
                    throw target.failure.map { wrapped($0) } ?? error
                }
            }
        }
    }
}
