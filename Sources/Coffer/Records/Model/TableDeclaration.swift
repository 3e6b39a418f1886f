/// A record type's declarations about its table beyond the columns, with column positions in place
/// of key paths. Made once per type, when it is first needed.
struct TableDeclaration: Sendable {
    struct ResolvedIndex: Sendable {
        let name: String
        /// Whether the type declares the name, so that no other name may replace it.
        let isNamed: Bool
        /// The columns; empty for an index of expressions.
        let positions: [Int]
        let expressions: [SQL]
        /// Whether the expressions are values inside of JSON.
        let isOfJSON: Bool
        let isUnique: Bool
        /// The condition of a partial index.
        let condition: SQL?

        /// Whether it is one of columns, for all rows.
        var isPlain: Bool { expressions.isEmpty && condition == nil }
    }

    struct ResolvedReference: Sendable {
        let positions: [Int]
        let parent: RecordPlan
        let parentPositions: [Int]
        let onDelete: ColumnDefinition.Reference.Action
        let onUpdate: ColumnDefinition.Reference.Action
        let isDeferred: Bool

        /// The columns with those that they refer to, in lower case of ASCII.
        var pairs: [Int: String] {
            let parents = parentPositions.map { parent.columns[$0].name.asciiLowercased }
            return Dictionary(zip(positions, parents)) { first, _ in first }
        }
    }

    private(set) var indexes: [ResolvedIndex] = []
    private(set) var references: [ResolvedReference] = []
    /// Keyed by the column's position; never NULL.
    private(set) var defaults: [Int: Value] = [:]
    private(set) var fullText: ResolvedFullText?
    /// Defaults that are computed for each row, by the column's position.
    private(set) var defaultExpressions: [Int: SQL] = [:]
    private(set) var checks: [SQL] = []
    /// By the column's position.
    private(set) var collations: [Int: Collation] = [:]
    private(set) var isAutoincrement = false
    private(set) var triggers: [ResolvedTrigger] = []
    /// The SELECT of a type whose records are the rows of a view.
    private(set) var view: SQL?

    init<R: Record>(_ type: R.Type, _ plan: RecordPlan) throws(StoreError) {
        indexes = try Self.indexes(of: type, plan)
        for reference in R.references {
            references.append(try Self.resolve(reference, plan))
        }
        for declared in R.defaults {
            let position = try plan.position(of: declared.path)
            try plan.requireSettable(position)
            try add(declared.source, position, plan)
        }
        checks = R.checks.map(\.sql)
        for (path, collation) in R.collations {
            let position = try plan.position(of: path)
            let column = plan.columns[position]
            guard column.storage == .text else {
                throw StoreError(
                    .misuse,
                    "static var collations of \(plan.typeName) names \(column.name), "
                        + "which holds no texts", table: plan.table, column: column.name)
            }
            collations[position] = collation
        }
        fullText = try R.fullTextIndex.map { index throws(StoreError) in
            try ResolvedFullText(index, plan)
        }
        for trigger in R.triggers {
            let resolved = try ResolvedTrigger(trigger, plan)
            guard !triggers.contains(where: { $0.name.isSameIdentifier(as: resolved.name) }) else {
                throw StoreError(
                    .misuse, "\(plan.typeName) declares two triggers \(resolved.name)",
                    hint: "Give one of them another name.", table: plan.table)
            }
            triggers.append(resolved)
        }
        view = R.view
        isAutoincrement = R.isAutoincrement
        try requireNoClausesOfView(plan)
        guard !isAutoincrement || plan.rowIDPosition != nil else {
            throw StoreError(
                .misuse,
                "static var isAutoincrement of \(plan.typeName) needs a key of one "
                    + "integer, in a table with row ids", table: plan.table)
        }
    }

    private func requireNoClausesOfView(_ plan: RecordPlan) throws(StoreError) {
        guard view != nil else { return }
        let isPlain =
            indexes.isEmpty && references.isEmpty && defaults.isEmpty && checks.isEmpty
            && defaultExpressions.isEmpty && collations.isEmpty && fullText == nil
            && triggers.isEmpty && !isAutoincrement && plan.generatedPositions.isEmpty
            && !plan.isWithoutRowID
        guard isPlain else {
            throw StoreError(
                .misuse, "\(plan.typeName) is a view, and declares clauses of a table",
                hint:
                    "Declare indexes, references, defaults, checks, collations, triggers, computed "
                    + "columns and the full-text index in the types that the view reads.",
                table: plan.table)
        }
    }

