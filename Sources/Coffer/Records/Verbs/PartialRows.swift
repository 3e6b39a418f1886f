/// How rows of a record type's table are read as another type, from the columns that it asks for.
///
/// Made once for each type on each connection and schema.
final class PartialRows {
    fileprivate let decoder: RowDecoder
    /// The SQL of the selected columns.
    fileprivate let columns: String

    private init(_ decoder: RowDecoder, _ columns: [String]) {
        self.decoder = decoder
        self.columns = columns.joined(separator: ", ")
    }

    /// - Parameter positions: The columns, in order; `nil` selects all.
    /// - Throws: `.mismatch` if the file does not tell from when dates count; errors of reading the
    ///   schema.
    fileprivate convenience init(
        _ table: RecordTable, _ positions: [Int]?, _ stored: StoredProperties?,
        _ connection: Connection
    ) throws(StoreError) {
        let plan = table.plan
        // The other type may read as a date what is none in this one.
        let since2001 =
            plan.hasDates ? table.since2001 : try plan.columnsFrom2001(connection)
        let chosen = positions ?? Array(plan.columns.indices)
        let decoder = RowDecoder(
            plan, names: chosen.map { plan.columns[$0].name }, key: table.decoder.key,
            stored: stored,
            since2001: ColumnSet(
                chosen.indices.filter { since2001.contains(Int32(chosen[$0])) }))
        decoder.otherNames = Set(plan.columns.map(\.name)).subtracting(decoder.names)
        self.init(decoder, chosen.map { plan.qualifiedColumns[$0] })
    }
}

extension RecordTable {
    /// The rows of a query as another type.
    func fetch<R: Record, T: Decodable>(
        _ query: Query<R>, as type: T.Type, _ connection: Connection
    ) throws(StoreError) -> [T] {
        let rows = try partialRows(type, connection)
        if let found = try fetch(query, as: type, rows, connection) { return found }
        // It asks a row for more than it asked placeholders for: from now on it gets all columns.
        let all = try PartialRows(self, nil, nil, connection)
        partialRows[ObjectIdentifier(type)] = all
        return try fetch(query, as: type, all, connection) ?? []
    }

    /// - Returns: `nil` if the type has asked for a column that was not selected. The rows made so
    ///   far may then be wrong.
    private func fetch<R: Record, T: Decodable>(
        _ query: Query<R>, as type: T.Type, _ rows: PartialRows, _ connection: Connection
    ) throws(StoreError) -> [T]? {
        let decoder = rows.decoder
        if try decoder.collects(on: connection),
            let sql = query.collectSQL(plan, rows.columns)
        {
            return try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
                try decoder.collected(type, statement)
            }
        }
        let sql = query.select(rows.columns, plan)
        return try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
            try decoder.allUnlessMissed(type, statement)
        }
    }

    private func partialRows<T: Decodable>(
        _ type: T.Type, _ connection: Connection
    ) throws(StoreError) -> PartialRows {
        let known = partialRows[ObjectIdentifier(type)]
        // A type that reads rows of itself while it is decoded gets another decoder.
        if let known, !known.decoder.isBusy { return known }
        let made = try PartialRows(
            self, plan.columns(askedForBy: type), storedProperties(of: type), connection)
        if known == nil { partialRows[ObjectIdentifier(type)] = made }
        return made
    }

    /// The stored properties of a type, if it asks for that, they are proven, and the columns hold
    /// their usual values; otherwise `nil`.
    private func storedProperties<T: Decodable>(of type: T.Type) -> StoredProperties? {
        guard let record = type as? any Record.Type,
            let (names, stored) = Self.storedProperties(of: record)
        else { return nil }
        let hasEncoding = plan.columns.contains { $0.encoding != nil && names.contains($0.name) }
        return hasEncoding ? nil : stored
    }

    private static func storedProperties<R: Record>(
        of type: R.Type
    ) -> (names: Set<String>, StoredProperties)? {
        guard R.access == .storedProperties, let plan = try? RecordPlan.of(type),
            let stored = try? StoredProperties.of(type, plan).usable
        else { return nil }
        return (Set(plan.columns.map(\.name)), stored)
    }
}

extension RecordPlan {
    /// The positions of the columns that a type asks for when it is made of placeholders, and of
    /// the key if errors may name the row by it; `nil` if placeholders do not tell.
    fileprivate func columns<T: Decodable>(askedForBy type: T.Type) -> [Int]? {
        let decoder = RecordingDecoder()
        guard (try? T(from: decoder)) != nil, decoder.refusal == nil, !decoder.askedForAllKeys
        else { return nil }
        let asked = Set(decoder.collector.names)
        let key = keyPositions.count == 1 && columns[keyPositions[0]].storage == .integer
        return columns.indices.filter {
            asked.contains(columns[$0].name) || (key && $0 == keyPositions[0])
        }
    }
}

extension RowDecoder {
    /// All rows; `nil` as soon as the type has asked for a column of `otherNames`.
    fileprivate func allUnlessMissed<T: Decodable>(
        _ type: T.Type, _ statement: Statement
    ) throws(StoreError) -> [T]? {
        try begin(statement)
        defer { end() }
        do {
            let rows = try [T].collecting(expectedCount: lastCount) { rows in
                while !hasMissed, try statement.advance() {
                    if let stored {
                        try rows.appendInPlace { try stored.initialize($0, state) }
                    } else {
                        try rows.append { try T(from: self) }
                    }
                }
            }
            if hasMissed { return nil }
            lastCount = min(rows.count, Self.maximumExpectedCount)
            return rows
        } catch {
            // The error may be about the column that was not selected.
            if hasMissed { return nil }
            throw wrapped(error)
        }
    }
}
