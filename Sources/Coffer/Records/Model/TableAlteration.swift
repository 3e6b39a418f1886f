/// Where the columns of a record type get their values from when its table is made again.
///
/// ```swift
/// try tx.alter(Book.self) { table in
///     table.rename("number", to: \.isbn)
///     table.set(\.title, sql: "trim(title)")
///     table.set(\.copies, to: 1)
///     table.drop("subtitle")
/// }
/// ```
///
/// A column that the table and the type both have keeps its values without being mentioned. A new
/// one gets its default, or NULL.
public struct TableAlteration<R: Record> {
    enum Source {
        case column(String)
        case sql(SQL)
        case value(@Sendable (ConditionColumn) throws(StoreError) -> ConditionValue)
    }

    private(set) var sources: [(path: PartialKeyPath<R>, source: Source)] = []
    private(set) var dropped: [String] = []
    private(set) var dropsUndeclared = false

    init() {}

    /// Lets a property take over the values of a column of another name.
    ///
    /// Indexes of the column, and foreign keys of other tables to it, get the new name.
    ///
    /// - Parameters:
    ///   - column: The column's name in the file.
    ///   - path: The property.
    public mutating func rename(_ column: String, to path: PartialKeyPath<R>) {
        sources.append((path, .column(column)))
    }

    /// Computes a property's values from the old rows.
    ///
    /// ```swift
    /// table.set(\.isbn, sql: "CAST(number AS TEXT)")
    /// ```
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - expression: SQL over the columns of the old table; `\( )` binds and never splices. A
    ///     date without an encoding counts in seconds since 2001.
    public mutating func set(_ path: PartialKeyPath<R>, sql expression: SQL) {
        sources.append((path, .sql(expression)))
    }

    /// Gives a property the same value in all rows.
    public mutating func set<V: Encodable & Sendable>(_ path: KeyPath<R, V>, to value: V) {
        sources.append((path, .value { column throws(StoreError) in try column.value(value) }))
    }

    /// Drops columns that the type does not have, with their values.
    ///
    /// A column that is neither in the type nor dropped is an error, so that none gets lost.
    public mutating func drop(_ columns: String...) {
        dropped += columns
    }

    /// Drops the clauses of the table that the type does not declare: CHECK, COLLATE,
    /// AUTOINCREMENT, ON CONFLICT, STRICT, and generated columns.
    ///
    /// Without this call a table with such a clause is an error.
    public mutating func dropUndeclaredClauses() {
        dropsUndeclared = true
    }
}

/// Makes a record type's table again, as the type wants it.
struct RecordAlteration {
    private let plan: RecordPlan
    private let connection: Connection
    private let remake: TableRemake
    private let columns: [ExistingColumn]
    private let hasRowIDs: Bool
    /// The SQL that gives a column its values; the others get NULL.
    private var values: [Int: SQL] = [:]
    /// Positions of columns whose values may be of another storage class than the type reads.
    private var checked: Set<Int> = []
    private var changes = TableRemake.Changes()

    private init(_ plan: RecordPlan, _ remake: TableRemake) throws(StoreError) {
        self.plan = plan
        self.remake = remake
        connection = remake.connection
        let table = try ExistingTable(remake.table, connection)
        columns = table.columns
        hasRowIDs = !table.isWithoutRowID
    }

    static func run<R: Record>(
        _ alteration: TableAlteration<R>, _ connection: Connection
    ) throws(StoreError) {
        let plan = try RecordPlan.of(R.self)
        try connection.altering(plan.table) { remake throws(StoreError) in
            var work = try RecordAlteration(plan, remake)
            for (path, source) in alteration.sources {
                try work.set(try plan.position(of: path), source)
            }
            try work.drop(alteration.dropped)
            try work.keepOthers()
            if !alteration.dropsUndeclared { try work.requireDeclared() }
            try work.finish()
            try connection.refillFullTexts(of: remake.table)
        }
    }

    // MARK: Columns

    private func column(_ name: String) throws(StoreError) -> ExistingColumn {
        if let found = columns.first(where: { $0.name.isSameIdentifier(as: name) }) { return found }
        throw StoreError(
            .notFound, "the table has no column \(name)",
            hint: "Its columns are \(columns.map(\.name).joined(separator: ", ")).",
            table: plan.table, column: name)
    }