    private mutating func add<R: Record>(
        _ source: Default<R>.Source, _ position: Int, _ plan: RecordPlan
    ) throws(StoreError) {
        let column = plan.columns[position]
        switch source {
        case .value(let value):
            let found = try value(ConditionColumn(plan, at: position))
            let isOfOtherCount = found.isDate && !column.countsFrom2001IfNew
            let value = isOfOtherCount ? found.value.countedFrom1970 : found.value
            if value != .null { defaults[position] = value }
        case .sql(let sql): defaultExpressions[position] = sql
        case .now:
            guard column.encoding == nil, column.countsFrom2001IfNew else {
                throw StoreError(
                    .misuse, "\(column.name) has an encoding, so its default is not just now",
                    hint: "Write it as SQL: Default(\\.\(column.name), sql: …).",
                    table: plan.table, column: column.name)
            }
            // 2451910.5 is the day of 2001.
            defaultExpressions[position] = "(julianday('now') - 2451910.5) * 86400.0"
        }
    }

    private static func indexes<R: Record>(
        of type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) -> [ResolvedIndex] {
        var indexes: [ResolvedIndex] = []
        for index in R.indexes {
            guard !index.paths.isEmpty || !index.expressions.isEmpty else {
                throw StoreError(
                    .misuse, "an index of \(plan.typeName) has no property",
                    hint: "Name one at least: Index(\\.title).", table: plan.table)
            }
            var positions: [Int] = []
            var expressions = index.expressions
            var names = expressions.map { sql in
                SQLToken.tokens(of: sql.text).filter { $0.isName || $0.kind == .literal }
                    .map(\.name).joined(separator: "_")
            }
            for path in index.paths {
                let place = try plan.place(of: path)
                try require(place, fits: index, plan)
                switch place {
                case .column(let position):
                    positions.append(position)
                    names.append(plan.columns[position].name)
                case .json(let place):
                    try place.requireOrder()
                    expressions.append(try place.sql())
                    names.append(place.name.replacing(".", with: "_"))
                }
            }
            let name = index.name ?? (["index", plan.table] + names).joined(separator: "_")
            indexes.append(
                ResolvedIndex(
                    name: name, isNamed: index.name != nil, positions: positions,
                    expressions: expressions, isOfJSON: index.isOfJSON, isUnique: index.isUnique,
                    condition: index.condition))
        }
        return indexes
    }

    /// - Throws: `.misuse` for a place in JSON, if the index does not consent that no other program
    ///   writes the table, and for a column, if it does.
    private static func require<R: Record>(
        _ place: PropertyPlace, fits index: Index<R>, _ plan: RecordPlan
    ) throws(StoreError) {
        switch place {
        case .json(let place) where !index.isOfJSON:
            throw StoreError(
                .misuse,
                "an index of \(place.name) needs a function of Coffer, so that no other program "
                    + "can write the table",
                hint: "If that is fine, write Index(cofferOnly: …).", table: plan.table,
                column: plan.columns[place.position].name)
        case .column where index.isOfJSON:
            throw StoreError(
                .misuse, "an index that is only for Coffer names a column",
                hint: "Write Index(…) for an index of columns.", table: plan.table)
        default: break
        }
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
            || indexes.contains { $0.isUnique && $0.isPlain && Set($0.positions) == wanted }
    }

    /// - Throws: `.misuse` unless the type declares that no two rows have the same value in the
    ///   column.
    static func requireUnique<R: Record>(
        _ position: Int, of type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) {
        if plan.keyPositions == [position] { return }
        let indexes = try indexes(of: type, plan)
        let isDeclared = indexes.contains {
            $0.isUnique && $0.isPlain && $0.positions == [position]
        }
        if isDeclared { return }
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
    func sql(
        _ plan: RecordPlan, name: String, _ connection: Connection
    ) throws(StoreError) -> String {
        var schema = SchemaExpression(plan: plan, connection: connection, isNew: false)
        schema.isOnlyForCoffer = isOfJSON
        var terms = positions.map { plan.quotedColumns[$0] }
        for expression in expressions { terms.append(try schema.text(expression)) }
        let clause = try condition.map { (sql) throws(StoreError) in
            " WHERE \(try schema.text(sql))"
        }
        return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(try name.quotedIdentifier()) "
            + "ON \(plan.quotedTable) (\(terms.joined(separator: ", ")))\(clause ?? "")"
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
