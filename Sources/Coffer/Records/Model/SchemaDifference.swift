/// A difference between a record type and its table that `create(_:)` cannot resolve.
public struct SchemaDifference: Sendable, Hashable, CustomStringConvertible {
    /// The column, or the first column of an index or foreign key. `nil` if the table itself
    /// differs.
    public let column: String?
    /// The type's declaration, in SQL terms.
    public let expected: String
    /// The table's actual definition.
    public let found: String

    /// Column, expected and found in one line.
    public var description: String {
        "\(column.map { "column \($0): " } ?? "")expected \(expected), found \(found)"
    }
}

extension Reading where Self: ~Copyable {
    /// The differences between a record type and its table that `create(_:)` cannot resolve.
    ///
    /// Empty if there is no table yet. The comparison ignores defaults, ON CONFLICT, the order of
    /// columns, whether a foreign key is deferred, and what the type does not declare: triggers,
    /// CHECK, COLLATE, AUTOINCREMENT, and indexes that are not unique, partial, or on an
    /// expression. A declared CHECK or index of expressions must have the same text.
    ///
    /// - Throws: `StoreError` `.misuse` for a type that cannot be reflected, where the error names
    ///   the declaration that is missing; `.damaged`.
    public func schemaDifferences<R: Record>(of type: R.Type) throws -> [SchemaDifference] {
        try RecordSchema(try RecordPlan.of(type), connection()).differences()
    }
}

/// Compares a record type with its table.
///
/// `Reading.schemaDifferences(of:)` says what it ignores.
struct SchemaComparison {
    private let plan: RecordPlan
    private let declaration: TableDeclaration
    private let table: ExistingTable

    /// Differences that `create(_:)` cannot resolve: row ids first, then columns, indexes and
    /// foreign keys.
    private(set) var differences: [SchemaDifference] = []
    /// Positions of columns that ALTER TABLE can add.
    private(set) var addableColumns: [Int] = []
    /// Indexes that the table lacks.
    private(set) var missingIndexes: [TableDeclaration.ResolvedIndex] = []

    init(
        _ plan: RecordPlan, _ table: ExistingTable, _ connection: Connection
    ) throws(StoreError) {
        self.plan = plan
        self.table = table
        declaration = try plan.declaration()
        compareRowID()
        try compareColumns(connection)
        try compareClauses(connection)
        compareIndexes()
        try compareOtherIndexes(connection)
        compareForeignKeys()
    }

    private mutating func note(_ column: String?, expected: String, found: String) {
        differences.append(SchemaDifference(column: column, expected: expected, found: found))
    }

    private mutating func compareRowID() {
        guard table.isWithoutRowID != plan.isWithoutRowID else { return }
        let words = ["a table with row ids", "a table WITHOUT ROWID"]
        note(
            nil, expected: words[plan.isWithoutRowID ? 1 : 0],
            found: words[table.isWithoutRowID ? 1 : 0])
    }

    // MARK: Columns

    private mutating func compareColumns(_ connection: Connection) throws(StoreError) {
        for (position, column) in plan.columns.enumerated() {
            let existing = table.columns.first { $0.name.isSameIdentifier(as: column.name) }
            if let existing {
                compare(position, existing)
                try compareExpression(position, existing, connection)
            } else if plan.isAddable(position, declaration) {
                addableColumns.append(position)
            } else {
                note(
                    column.name, expected: plan.expected(position).description,
                    found: "no such column")
            }
        }
        // A computed column that the type has not is no value that a record would lose.
        for existing in table.columns
        where !existing.isGenerated
            && !plan.columns.contains(where: { $0.name.isSameIdentifier(as: existing.name) })
        {
            note(existing.name, expected: "no such column", found: existing.description)
        }
    }