    private func position(of name: String) -> Int? {
        plan.columns.firstIndex { $0.name.isSameIdentifier(as: name) }
    }

    private mutating func set<R: Record>(
        _ position: Int, _ source: TableAlteration<R>.Source
    ) throws(StoreError) {
        let name = plan.columns[position].name
        guard values[position] == nil else {
            throw StoreError(
                .misuse, "\(name) gets its values twice", table: plan.table, column: name)
        }
        switch source {
        case .sql(let sql):
            values[position] = "(\(sql))"
            checked.insert(position)
        case .value(let value):
            let found = try value(ConditionColumn(plan, at: position))
            let isOfOtherCount = found.isDate && !plan.columns[position].countsFrom2001IfNew
            values[position] = SQL(
                text: "?",
                arguments: [isOfOtherCount ? found.value.countedFrom1970 : found.value])
        case .column(let old):
            let found = try column(old)
            let isTwice = changes.renamed[old.asciiLowercased] != nil
            guard !isTwice, self.position(of: old).map({ $0 == position }) ?? true else {
                throw StoreError(
                    .misuse, "the column \(old) cannot become \(name): another property has it",
                    hint: "Copy it: table.set(\\.\(name), sql: \"\(old)\").", table: plan.table,
                    column: old)
            }
            changes.renamed[old.asciiLowercased] = name
            try copy(found, to: position)
        }
    }

    private mutating func drop(_ names: [String]) throws(StoreError) {
        for name in names {
            let found = try column(name)
            guard position(of: name) == nil, changes.renamed[name.asciiLowercased] == nil else {
                throw StoreError(
                    .misuse, "\(plan.typeName) has the column \(name), which is to be dropped",
                    table: plan.table, column: name)
            }
            changes.dropped.insert(found.name.asciiLowercased)
        }
    }

    /// Copies a column of the old table, so that its values mean the same to the type.
    private mutating func copy(
        _ old: ExistingColumn, to position: Int
    ) throws(StoreError) {
        let column = plan.columns[position]
        let sql: SQL = "\(identifier: remake.table).\(identifier: old.name)"
        values[position] = sql
        if old.affinity != plan.expected(position).affinity { checked.insert(position) }
        let didCountFrom2001 = old.type.isSameIdentifier(as: DateColumns.declaredType)
        guard didCountFrom2001 != column.countsFrom2001IfNew else { return }
        if didCountFrom2001 {
            throw mismatch(
                position, old, "Convert its dates: table.set(\\.\(column.name), sql: …)."
            )
        }
        // Another program, or a type with an encoding, has counted from 2001 in this column.
        guard column.encoding == nil else { return }
        checked.insert(position)
        values[position] = """
            CASE WHEN typeof(\(sql)) IN ('integer', 'real') THEN \(sql) - 978307200 \
            ELSE \(sql) END
            """
    }

    private func mismatch(
        _ position: Int, _ old: ExistingColumn?, _ hint: String
    ) -> StoreError {
        let expected = plan.expected(position)
        let difference = SchemaDifference(
            column: expected.name, expected: expected.description,
            found: old?.description ?? "no such column")
        return StoreError(
            .mismatch, "the table and \(plan.typeName) differ: \(difference)", hint: hint,
            table: plan.table, column: expected.name)
    }

    /// Copies the columns that table and type have, and gives new ones their default.
    ///
    /// - Throws: `.mismatch` for a column without values, and for one that would get lost.
    private mutating func keepOthers() throws(StoreError) {
        let declaration = try plan.declaration()
        for position in plan.columns.indices where values[position] == nil {
            let name = plan.columns[position].name
            let old = columns.first { $0.name.isSameIdentifier(as: name) }
            if let old, changes.renamed[old.name.asciiLowercased] == nil {
                try copy(old, to: position)
            } else if let value = declaration.defaults[position] {
                values[position] = SQL(text: "?", arguments: [value])
            } else if let expression = declaration.defaultExpressions[position] {
                values[position] = "(\(expression))"
                checked.insert(position)
            } else if plan.rowIDPosition == position, hasRowIDs,
                let rowID = try connection.freeRowIDName(of: remake.table, schema: "main")
            {
                values[position] = SQL(text: rowID)
            } else if plan.isNotNull(position) {
                throw mismatch(
                    position, nil,
                    "Say where its values come from: table.rename(…, to: \\.\(name)), or "
                        + "table.set(\\.\(name), to: …).")
            }
        }
        for old in columns where position(of: old.name) == nil {
            let name = old.name.asciiLowercased
            guard changes.dropped.contains(name) || changes.renamed[name] != nil else {
                throw StoreError(
                    .mismatch,
                    "\(plan.typeName) has no column \(old.name), whose values would "
                        + "be lost",
                    hint: "Name it: table.drop(\"\(old.name)\"), or table.rename(\"\(old.name)\", "
                        + "to: …).",
                    table: plan.table, column: old.name)
            }
        }
        changes.renamed = changes.renamed.filter { !$1.isSameIdentifier(as: $0) }
    }

