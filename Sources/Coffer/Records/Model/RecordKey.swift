/// A property that identifies the records of a type, for a table whose rows belong to them.
struct RecordKey: Sendable, Hashable {
    private let plan: RecordPlan
    private let position: Int

    /// - Throws: `.misuse` for a property that has no column, or that the type does not declare
    ///   unique, and for a type that cannot be reflected.
    init<R: Record>(_ path: PartialKeyPath<R>) throws(StoreError) {
        plan = try RecordPlan.of(R.self)
        position = try plan.position(of: path)
        try TableDeclaration.requireUnique(position, of: R.self, plan)
    }

    static func == (left: Self, right: Self) -> Bool {
        left.plan === right.plan && left.position == right.position
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(plan))
        hasher.combine(position)
    }

    var typeName: String { plan.typeName }
    var table: String { plan.table }
    var column: String { plan.columns[position].name }
    var storage: Storage { plan.columns[position].storage }
    /// The form of the stored keys, where the type declares one.
    var encoding: ColumnEncoding? { plan.columns[position].encoding }

    /// Makes the table of the records if there is none.
    ///
    /// - Throws: As `WriteTransaction.create`.
    func makeTable(_ connection: Connection) throws(StoreError) {
        let schema = RecordSchema(plan, connection)
        if try schema.kind() == .nothing { try schema.create() }
    }

    /// Whether the main file has a record with this key.
    ///
    /// - Parameter key: As the file has it.
    /// - Throws: Errors of the query; `.damaged` if a damaged page may hide the record.
    func contains(_ key: Value, _ connection: Connection) throws(StoreError) -> Bool {
        guard try RecordSchema(plan, connection).kind() != .nothing else { return false }
        let column = "\(plan.quotedTable).\(plan.quotedColumns[position])"
        let found = try connection.firstRow(
            SQL(
                text: "SELECT 1 FROM main.\(plan.quotedTable) WHERE \(column) = ?",
                arguments: [key]), isReadOnly: false)
        if found == nil { try connection.probe() }
        return found != nil
    }
}
