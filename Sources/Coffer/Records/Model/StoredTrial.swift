import CSQLCipher

/// Checks whether a record type's stored properties give the same rows as its own coding.
///
/// Samples for every column go through an in-memory database in both directions. The type's own
/// coding makes a record that its properties bind. Then its properties make a record that its own
/// coding binds. Both must return the samples.
struct StoredTrial<R: Record> {
    private let plan: RecordPlan
    private let stored: StoredProperties
    private let ownEncoder: RowEncoder
    private let ownDecoder: RowDecoder
    private let storedEncoder: RowEncoder
    private let storedDecoder: RowDecoder

    init(_ type: R.Type, _ plan: RecordPlan, _ stored: StoredProperties) {
        self.plan = plan
        self.stored = stored
        let names = plan.columns.map(\.name)
        ownEncoder = RowEncoder(plan: plan, since2001: ColumnSet())
        ownDecoder = RowDecoder(plan, names: names, since2001: ColumnSet())
        storedEncoder = RowEncoder(plan: plan, stored: stored, since2001: ColumnSet())
        storedDecoder = RowDecoder(
            plan, names: names, stored: stored, since2001: ColumnSet())
    }

    /// Why the properties cannot be used; `nil` if they can.
    func obstacle() -> String? {
        do {
            let handle = try Handle(
                path: ":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            let parameters = (1...plan.columns.count).map { "?\($0)" }.joined(separator: ", ")
            let statement = try Statement(
                handle: handle, sql: "SELECT \(parameters)", persistent: false)
            defer { statement.finalize() }
            return try obstacle(statement)
        } catch {
            return "it cannot be tried: \((error as? StoreError)?.message ?? "\(type(of: error))")"
        }
    }

    private func obstacle(_ statement: Statement) throws -> String? {
        let dummy = try Reflection.dummy(R.self)
        let first = try values(of: dummy, ownEncoder, statement)
        let other = try values(of: dummy, storedEncoder, statement)
        if let column = difference(first, other) { return encodes(column) }
        var coded = first
        for position in plan.columns.indices {
            if let value = try? alternate(position, statement) { coded[position] = value }
        }
        let samples = StoredSamples(stored, plan.columns.count, coded: coded)
        for row in [first] + samples.rows {
            if let reason = try obstacle(row, statement) { return reason }
        }
        for row in samples.refused where (try? record(row, ownDecoder, statement)) != nil {
            return "its init(from:) takes a missing value for another one"
        }
        return nil
    }

    private func obstacle(_ row: [Value], _ statement: Statement) throws -> String? {
        guard let own = try? record(row, ownDecoder, statement) else {
            return "its init(from:) refuses values that its properties can hold"
        }
        let held = try values(of: own, storedEncoder, statement)
        if let column = difference(row, held) {
            return "its init(from:) makes something else of the column \(column)"
        }
        let made = try record(row, storedDecoder, statement)
        guard let written = try? values(of: made, ownEncoder, statement) else {
            return "its encode(to:) refuses values that its properties can hold"
        }
        return difference(row, written).map { encodes($0) }
    }

    private func encodes(_ column: String) -> String {
        "its encode(to:) makes something else for the column \(column)"
    }

    private func difference(_ first: [Value], _ second: [Value]) -> String? {
        zip(first, second).enumerated().first { !$0.element.0.isIdentical(to: $0.element.1) }
            .map { plan.columns[$0.offset].name }
    }

    /// The column's value in a record whose property for it has its other placeholder.
    private func alternate(_ position: Int, _ statement: Statement) throws -> Value {
        let record = try R(from: RecordingDecoder(alternate: plan.columns[position].name))
        return try values(of: record, ownEncoder, statement)[position]
    }

    private func values(
        of record: R, _ encoder: RowEncoder, _ statement: Statement
    ) throws -> [Value] {
        statement.rewind()
        try encoder.bind(record, to: statement)
        guard try statement.advance() else { return [] }
        defer { statement.rewind() }
        return try statement.row().values
    }

    private func record(
        _ values: [Value], _ decoder: RowDecoder, _ statement: Statement
    ) throws -> R {
        statement.rewind()
        try statement.bindArguments(values)
        defer { statement.rewind() }
        guard let record = try decoder.first(R.self, statement) else {
            throw Placeholder.Impossible()
        }
        return record
    }
}

extension Value {
    /// Compares texts byte by byte, because Swift regards some texts as equal that SQLite does not.
    fileprivate func isIdentical(to other: Value) -> Bool {
        guard case .text(let text) = self, case .text(let otherText) = other else {
            return self == other
        }
        return text.utf8.elementsEqual(otherText.utf8)
    }
}