    // MARK: Making

    /// - Throws: `.mismatch` for a clause of the table that the type does not declare, unless it is
    ///   to be dropped.
    private func requireDeclared() throws(StoreError) {
        let declaration = try plan.declaration()
        let tokens = SQLToken.tokens(of: remake.sql)
        let others = ["conflict", "generated", "strict", "as"]
        for token in tokens where token.kind == .word {
            let word = token.name.asciiLowercased
            if others.contains(word) || word == "autoincrement" && !declaration.isAutoincrement {
                throw undeclared(token.name.uppercased())
            }
        }
        let schema = SchemaExpression(plan: plan, connection: connection, isNew: true)
        var checks = SchemaExpression.checks(of: remake.sql)
        for check in declaration.checks {
            checks.remove(SchemaExpression.signature(try schema.text(check)))
        }
        if let check = checks.first { throw undeclared("CHECK (\(check.joined(separator: " ")))") }
        for column in columns where !changes.dropped.contains(column.name.asciiLowercased) {
            let found = try connection.collation(ofColumn: column.name, in: remake.table)
            guard let found, !found.isSameIdentifier(as: "BINARY") else { continue }
            let name = changes.renamed[column.name.asciiLowercased] ?? column.name
            let collation = position(of: name).flatMap { declaration.collations[$0] }
            guard collation?.rawValue.isSameIdentifier(as: found) == true else {
                throw undeclared("COLLATE \(found)")
            }
        }
    }

    private func undeclared(_ clause: String) -> StoreError {
        StoreError(
            .mismatch, "\(plan.typeName) does not declare a \(clause), which the table has",
            hint: "Declare it, or give it up with table.dropUndeclaredClauses(). tx.table(…)"
                + ".renameColumn and dropColumns keep it.",
            table: plan.table)
    }

    private func finish() throws(StoreError) {
        let copies = values.sorted { $0.key < $1.key }.map {
            TableRemake.Copy(column: plan.columns[$0.key].name, value: $0.value)
        }
        let schema = RecordSchema(plan, connection)
        try remake.run(changes, copies) { name throws(StoreError) in
            try schema.tableSQL(named: name)
        }
        try requireReadable()
        // Adds the indexes that the type has gained, and compares everything.
        try schema.create()
    }

    /// - Throws: `.mismatch` for a value of another storage class than the type reads.
    /// - Complexity: O(*rows*) if a column changed its type, or has values of an expression.
    private func requireReadable() throws(StoreError) {
        let positions = checked.sorted()
        guard !positions.isEmpty else { return }
        let terms = positions.map { position in
            let name = plan.qualifiedColumns[position]
            let classes = plan.columns[position].storage.readableClasses
                .map { "'\($0)'" }.joined(separator: ", ")
            return "total(typeof(\(name)) NOT IN (\(classes), 'null'))"
        }
        let row = try connection.firstRow(
            SQL(
                text: "SELECT \(terms.joined(separator: ", ")) FROM main.\(plan.quotedTable)"),
            isReadOnly: true)
        for (index, position) in positions.enumerated() {
            guard let count = row?[index], count != .real(0) else { continue }
            let name = plan.columns[position].name
            throw StoreError(
                .mismatch,
                "values of \(name) are not \(plan.columns[position].storage.sqlType) in some rows",
                hint: "Convert them: table.set(\\.\(name), sql: \"CAST(… AS …)\").",
                table: plan.table, column: name)
        }
    }
}

extension Storage {
    /// What `typeof` may return for values that a column of this storage class is read from.
    fileprivate var readableClasses: [String] {
        switch self {
        case .integer: ["integer"]
        case .real: ["real", "integer"]
        case .text: ["text"]
        case .blob: ["blob"]
        }
    }
}