    private mutating func compare(_ position: Int, _ existing: ExistingColumn) {
        let expected = plan.expected(position)
        let isRowID = plan.rowIDPosition == position
        // NUMERIC, such as BOOLEAN of another program, may keep the values unchanged as well.
        let isKept =
            existing.affinity == .numeric && expected.affinity != .blob
            && existing.affinity.keeps(plan.columns[position])
        // The row id is never NULL, with or without NOT NULL. Only the type INTEGER makes a row id.
        let fits =
            (existing.affinity == expected.affinity || isKept)
            && existing.keyRank == expected.keyRank
            && existing.isGenerated == expected.isGenerated
            && (existing.isNotNull == expected.isNotNull || isRowID)
            && (!isRowID || existing.type.asciiLowercased == "integer")
        if !fits {
            note(expected.name, expected: expected.description, found: existing.description)
        }
    }

    /// Compares how the file computes a column with what the type declares.
    private mutating func compareExpression(
        _ position: Int, _ existing: ExistingColumn, _ connection: Connection
    ) throws(StoreError) {
        guard let generated = plan.columns[position].generated, existing.isGenerated else { return }
        let schema = SchemaExpression(plan: plan, connection: connection, isNew: false)
        let found = GeneratedExpression.signature(of: existing.name, in: table.sql)
        guard try found != generated.signature(schema) else { return }
        note(
            existing.name, expected: try generated.clause(schema),
            found: found.map { $0.map(\.text).joined(separator: " ") } ?? existing.description)
    }

    // MARK: Clauses

    /// Looks for the clauses that the type declares. Others are left alone.
    private mutating func compareClauses(_ connection: Connection) throws(StoreError) {
        let tokens = SQLToken.tokens(of: table.sql)
        if declaration.isAutoincrement, !tokens.contains(where: { $0.isWord("autoincrement") }),
            let position = plan.rowIDPosition
        {
            note(
                plan.columns[position].name, expected: "AUTOINCREMENT", found: "no AUTOINCREMENT")
        }
        for (position, collation) in declaration.collations.sorted(by: { $0.key < $1.key }) {
            let name = plan.columns[position].name
            guard table.columns.contains(where: { $0.name.isSameIdentifier(as: name) }) else {
                continue
            }
            let found = try connection.collation(ofColumn: name, in: plan.table)
            if found?.isSameIdentifier(as: collation.rawValue) != true {
                note(
                    name, expected: "COLLATE \(collation.rawValue)",
                    found: "COLLATE \(found ?? "BINARY")")
            }
        }
        let schema = SchemaExpression(plan: plan, connection: connection, isNew: false)
        let checks = SchemaExpression.checks(of: table.sql)
        for check in declaration.checks {
            let text = try schema.text(check)
            if !checks.contains(SchemaExpression.signature(text)) {
                note(nil, expected: "CHECK (\(text))", found: "no such CHECK")
            }
        }
    }

    // MARK: Indexes

    /// Looks for declared indexes of expressions, or of a part of the rows.
    private mutating func compareOtherIndexes(_ connection: Connection) throws(StoreError) {
        for index in declaration.indexes where !index.isPlain {
            let text = try index.sql(plan, name: index.name, connection)
            let wanted = SchemaExpression.signature(ofIndex: text)
            let isThere = table.indexes.contains { existing in
                existing.isUnique == index.isUnique
                    && SchemaExpression.signature(ofIndex: existing.sql) == wanted
            }
            if isThere { continue }
            let namesake = table.indexes.first { $0.name.isSameIdentifier(as: index.name) }
            guard index.isNamed, let namesake else {
                missingIndexes.append(index)
                continue
            }
            note(
                index.positions.first.map { plan.columns[$0].name }, expected: text,
                found: namesake.sql.isEmpty ? namesake.description : namesake.sql)
        }
    }

