import CSQLCipher

/// Identifies an UPDATE of chosen columns. `RecordTable` keeps the UPDATE's statement under this
/// key, so that it need not resolve key paths and build SQL for every record.
struct PartialUpdate: Hashable {
    enum Kind {
        /// Sets these properties of the row with the record's key.
        case only
        /// Sets the other columns, except the key, of the row with the same values in these.
        case conflict
        /// All columns, but for those of values that are not loaded.
        case loaded
    }

    let kind: Kind
    let paths: [AnyKeyPath]
    /// The positions of the columns that stay as they are.
    var kept: Set<Int> = []
}

/// An UPDATE of chosen columns, and the encoder that binds records to it.
struct PreparedUpdate {
    let statement: Statement
    let encoder: RowEncoder
    /// Finds the row id of the row with the record's values in unique columns; `nil` for a table
    /// without row ids.
    var finding: PreparedFinding?
}

/// A SELECT of a row id, and the encoder that binds records to it.
struct PreparedFinding {
    let statement: Statement
    let encoder: RowEncoder
}

extension RecordTable {
    /// Sets some columns of the row with the record's key; returns whether that row exists.
    func update<R: Record>(
        _ record: R, only paths: [PartialKeyPath<R>], _ connection: Connection
    ) throws(StoreError) -> Bool {
        let wanted = PartialUpdate(kind: .only, paths: paths)
        let known = partialUpdates[wanted]
        let update =
            if let known { known } else { try makeUpdate(wanted, only: paths, connection) }
        try update.encoder.bind(record, to: update.statement)
        return try change(update.statement, connection)
    }

    /// Sets all columns of the row with the record's key, if the condition is true for that row;
    /// returns whether it was.
    func update<R: Record>(
        _ record: R, expecting condition: Condition<R>, _ connection: Connection
    ) throws(StoreError) -> Bool {
        try plan.requireKey(for: "update")
        try ready(connection, isCreating: false)
        let expected = try condition.sql.checked(on: connection)
        guard expected.namedArguments == nil else {
            throw StoreError(
                .misuse, "the condition of an update has named arguments",
                hint: "Bind its values with \\( ).", table: plan.table)
        }
        // A plain ? takes the number after the greatest one, which is that of the last column.
        let kept = try unloaded(in: record, connection)
        let encoder = encoder(keeping: kept)
        var sql = SQL(text: plan.updateSQL(orFail: false, keeping: kept) + " AND (")
        sql.lists = expected.lists.map { $0.moved(by: sql.text.utf8.count) }
        sql.text += "\(expected.text))"
        sql.bindsPlainDate = expected.bindsPlainDate
        sql.otherTables = expected.otherTables
        do throws(StoreError) {
            return try run(sql, record, encoder, expected.arguments, connection)
        } catch {
            let filled = try withEmptyParents(sql, after: error, connection)
            guard let filled else { throw error }
            return try run(filled, record, encoder, expected.arguments, connection)
        }
    }

    /// Runs an UPDATE of a whole record, with further arguments; returns whether it changed a row.
    private func run<R: Record>(
        _ sql: SQL, _ record: R, _ encoder: RowEncoder, _ arguments: [Value],
        _ connection: Connection
    ) throws(StoreError) -> Bool {
        let statement = try connection.cached(sql.text(on: connection))
        defer { connection.release(statement) }
        if sql.bindsPlainDate { try statement.requirePlainDates(on: connection) }
        try encoder.bind(record, to: statement)
        for (index, value) in arguments.enumerated() {
            let parameter = Int32(plan.columns.count + 1 + index)
            try statement.bindArgument(value, to: statement.pointer(), at: parameter)
        }
        return try change(statement, connection)
    }

    /// Whether the row with the record's key exists.
    func hasRow<R: Record>(
        of record: R, _ connection: Connection
    ) throws(StoreError) -> Bool {
        let statement = try connection.cached(plan.existsSQL)
        defer { connection.release(statement) }
        try keyEncoder.bind(record, to: statement)
        return try statement.advance()
    }

