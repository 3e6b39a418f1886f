extension RecordTable {
    /// Updates the row but for the columns of values that are not loaded.
    ///
    /// - Parameter error: Why the whole record could not be bound; thrown if it is another reason.
    @inline(never)
    func updateLoaded<R: Record>(
        _ record: R, after error: StoreError, _ connection: Connection
    ) throws(StoreError) -> Bool {
        let kept = try unloaded(in: record, connection)
        guard !kept.isEmpty else { throw error }
        let wanted = PartialUpdate(kind: .loaded, paths: [], kept: kept)
        let update =
            if let known = partialUpdates[wanted] { known } else {
                try makeUpdate(wanted, connection)
            }
        try update.encoder.bind(record, to: update.statement)
        return try change(update.statement, connection)
    }

    private func makeUpdate(
        _ wanted: PartialUpdate, _ connection: Connection
    ) throws(StoreError) -> PreparedUpdate {
        let orFail = try RecordSchema(plan, connection).updatesOneRowAlone()
        let statement = try prepare(
            plan.updateSQL(orFail: orFail, keeping: wanted.kept), connection)
        let update = PreparedUpdate(statement: statement, encoder: encoder(keeping: wanted.kept))
        partialUpdates[wanted] = update
        return update
    }

    /// An encoder that binds no value to these columns.
    func encoder(keeping kept: Set<Int>) -> RowEncoder {
        kept.isEmpty
            ? encoder : encoder.only(plan.columns.indices.filter { !kept.contains($0) })
    }

    /// The positions of the record's values that are not loaded.
    func unloaded<R: Record>(
        in record: R, _ connection: Connection
    ) throws(StoreError) -> Set<Int> {
        guard plan.hasLazy else { return [] }
        let statement = try updateStatement(connection, isCreating: false)
        return try encoder.unloaded(in: record, statement)
    }

    /// The value of a `Lazy` property in the record's row; `nil` for NULL.
    func load<R: Record, W: LazyValue>(
        _ path: PartialKeyPath<R>, _ type: Lazy<W>.Type, of record: R, _ connection: Connection
    ) throws(StoreError) -> Lazy<W>? {
        let position = try plan.position(of: path)
        try plan.requireKey(for: "load")
        do throws(StoreError) {
            let statement = try connection.cached(plan.loadSQL(position))
            defer { connection.release(statement) }
            try keyEncoder.bind(record, to: statement)
            guard try statement.advance() else {
                // A damaged page may hide the row.
                try connection.probe()
                throw StoreError(
                    .notFound, "\(plan.table) has no row with the key of this \(plan.typeName)",
                    hint: "Another write may have removed it.", table: plan.table)
            }
            let found = try current(type, at: position, statement)
            guard try !statement.advance() else { throw severalRows }
            return found
        } catch {
            throw try explain(error, connection)
        }
    }

    /// The value of a statement's current row, which has only the column at the position.
    private func current<W: LazyValue>(
        _ type: Lazy<W>.Type, at position: Int, _ statement: Statement
    ) throws(StoreError) -> Lazy<W>? {
        let name = plan.columns[position].name
        let decoder = RowDecoder(plan, names: [name], since2001: ColumnSet())
        try decoder.begin(statement)
        defer { decoder.end() }
        if decoder.state.pointee.isNull(0) { return nil }
        do { return try decoder.decode(other: type, 0) } catch { throw decoder.wrapped(error) }
    }

    private var severalRows: StoreError {
        StoreError(
            .mismatch, "several rows of \(plan.table) have the key of this \(plan.typeName)",
            hint: "Make the key unique in the table, with SQL.", table: plan.table)
    }

    /// The error for a value that is NULL, although its property is not optional.
    func isNull<R: Record>(_ path: PartialKeyPath<R>) throws(StoreError) -> StoreError {
        let column = plan.columns[try plan.position(of: path)].name
        return StoreError(
            .mismatch, "the column is NULL, and the property is not optional",
            hint: "Make it optional.", table: plan.table, column: column)
    }
}

extension RowEncoder {
    /// The positions of the record's values that are not loaded. Binds the others.
    func unloaded<R: Record>(
        in record: R, _ statement: Statement
    ) throws(StoreError) -> Set<Int> {
        lastUnloaded = []
        do throws(StoreError) {
            try bind(record, to: statement)
        } catch {
            guard !lastUnloaded.isEmpty else { throw error }
        }
        return lastUnloaded
    }

    /// Notes that the record has no value for a `Lazy` property in memory.
    ///
    /// - Returns: Whether that is so.
    func refuseUnloaded<T>(_ value: T, _ entry: Int32) -> Bool {
        let column = plan.columns[Int(entry >> 2)]
        guard column.type == T.self, let lazy = value as? any LazyProperty, !lazy.isLoaded
        else { return false }
        unloaded.insert(Int(entry >> 2))
        state.pointee.isRefused = true
        return true
    }

    /// Notes that the record encodes a value or NULL for a column.
    func note(_ entry: Int32) {
        guard !lazyColumns.isEmpty, entry >= 0 else { return }
        encodedLazy.insert(Int(entry >> 2))
    }

    /// Refuses a record that encodes nothing for a `Lazy` property, as one whose value is not
    /// loaded. Its value may be `nil`, or it may be in the file.
    func refuseOmitted() {
        defer { encodedLazy.removeAll(keepingCapacity: true) }
        guard !lazyColumns.isSubset(of: encodedLazy) else { return }
        unloaded.formUnion(lazyColumns.subtracting(encodedLazy))
        state.pointee.isRefused = true
    }

    /// The error for the noted values, which it forgets.
    func takeUnloaded() -> StoreError {
        lastUnloaded = unloaded
        unloaded = []
        let column = lastUnloaded.min().map { plan.columns[$0].name }
        return StoreError.notLoaded.with(table: plan.table, column: column)
    }
}