    private mutating func compareIndexes() {
        var notedNames: Set<String> = []
        for index in declaration.indexes where index.isPlain {
            let names = index.positions.map { plan.columns[$0].name }
            if table.indexes.contains(where: { $0.isUnique == index.isUnique && $0.covers(names) })
            {
                continue
            }
            // A declared index of this name is not a difference: see `RecordSchema.freeName(for:)`.
            let namesake = table.indexes.first { existing in
                existing.name.isSameIdentifier(as: index.name) && !isDeclared(existing)
            }
            guard let namesake else {
                missingIndexes.append(index)
                continue
            }
            notedNames.insert(namesake.name)
            note(names[0], expected: description(of: index), found: namesake.description)
        }
        for existing in table.indexes where existing.isUnique && existing.isPlain {
            let isDeclared = declaration.indexes.contains { index in
                index.isUnique && index.isPlain
                    && existing.covers(index.positions.map { plan.columns[$0].name })
            }
            if !isDeclared, !notedNames.contains(existing.name) {
                note(
                    existing.columns.first ?? nil, expected: "no unique index",
                    found: existing.description)
            }
        }
    }

    private func isDeclared(_ existing: ExistingIndex) -> Bool {
        declaration.indexes.contains { index in
            index.isUnique == existing.isUnique && index.isPlain
                && existing.covers(index.positions.map { plan.columns[$0].name })
        }
    }

    private func description(of index: TableDeclaration.ResolvedIndex) -> String {
        ExistingIndex(
            name: index.name, isUnique: index.isUnique, isPartial: false,
            columns: index.positions.map { plan.columns[$0].name }
        ).description
    }

    // MARK: Foreign keys

    private mutating func compareForeignKeys() {
        var others = table.foreignKeys
        var missing: [ExistingForeignKey] = []
        for reference in declaration.references {
            let expected = plan.expected(reference)
            let parentKey = reference.parent.keyPositions.map { reference.parent.columns[$0].name }
            if let index = others.firstIndex(where: { $0.means(expected, parentKey: parentKey) }) {
                others.remove(at: index)
            } else if !addableColumns.contains(reference.positions[0]) {
                missing.append(expected)
            }
        }
        for expected in missing {
            let index = others.firstIndex { $0.hasSameColumns(as: expected) }
            note(
                expected.columns[0], expected: expected.description,
                found: index.map { others.remove(at: $0).description } ?? "no foreign key")
        }
        for other in others {
            note(other.columns.first, expected: "no foreign key", found: other.description)
        }
    }
}

extension RecordPlan {
    /// The column as the type declares it.
    func expected(_ position: Int) -> ExistingColumn {
        ExistingColumn(
            name: columns[position].name, type: columns[position].declaredType,
            isNotNull: isNotNull(position),
            keyRank: (keyPositions.firstIndex(of: position) ?? -1) + 1,
            isGenerated: columns[position].generated != nil)
    }

    func isNotNull(_ position: Int) -> Bool {
        if !columns[position].isNullable { return true }
        return keyPositions.contains(position) && rowIDPosition != position
    }

    fileprivate func expected(_ reference: TableDeclaration.ResolvedReference) -> ExistingForeignKey
    {
        ExistingForeignKey(
            columns: reference.positions.map { columns[$0].name }, parent: reference.parent.table,
            parentColumns: reference.parentPositions.map { reference.parent.columns[$0].name },
            onDelete: reference.onDelete.rawValue, onUpdate: reference.onUpdate.rawValue)
    }

    /// Whether ALTER TABLE can add the column. A key cannot gain columns. Existing rows need NULL
    /// or a default. A foreign key column must start as NULL and be the only column of its only
    /// reference.
    func isAddable(_ position: Int, _ declaration: TableDeclaration) -> Bool {
        guard !keyPositions.contains(position) else { return false }
        if let generated = columns[position].generated { return !generated.isStored }
        // "The column may not have a default value of … an expression in parentheses", if there are
        // rows: https://www.sqlite.org/lang_altertable.html#alter_table_add_column
        guard declaration.defaultExpressions[position] == nil else { return false }
        let hasDefault = declaration.defaults[position] != nil
        let references = declaration.references.filter { $0.positions.contains(position) }
        guard references.isEmpty else {
            return columns[position].isNullable && !hasDefault && references.count == 1
                && references[0].positions.count == 1
        }
        return columns[position].isNullable || hasDefault
    }
}