    /// Runs a change; `false` if the type has no table.
    func orMissing(
        _ connection: Connection, _ change: () throws(StoreError) -> Bool
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try change()
        } catch {
            try requireNoTable(after: error, connection)
            return false
        }
    }

    /// Updates the row with the same values in unique columns, or adds one; returns its row id.
    func upsert<R: Record>(
        _ record: R, conflictingOn paths: [PartialKeyPath<R>], _ connection: Connection
    ) throws(StoreError) -> Int64 {
        let wanted = PartialUpdate(kind: .conflict, paths: paths)
        let known = partialUpdates[wanted]
        let update =
            if let known { known } else { try makeUpdate(wanted, conflictingOn: paths, connection) }
        let inserted = try updateOrInsert(record, update.statement, connection)
        if let inserted { return inserted }
        // An UPDATE leaves SQLite's last row id as it is.
        guard let finding = update.finding else { return 0 }
        try finding.encoder.bind(record, to: finding.statement)
        defer { finding.statement.rewind() }
        do throws(StoreError) {
            guard try finding.statement.advance() else { return 0 }
            return try finding.statement.column(0, as: Int64.self)
        } catch {
            throw try explain(error, connection)
        }
    }

    /// - Parameter positions: The positions of columns that are unique together.
    private func finding(
        _ positions: [Int], _ connection: Connection
    ) throws(StoreError) -> PreparedFinding? {
        let rowID = try connection.freeRowIDName(of: plan.table, schema: nil)
        guard let rowID else { return nil }
        let terms = positions.map { "\(plan.qualifiedColumns[$0]) = ?\($0 + 1)" }
        let sql =
            "SELECT \(plan.quotedTable).\(rowID) FROM \(plan.quotedTable) "
            + "WHERE \(terms.joined(separator: " AND "))"
        return PreparedFinding(
            statement: try prepare(sql, connection), encoder: encoder.only(positions))
    }

    @inline(never)
    private func makeUpdate<R: Record>(
        _ wanted: PartialUpdate, only paths: [PartialKeyPath<R>], _ connection: Connection
    ) throws(StoreError) -> PreparedUpdate {
        try plan.requireKey(for: "update")
        let positions = try plan.positions(of: paths)
        if let position = positions.first(where: { plan.keyPositions.contains($0) }) {
            throw StoreError(
                .misuse, "the key identifies the row, so an update cannot change it",
                table: plan.table, column: plan.columns[position].name)
        }
        for position in positions { try plan.requireSettable(position) }
        try ready(connection, isCreating: false)
        let orFail = try RecordSchema(plan, connection).updatesOneRowAlone()
        let statement = try prepare(
            plan.updateSQL(setting: positions, where: plan.keyPositions, orFail: orFail),
            connection)
        statement.changesOneRow = orFail
        let update = PreparedUpdate(
            statement: statement, encoder: encoder.only(positions + plan.keyPositions))
        partialUpdates[wanted] = update
        return update
    }

    @inline(never)
    private func makeUpdate<R: Record>(
        _ wanted: PartialUpdate, conflictingOn paths: [PartialKeyPath<R>], _ connection: Connection
    ) throws(StoreError) -> PreparedUpdate {
        let positions = try plan.positions(of: paths)
        let names = positions.map { plan.columns[$0].name }
        // The columns must be unique. Otherwise the UPDATE would change every row that matches,
        // while an INSERT would conflict with no row.
        guard try plan.declaration().isUnique(positions, plan) else {
            throw StoreError(
                .misuse,
                "\(plan.typeName) does not declare that \(names.joined(separator: ", ")) is unique",
                hint: "Declare static var indexes: [Index<Self>] with isUnique: true.",
                table: plan.table)
        }
        try ready(connection, isCreating: true)
        let schema = RecordSchema(plan, connection)
        if try schema.kind() == .view { throw schema.isView }
        guard try schema.isUnique(names) else {
            throw StoreError(
                .mismatch, "the table has no unique index on (\(names.joined(separator: ", ")))",
                hint: "tx.create(\(plan.typeName).self) adds it.", table: plan.table,
                column: names.first)
        }
        // The row keeps its key, because other rows may refer to it.
        let kept = Set(positions + plan.keyPositions).union(plan.generatedPositions)
        let others = plan.columns.indices.filter { !kept.contains($0) }
        let statement = try prepare(
            plan.updateSQL(
                setting: others.isEmpty ? positions : others, where: positions, orFail: false),
            connection)
        let update = PreparedUpdate(
            statement: statement, encoder: encoder, finding: try finding(positions, connection))
        partialUpdates[wanted] = update
        return update
    }
}

extension RecordPlan {
    /// The error for a record whose row does not exist.
    var noRow: StoreError {
        StoreError(
            .notFound, "\(table) has no row with the key of this \(typeName)",
            hint: "Another write may have removed it. Use updateIfPresent if that is expected, or "
                + "upsert to add the row.",
            table: table)
    }

    fileprivate func positions<R: Record>(
        of paths: [PartialKeyPath<R>]
    ) throws(StoreError) -> [Int] {
        guard !paths.isEmpty else {
            throw StoreError(.misuse, "no property is named", table: table)
        }
        var positions: [Int] = []
        for path in paths {
            let position = try position(of: path)
            if !positions.contains(position) { positions.append(position) }
        }
        return positions
    }

    /// Adds the table to an error. If the error is about a key that is nil, adds a remedy.
    func explained(_ error: StoreError) -> StoreError {
        let known = error.with(table: table)
        let position = keyPositions.first { position in
            columns[position].isNullable
                && error.message.hasSuffix(".\(columns[position].name)")
        }
        guard let position, error.resultCode == SQLITE_CONSTRAINT | 5 << 8 else { return known }
        return StoreError(
            .constraint, "the key of \(typeName) is nil",
            hint: "Give it a value. The engine generates only keys of one integer column.",
            sql: error.sql, table: table, column: columns[position].name,
            resultCode: error.resultCode)
    }
}
