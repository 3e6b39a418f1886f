/// How rows of a record type's table are read as another type, from the columns that it asks for.
///
/// Made once for each type on each connection and schema. The first rows have all columns, and tell
/// which of them the type asks for. Placeholders would not do: a type that is not a record may end
/// the program where a text is empty.
final class PartialRows {
    fileprivate let decoder: RowDecoder
    /// The positions of the columns; `nil` for all.
    fileprivate let positions: [Int]?
    /// The SQL of the columns.
    fileprivate let columns: String

    /// - Throws: As `RecordTable.makeDecoder(of:after:leavesLazy:stored:_:)`.
    fileprivate init(
        _ table: RecordTable, _ positions: [Int]?, _ stored: StoredProperties?,
        _ connection: Connection
    ) throws(StoreError) {
        let plan = table.plan
        let chosen = positions ?? Array(plan.columns.indices)
        decoder = try table.makeDecoder(of: chosen, stored: stored, connection)
        decoder.otherNames = Set(plan.columns.map(\.name)).subtracting(decoder.names)
        self.positions = positions
        columns = chosen.map { plan.qualifiedColumns[$0] }.joined(separator: ", ")
    }
}

extension RecordTable {
    /// The rows of a query as another type.
    func fetch<R: Record, T: Decodable>(
        _ query: Query<R>, as type: T.Type, _ connection: Connection
    ) throws(StoreError) -> [T] {
        // An index over fewer columns may lead to other rows of these.
        let isAnyRows = query.maximumCount != nil && query.order.isEmpty
        let id = ObjectIdentifier(type)
        let all: PartialRows
        if !isAnyRows, let rows = try partialRows(type, connection) {
            if let found = try fetch(query, as: type, rows, connection) { return found }
            // It asks a row for more than it asked the first rows for.
            all = try PartialRows(self, nil, nil, connection)
            partialRows[id] = all
        } else {
            all = try PartialRows(self, nil, nil, connection)
            all.decoder.askedNames = []
        }
        // Nothing is missed where all columns are selected.
        let found = try fetch(query, as: type, all, connection) ?? []
        if partialRows[id] == nil, !found.isEmpty {
            let asked = plan.positions(of: all.decoder.askedNames ?? [])
            partialRows[id] = try PartialRows(
                self, asked.isEmpty ? nil : asked, nil, connection)
        }
        return found
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

    /// - Returns: `nil` if no row has told yet which columns the type asks for.
    private func partialRows<T: Decodable>(
        _ type: T.Type, _ connection: Connection
    ) throws(StoreError) -> PartialRows? {
        if let known = partialRows[ObjectIdentifier(type)] {
            guard known.decoder.isBusy else { return known }
            // A type that reads rows of itself while it is decoded gets another decoder.
            return try PartialRows(self, known.positions, known.decoder.stored, connection)
        }
        guard let (names, stored) = storedProperties(of: type) else { return nil }
        let asked = plan.positions(of: names)
        guard !asked.isEmpty else { return nil }
        let made = try PartialRows(self, asked, stored, connection)
        partialRows[ObjectIdentifier(type)] = made
        return made
    }

    /// The stored properties of a type and their columns, if it asks for that, they are proven, and
    /// the columns hold their usual values; otherwise `nil`.
    private func storedProperties<T: Decodable>(
        of type: T.Type
    ) -> (names: Set<String>, StoredProperties)? {
        guard let record = type as? any Record.Type,
            let (names, stored) = Self.storedProperties(of: record)
        else { return nil }
        let hasEncoding = plan.columns.contains { $0.encoding != nil && names.contains($0.name) }
        return hasEncoding ? nil : (names, stored)
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
    /// The positions of the columns with these names, and of the key if errors may name the row by
    /// it. Empty if the table has none of the names.
    fileprivate func positions(of names: Set<String>) -> [Int] {
        guard columns.contains(where: { names.contains($0.name) }) else { return [] }
        let key = keyPositions.count == 1 && columns[keyPositions[0]].storage == .integer
        return columns.indices.filter {
            names.contains(columns[$0].name) || (key && $0 == keyPositions[0])
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
