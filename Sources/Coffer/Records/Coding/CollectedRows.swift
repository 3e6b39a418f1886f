/// The target of `RowCollector`, which makes rows as SQLite passes their values.
///
/// It does not know the rows' type. So SQLite's callback reaches the properties through one
/// function that is compiled once.
private struct CollectedRows {
    /// Unretained, because the decoder keeps it and waits for SQLite.
    let stored: Unmanaged<StoredProperties>
    let state: UnsafeMutablePointer<RowState>
    let stride: Int
    /// Takes the number of rows made in the previous memory, and returns more memory.
    let refill: (_ madeCount: Int) -> UnsafeMutableRawBufferPointer

    /// Uninitialised memory for the next rows.
    var place: UnsafeMutableRawPointer
    var room = 0
    var madeCount = 0
    var failure: (any Error)?

    /// Makes a row from its columns' values; returns `false` if they do not fit.
    @inline(__always)
    mutating func take(_ values: UnsafeMutablePointer<OpaquePointer?>) -> Bool {
        if room == 0 { makeRoom() }
        state.pointee.values = values
        do {
            try stored._withUnsafeGuaranteedRef { stored in
                try stored.initialize(place, state, values: values)
            }
        } catch {
            failure = error
            return false
        }
        place += stride
        room &-= 1
        madeCount &+= 1
        return true
    }

    @inline(never)
    private mutating func makeRoom() {
        let memory = refill(madeCount)
        madeCount = 0
        room = memory.count / stride
        if let start = memory.baseAddress { place = start }
    }
}

private func takeRow(
    target: UnsafeMutableRawPointer, values: UnsafeMutablePointer<OpaquePointer?>, count: Int32
) -> Bool {
    // `collect(into:_:)` passed this target to `RowCollector`, and waits for it.
    target.assumingMemoryBound(to: CollectedRows.self).pointee.take(values)
}

extension RowDecoder {
    /// Whether rows can be made in the middle of a step. Making them must not run user code, and an
    /// SQL function must take that many arguments.
    func collects(on connection: Connection) throws(StoreError) -> Bool {
        guard let stored, stored.isPlain, !names.isEmpty else { return false }
        return names.count <= (try connection.current().rowCollector().maximumColumnCount)
    }

    /// All rows of a SELECT whose only column is a call of the collector's function with the plan's
    /// columns.
    func collected<R>(
        _ type: R.Type, _ statement: Statement
    ) throws(StoreError) -> [R] {
        try begin(statement)
        defer {
            state.pointee.values = nil
            end()
        }
        do {
            let rows = try [R].collecting(expectedCount: lastCount) { rows in
                try collect(into: &rows, statement)
            }
            lastCount = min(rows.count, Self.maximumExpectedCount)
            return rows
        } catch {
            throw wrapped(error)
        }
    }

    private func collect<R>(
        into rows: inout RowBuffer<R>, _ statement: Statement
    ) throws(StoreError) {
        guard let stored else { return }
        let collector = try statement.handle.rowCollector()
        try withUnsafeMutablePointer(to: &rows) { rows throws(StoreError) in
            let memory = UnsafeMutableRawBufferPointer(rows.pointee.spare())
            guard let start = memory.baseAddress else { return }
            var target = CollectedRows(
                stored: .passUnretained(stored), state: state, stride: MemoryLayout<R>.stride,
                refill: { madeCount in
                    rows.pointee.take(spare: madeCount)
                    return UnsafeMutableRawBufferPointer(rows.pointee.spare())
                },
                place: start, room: memory.count / MemoryLayout<R>.stride)
            defer { rows.pointee.take(spare: target.madeCount) }
            do throws(StoreError) {
                try withUnsafeMutablePointer(to: &target) { target throws(StoreError) in
                    try collector.run(
                        statement, columnCount: names.count, into: target, takeRow)
                }
            } catch {
                // A damaged page takes precedence over a row that could not be made from it.
                guard error.code != .damaged, let failure = target.failure else { throw error }
                throw wrapped(failure)
            }
        }
    }
}
