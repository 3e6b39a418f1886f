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
    /// AUTOINCREMENT, UNIQUE, DEFAULT, foreign keys, ON CONFLICT, and STRICT.
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
    private let table: ExistingTable
    /// Whether a row gets other values than it had.
    private var computes = false
    /// Columns whose values SQLite converts because their type changes.
    private var converted: [(old: ExistingColumn, position: Int)] = []
    /// The SQL that gives a column its values; the others get NULL.
    private var values: [Int: SQL] = [:]
    /// Positions of columns whose values may be of another storage class than the type reads.
    private var checked: Set<Int> = []
    private var changes = TableRemake.Changes()

    private init(_ plan: RecordPlan, _ remake: TableRemake) throws(StoreError) {
        self.plan = plan
        self.remake = remake
        connection = remake.connection
        table = try ExistingTable(remake.table, connection)
        columns = table.columns.filter { !$0.isGenerated }
        hasRowIDs = !table.isWithoutRowID
    }

    static func run<R: Record>(
        _ alteration: TableAlteration<R>, _ connection: Connection
    ) throws(StoreError) {
        let plan = try RecordPlan.of(R.self)
        try connection.altering(plan.table) { remake throws(StoreError) in
            var work = try RecordAlteration(plan, remake)
            try work.requireGeneratedDeclared()
            for (path, source) in alteration.sources {
                try work.set(try plan.position(of: path), source)
            }
            try work.drop(alteration.dropped)
            try work.keepOthers()
            try work.requireNoHistory()
            if !alteration.dropsUndeclared { try work.requireDeclared() }
            try work.finish()
            try connection.refillFullTexts(of: remake.table)
        }
    }

    /// - Throws: `.unsupported` for a computed column that the type does not declare; `.mismatch`
    ///   for values of a column that is computed from then on.
    private func requireGeneratedDeclared() throws(StoreError) {
        for column in table.columns where column.isGenerated {
            guard let position = position(of: column.name), plan.columns[position].generated != nil
            else {
                throw StoreError(
                    .unsupported, "\(column.name) is computed by the file, and not in the type",
                    hint: "Declare it in static var generated, or drop it before with "
                        + "tx.table(…).dropColumns(\"\(column.name)\").",
                    table: plan.table, column: column.name)
            }
        }
        for column in columns {
            guard let position = position(of: column.name), plan.columns[position].generated != nil
            else { continue }
            throw StoreError(
                .mismatch,
                "the values of \(column.name) would be lost, as the file computes others",
                hint:
                    "Drop it before with tx.table(…).dropColumns(\"\(column.name)\"), or give the "
                    + "computed column another name.", table: plan.table, column: column.name)
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
        try plan.requireSettable(position)
        guard values[position] == nil else {
            throw StoreError(
                .misuse, "\(name) gets its values twice", table: plan.table, column: name)
        }
        switch source {
        case .sql(let sql):
            computes = true
            values[position] = "(\(sql))"
            checked.insert(position)
        case .value(let value):
            computes = true
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
        if old.affinity != plan.expected(position).affinity {
            checked.insert(position)
            converted.append((old, position))
        }
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
        computes = true
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
        for position in plan.columns.indices
        where values[position] == nil && plan.columns[position].generated == nil {
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
        for (old, new) in changes.renamed where !new.isSameIdentifier(as: old) {
            let other = columns.first { $0.name.isSameIdentifier(as: new) }
            guard let other, changes.renamed[other.name.asciiLowercased] == nil else { continue }
            throw StoreError(
                .misuse, "the table has a column \(new), whose values \(old) would replace",
                hint:
                    "Say so with table.set(\\.\(new), sql: \"\(old)\") and table.drop(\"\(old)\").",
                table: plan.table, column: new)
        }
        changes.renamed = changes.renamed.filter { !$1.isSameIdentifier(as: $0) }
        let places = plan.columns.compactMap { column in
            table.columns.firstIndex { old in
                (changes.renamed[old.name.asciiLowercased] ?? old.name)
                    .isSameIdentifier(as: column.name)
            }
        }
        // A dropped column and a new one would shift the values in between.
        changes.isReordered =
            places != Array(places.indices)
            || !changes.dropped.isEmpty && plan.columns.count > places.count
        changes.added = Set(
            plan.columns.map(\.name.asciiLowercased)
        ).subtracting(table.columns.map(\.name.asciiLowercased))
    }

    /// - Parameter newKey: The new key's columns, in lower case of ASCII.
    /// - Throws: `.unsupported` if another table refers to the key without naming its columns, and
    ///   would refer to other rows.
    private func requireNoImplicitReference(_ newKey: [String]) throws(StoreError) {
        let old = columns.filter { $0.keyRank > 0 }.sorted { $0.keyRank < $1.keyRank }
            .map { (changes.renamed[$0.name.asciiLowercased] ?? $0.name).asciiLowercased }
        guard old != newKey else { return }
        for row in try connection.rows(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0",
            isReadOnly: true)
        {
            let name: String = try row.read("name")
            let keys = try ExistingTable(name, connection).foreignKeys
            let isImplicit = keys.contains {
                $0.parentColumns.isEmpty && $0.parent.isSameIdentifier(as: remake.table)
            }
            guard isImplicit, !name.isSameIdentifier(as: remake.table) else { continue }
            throw StoreError(
                .unsupported,
                "a foreign key of \(name) refers to the key of the table, which changes",
                hint: "Alter that table before, so that it names the columns.", table: plan.table)
        }
    }

    /// The triggers of a history record no row of a table that is made again.
    ///
    /// - Throws: `.unsupported` if rows get other values, and the table has a history.
    private func requireNoHistory() throws(StoreError) {
        let newNames = plan.keyPositions.map { plan.columns[$0].name.asciiLowercased }
        let key = Set(
            columns.filter { $0.keyRank > 0 }.map { old in
                (changes.renamed[old.name.asciiLowercased] ?? old.name).asciiLowercased
            })
        let newKey = Set(newNames)
        try requireNoImplicitReference(newNames)
        guard computes || key != newKey || !converted.isEmpty else { return }
        let history = try connection.firstRow(
            """
            SELECT name FROM main.sqlite_master WHERE type = 'trigger'
            AND tbl_name = \(remake.table) COLLATE NOCASE
            AND name = \("coffer:\(remake.table):update")
            """, isReadOnly: true)
        guard history == nil else {
            throw StoreError(
                .unsupported, "the history of the table would miss that its rows change",
                hint: "End it before with stopKeepingHistory(of:), and begin another one after.",
                table: plan.table)
        }
    }

    // MARK: Making

    /// - Throws: `.mismatch` for a clause of the table that the type does not declare, unless it is
    ///   to be dropped.
    private func requireDeclared() throws(StoreError) {
        let declaration = try plan.declaration()
        let tokens = SQLToken.tokens(of: remake.sql)
        let others = ["conflict", "strict"]
        for token in tokens where token.kind == .word {
            let word = token.name.asciiLowercased
            if others.contains(word) || word == "autoincrement" && !declaration.isAutoincrement {
                throw undeclared(token.name.uppercased())
            }
        }
        try requireDeclaredConstraints(declaration)
        let schema = SchemaExpression(plan: plan, connection: connection, isNew: true)
        let renamed = changes.renamed
        var checks = Set(
            SchemaExpression.checks(of: remake.sql).map { check in
                check.map { renamed[$0.text].map { SQLText($0.asciiLowercased) } ?? $0 }
            })
        for check in declaration.checks {
            checks.remove(SchemaExpression.signature(try schema.text(check)))
        }
        if let check = checks.first {
            throw undeclared("CHECK (\(check.map(\.text).joined(separator: " ")))")
        }
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

    /// The same for UNIQUE, foreign keys and DEFAULT, which the pragmas describe.
    private func requireDeclaredConstraints(
        _ declaration: TableDeclaration
    ) throws(StoreError) {
        func positions(_ names: [String?]) -> [Int]? {
            var found: [Int] = []
            for name in names {
                guard let name, !changes.dropped.contains(name.asciiLowercased),
                    let position = position(of: changes.renamed[name.asciiLowercased] ?? name)
                else { return nil }
                found.append(position)
            }
            return found
        }
        for index in table.indexes where index.isUnique && index.sql.isEmpty {
            guard let positions = positions(index.columns) else { continue }
            guard declaration.isUnique(positions, plan) else { throw undeclared("UNIQUE") }
        }
        try requireDeclaredKeyCollations(declaration)
        let isDeferred = SQLToken.tokens(of: remake.sql).contains { $0.isWord("deferrable") }
        for key in table.foreignKeys {
            guard let positions = positions(key.columns) else { continue }
            let isDeclared = declaration.references.contains {
                $0.pairs == pairs(key, positions, $0.parent)
                    && $0.parent.table.isSameIdentifier(as: key.parent)
                    && $0.onDelete.rawValue.isSameIdentifier(as: key.onDelete)
                    && $0.onUpdate.rawValue.isSameIdentifier(as: key.onUpdate)
                    && (!isDeferred || $0.isDeferred)
            }
            guard isDeclared else { throw undeclared("foreign key of \(key.description)") }
        }
        for row in try connection.rows(
            "PRAGMA main.table_info(\(identifier: remake.table))", isReadOnly: true)
        where row["dflt_value"] != .null {
            let name: String = try row.read("name")
            guard let position = positions([name])?.first else { continue }
            guard
                declaration.defaults[position] != nil
                    || declaration.defaultExpressions[position] != nil
            else { throw undeclared("DEFAULT of \(name)") }
        }
    }

    /// The columns of a foreign key with those that they refer to, in lower case of ASCII.
    private func pairs(
        _ key: ExistingForeignKey, _ positions: [Int], _ parent: RecordPlan
    ) -> [Int: String] {
        let parents =
            key.parentColumns.isEmpty
            ? parent.keyPositions.map { parent.columns[$0].name } : key.parentColumns
        let isSelf = key.parent.isSameIdentifier(as: remake.table)
        let names = parents.map { name in
            (isSelf ? changes.renamed[name.asciiLowercased] ?? name : name).asciiLowercased
        }
        return Dictionary(zip(positions, names)) { first, _ in first }
    }

    /// A UNIQUE or PRIMARY KEY may compare otherwise than its column does.
    private func requireDeclaredKeyCollations(
        _ declaration: TableDeclaration
    ) throws(StoreError) {
        for index in try connection.rows(
            "PRAGMA main.index_list(\(identifier: remake.table))", isReadOnly: true)
        where index["origin"] != .text("c") {
            let name: String = try index.read("name")
            for term in try connection.rows(
                "PRAGMA main.index_xinfo(\(identifier: name))", isReadOnly: true)
            where term["key"] == .integer(1) {
                guard let column = try term.read("name", as: String?.self),
                    let position = position(of: changes.renamed[column.asciiLowercased] ?? column)
                else { continue }
                let collation = try term.read("coll", as: String?.self) ?? "BINARY"
                let declared = declaration.collations[position]?.rawValue ?? "BINARY"
                guard collation.isSameIdentifier(as: declared) else {
                    throw undeclared("COLLATE \(collation)")
                }
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
        try requireExactConversions()
        let schema = RecordSchema(plan, connection)
        try remake.run(changes, copies) { name throws(StoreError) in
            try schema.tableSQL(named: name)
        }
        try requireReadable()
        // Adds the indexes that the type has gained, and compares everything.
        try schema.create()
    }

    /// SQLite would make 7 of `'007'` without a word.
    ///
    /// - Throws: `.mismatch` for a value that changes if it is converted and converted back.
    private func requireExactConversions() throws(StoreError) {
        for (old, position) in converted {
            // Unary plus, so that the column's own affinity converts nothing.
            let value = "+\(identifier: old.name)" as SQL
            let type = SQL(text: plan.columns[position].storage.sqlType)
            let changed = try connection.firstRow(
                """
                SELECT 1 FROM main.\(identifier: remake.table) WHERE CASE typeof(\(value)) \
                WHEN 'integer' THEN CAST(CAST(\(value) AS \(type)) AS INTEGER) IS NOT \(value) \
                WHEN 'real' THEN CAST(CAST(\(value) AS \(type)) AS REAL) IS NOT \(value) \
                WHEN 'text' THEN \
                CAST(CAST(\(value) AS \(type)) AS TEXT) IS NOT \(value) COLLATE BINARY \
                ELSE 0 END LIMIT 1
                """, isReadOnly: true)
            guard changed == nil else {
                throw mismatch(
                    position, old,
                    "A value would not stay the same. Say how all are converted: "
                        + "table.set(\\.\(plan.columns[position].name), sql: …).")
            }
        }
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
