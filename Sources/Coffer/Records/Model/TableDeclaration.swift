/// A record type's declarations about its table beyond the columns, with column positions in place
/// of key paths. Made once per type, when it is first needed.
struct TableDeclaration: Sendable {
    struct ResolvedIndex: Sendable {
        let name: String
        /// Whether the type declares the name, so that no other name may replace it.
        let isNamed: Bool
        let positions: [Int]
        let isUnique: Bool
    }

    struct ResolvedReference: Sendable {
        let positions: [Int]
        let parent: RecordPlan
        let parentPositions: [Int]
        let onDelete: ColumnDefinition.Reference.Action
        let onUpdate: ColumnDefinition.Reference.Action
        let isDeferred: Bool
    }

    private(set) var indexes: [ResolvedIndex] = []
    private(set) var references: [ResolvedReference] = []
    /// Keyed by the column's position; never NULL.
    private(set) var defaults: [Int: Value] = [:]
    private(set) var fullText: ResolvedFullText?

    init<R: Record>(_ type: R.Type, _ plan: RecordPlan) throws(StoreError) {
        indexes = try Self.indexes(of: type, plan)
        for reference in R.references {
            references.append(try Self.resolve(reference, plan))
        }
        for declared in R.defaults {
            let position = try plan.position(of: declared.path)
            let found = try declared.value(ConditionColumn(plan, at: position))
            let isOfOtherCount = found.isDate && !plan.columns[position].countsFrom2001IfNew
            let value = isOfOtherCount ? found.value.countedFrom1970 : found.value
            if value != .null { defaults[position] = value }
        }
        fullText = try R.fullTextIndex.map { index throws(StoreError) in
            try ResolvedFullText(index, plan)
        }
    }

    private static func indexes<R: Record>(
        of type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) -> [ResolvedIndex] {
        var indexes: [ResolvedIndex] = []
        for index in R.indexes {
            guard !index.paths.isEmpty else {
                throw StoreError(
                    .misuse, "an index of \(plan.typeName) has no property",
                    hint: "Name one at least: Index(\\.title).", table: plan.table)
            }
            var positions: [Int] = []
            for path in index.paths { positions.append(try plan.position(of: path)) }
            let names = positions.map { plan.columns[$0].name }
            let name = index.name ?? (["index", plan.table] + names).joined(separator: "_")
            indexes.append(
                ResolvedIndex(
                    name: name, isNamed: index.name != nil, positions: positions,
                    isUnique: index.isUnique))
        }
        return indexes
    }

    private static func resolve<R: Record>(
        _ reference: Reference<R>, _ plan: RecordPlan
    ) throws(StoreError) -> ResolvedReference {
        var positions: [Int] = []
        for path in reference.paths { positions.append(try plan.position(of: path)) }
        let (parent, parentPositions) = try reference.parent()
        let columns = positions.map { plan.columns[$0] }
        let others = parentPositions.map { parent.columns[$0] }
        let isAlike = zip(columns, others).allSatisfy {
            $0.storage == $1.storage && ColumnEncoding.areAlike($0.encoding, $1.encoding)
        }
        guard !positions.isEmpty, columns.count == others.count, isAlike else {
            throw StoreError(
                .misuse,
                "a reference of \(plan.typeName) to \(parent.typeName) has other columns than "
                    + "what it refers to",
                hint: "Name as many properties, of the same types and in the same order, as the "
                    + "key of \(parent.typeName) has.", table: plan.table)
        }
        return ResolvedReference(
            positions: positions, parent: parent, parentPositions: parentPositions,
            onDelete: reference.onDelete, onUpdate: reference.onUpdate,
            isDeferred: reference.isDeferred)
    }

    /// Whether the type declares these columns unique together, in any order.
    func isUnique(_ positions: [Int], _ plan: RecordPlan) -> Bool {
        let wanted = Set(positions)
        return Set(plan.keyPositions) == wanted
            || indexes.contains { $0.isUnique && Set($0.positions) == wanted }
    }

    /// - Throws: `.misuse` unless the type declares that no two rows have the same value in the
    ///   column.
    static func requireUnique<R: Record>(
        _ position: Int, of type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) {
        if plan.keyPositions == [position] { return }
        let indexes = try indexes(of: type, plan)
        if indexes.contains(where: { $0.isUnique && $0.positions == [position] }) { return }
        let name = plan.columns[position].name
        throw StoreError(
            .misuse, "\(plan.typeName) does not declare that \(name) is unique",
            hint: "Declare static var indexes: [Index<Self>] "
                + "{ [Index(\\.\(name), isUnique: true)] }.",
            table: plan.table, column: name)
    }
}

// MARK: SQL

extension TableDeclaration.ResolvedIndex {
    func sql(_ plan: RecordPlan, name: String) throws(StoreError) -> String {
        let terms = positions.map { plan.quotedColumns[$0] }.joined(separator: ", ")
        return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(try name.quotedIdentifier()) "
            + "ON \(plan.quotedTable) (\(terms))"
    }
}

extension TableDeclaration.ResolvedReference {
    /// The table constraint.
    func sql(_ plan: RecordPlan) -> String {
        let names = positions.map { plan.quotedColumns[$0] }.joined(separator: ", ")
        return "FOREIGN KEY (\(names)) \(clause)"
    }

    /// The column constraint, which follows the column's name and type.
    var clause: String {
        let names = parentPositions.map { parent.quotedColumns[$0] }.joined(separator: ", ")
        return "REFERENCES \(parent.quotedTable) (\(names)) ON DELETE \(onDelete.rawValue) "
            + "ON UPDATE \(onUpdate.rawValue)"
            + (isDeferred ? " DEFERRABLE INITIALLY DEFERRED" : "")
    }
}
