/// Creates, compares and extends a record type's table in a file.
struct RecordSchema {
    private let plan: RecordPlan
    private let connection: Connection

    init(_ plan: RecordPlan, _ connection: Connection) {
        self.plan = plan
        self.connection = connection
    }

    /// The schema object that has the table's name.
    enum Kind: Equatable {
        case nothing
        case table
        case view
    }

    /// SQLite compares names without regard to case.
    func kind() throws(StoreError) -> Kind {
        let row = try connection.firstRow(
            """
            SELECT type FROM sqlite_master
            WHERE type IN ('table', 'view') AND name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: false)
        switch row?[0] {
        case nil: return .nothing
        case .text("view"): return .view
        default: return .table
        }
    }

    /// Whether the name leads to a table of the main file, and not to a temporary table or view.
    func isTableAlone() throws(StoreError) -> Bool {
        guard try kind() == .table else { return false }
        let temporary = try connection.firstRow(
            "SELECT 1 FROM sqlite_temp_master WHERE name = \(plan.table) COLLATE NOCASE",
            isReadOnly: false)
        return temporary == nil
    }

    /// Whether the type's key, of one column, is the primary key of a table of the main file, and
    /// `=` finds at most one row by it.
    ///
    /// A collation could make `=` find two keys equal that the primary key takes for different.
    func hasOneRowForEachKey() throws(StoreError) -> Bool {
        guard try isTableAlone() else { return false }
        let columns = try ExistingTable.columns(of: plan.table, connection)
        let key = columns.filter { $0.keyRank > 0 }
        guard key.count == 1,
            key[0].name.isSameIdentifier(as: plan.columns[plan.keyPositions[0]].name)
        else { return false }
        let table = try connection.firstRow(
            """
            SELECT sql FROM main.sqlite_master
            WHERE type = 'table' AND name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: false)
        let sql = try table?.read("sql", as: String?.self)
        return sql.map { !$0.asciiLowercased.contains("collate") } ?? false
    }

    // MARK: Making

    /// Makes the table, or adds the columns and indexes that it lacks. Any other difference is an
    /// error.
    func create() throws(StoreError) {
        // A savepoint undoes a partial change, even if the caller catches the error and goes on.
        try connection.undoing(createParts)
    }

    private func createParts() throws(StoreError) {
        try plan.requireEngineForGenerated()
        for reference in try plan.declaration().references {
            // SQLite would refuse each row that refers to a view.
            guard try reference.parent.declaration().view == nil else {
                throw StoreError(
                    .misuse, "\(plan.typeName) refers to \(reference.parent.typeName), a view",
                    hint: "Refer to the table that the view reads.", table: plan.table)
            }
        }
        if let view = try view() { return try view.create() }
        switch try kind() {
        case .nothing: try make()
        case .view: throw isView
        case .table: try extend()
        }
        try fullText()?.create()
        for reference in try plan.declaration().references {
            // SQLite rejects inserts and deletes in a table that refers to a missing one.
            let parent = RecordSchema(reference.parent, connection)
            if try parent.kind() == .nothing { try parent.create() }
        }
        for trigger in try declaredTriggers() { try trigger.create() }
    }

    private func view() throws(StoreError) -> DeclaredObject? {
        guard let sql = try plan.declaration().view else { return nil }
        return DeclaredObject(try plan.viewSQL(sql, connection), .view, plan, connection)
    }

    private func declaredTriggers() throws(StoreError) -> [DeclaredObject] {
        var found: [DeclaredObject] = []
        for trigger in try plan.declaration().triggers {
            let text = try trigger.sql(plan, connection)
            found.append(DeclaredObject(text, .trigger(trigger.name), plan, connection))
        }
        return found
    }

    private func make() throws(StoreError) {
        try run(try tableSQL(named: plan.quotedTable))
        for index in try plan.declaration().indexes { try make(index) }
    }

    /// The CREATE TABLE for the type's table under a name, which is in quotes.
    func tableSQL(named quotedName: String) throws(StoreError) -> String {
        let declaration = try plan.declaration()
        var parts: [String] = []
        for position in plan.columns.indices {
            parts.append(try definition(of: position, declaration))
        }
        if plan.keyPositions.count > 1 {
            let names = plan.keyPositions.map { plan.quotedColumns[$0] }
            parts.append("PRIMARY KEY (\(names.joined(separator: ", ")))")
        }
        for check in declaration.checks {
            parts.append("CHECK (\(try expression(isNew: true).text(check)))")
        }
        parts += declaration.references.map { $0.sql(plan) }
        return "CREATE TABLE \(quotedName) (\(parts.joined(separator: ", ")))"
            + (plan.isWithoutRowID ? " WITHOUT ROWID" : "")
    }

    private func extend() throws(StoreError) {
        let comparison = try comparison()
        guard comparison.differences.isEmpty else { throw mismatch(comparison.differences) }
        let declaration = try plan.declaration()
        for position in comparison.addableColumns {
            var text = try definition(of: position, declaration)
            for reference in declaration.references where reference.positions == [position] {
                text += " \(reference.clause)"
            }
            try run("ALTER TABLE \(plan.quotedTable) ADD COLUMN \(text)")
        }
        for index in comparison.missingIndexes { try make(index) }
    }

    private func make(_ index: TableDeclaration.ResolvedIndex) throws(StoreError) {
        try run(try index.sql(plan, name: try freeName(for: index), connection))
    }

    /// Index names are unique in the whole file, but `b_c` of the table `a` and `c` of `a_b` would
    /// get the same name.
    private func freeName(
        for index: TableDeclaration.ResolvedIndex
    ) throws(StoreError) -> String {
        guard let owner = try table(thatHas: index.name) else { return index.name }
        guard !index.isNamed else {
            throw StoreError(
                .misuse,
                "the name \(index.name) of an index of \(plan.typeName) is taken in the file, by "
                    + "the table \(owner) or an index of it",
                hint: "Give it another name, or none: Index(\\.title).", table: plan.table,
                column: index.positions.first.map { plan.columns[$0].name })
        }
        var number = 2
        while try table(thatHas: "\(index.name)_\(number)") != nil { number += 1 }
        return "\(index.name)_\(number)"
    }

    /// The table of this name, or the table whose index has this name.
    private func table(thatHas name: String) throws(StoreError) -> String? {
        let row = try connection.firstRow(
            "SELECT tbl_name FROM sqlite_master WHERE name = \(name) COLLATE NOCASE",
            isReadOnly: false)
        return try row?.read("tbl_name")
    }

    private func definition(
        of position: Int, _ declaration: TableDeclaration
    ) throws(StoreError) -> String {
        let column = plan.columns[position]
        var text = "\(plan.quotedColumns[position]) \(column.declaredType)"
        // A key column in SQLite may be NULL unless it is declared NOT NULL. A single INTEGER key
        // is the row id, which is never NULL: SQLite chooses a value.
        if plan.keyPositions == [position] { text += " PRIMARY KEY" }
        if plan.rowIDPosition == position, declaration.isAutoincrement { text += " AUTOINCREMENT" }
        if plan.isNotNull(position) { text += " NOT NULL" }
        if let collation = declaration.collations[position] {
            text += " COLLATE \(collation.rawValue)"
        }
        if let generated = column.generated {
            return "\(text) \(try generated.clause(expression(isNew: true)))"
        }
        if let sql = declaration.defaultExpressions[position] {
            return text + " DEFAULT (\(try expression(isNew: true).text(sql)))"
        }
        guard let value = declaration.defaults[position] else { return text }
        do throws(StoreError) {
            return try connection.literal(value).map { "\(text) DEFAULT \($0)" } ?? text
        } catch {
            throw error.with(table: plan.table, column: column.name)
        }
    }

    private func expression(isNew: Bool) -> SchemaExpression {
        SchemaExpression(plan: plan, connection: connection, isNew: isNew)
    }

    private func run(_ sql: String) throws(StoreError) {
        do throws(StoreError) {
            try connection.perform(SQL(text: sql))
        } catch {
            throw error.with(table: plan.table)
        }
    }

    // MARK: Comparing

    /// The differences that `create` cannot resolve; empty if there is no table yet.
    func differences() throws(StoreError) -> [SchemaDifference] {
        if let view = try view() { return try [view.difference()].compactMap { $0 } }
        switch try kind() {
        case .nothing: return []
        case .view: return [SchemaDifference(column: nil, expected: "a table", found: "a view")]
        case .table:
            var found = try comparison().differences
            if let difference = try fullText()?.difference() { found.append(difference) }
            for trigger in try declaredTriggers() {
                if let difference = try trigger.difference() { found.append(difference) }
            }
            return found
        }
    }

    private func fullText() throws(StoreError) -> FullTextSchema? {
        try plan.declaration().fullText.map { FullTextSchema($0, connection) }
    }

    /// The error for a search in a full-text index that the file lacks; `nil` for any other error.
    func missingFullText(_ error: StoreError) throws(StoreError) -> StoreError? {
        guard let name = try plan.declaration().fullText?.name,
            error.message.contains("no such table: \(name)"), try fullText()?.isMissing() == true
        else { return nil }
        return StoreError(
            .mismatch, "the file has no full-text index of \(plan.typeName) yet",
            hint: "Call tx.create(\(plan.typeName).self) in a write, such as a migration.",
            table: plan.table)
    }

    private func comparison() throws(StoreError) -> SchemaComparison {
        try SchemaComparison(plan, try ExistingTable(plan.table, connection), connection)
    }

    /// Whether the existing table has row ids, whatever the type declares.
    func hasRowIDs() throws(StoreError) -> Bool {
        try !ExistingTable(plan.table, connection).isWithoutRowID
    }

    /// Whether the table allows each combination of values of these columns in one row only.
    func isUnique(_ names: [String]) throws(StoreError) -> Bool {
        let wanted = Set(names.map(\.asciiLowercased))
        let table = try ExistingTable(plan.table, connection)
        let key = table.columns.filter { $0.keyRank > 0 }.map(\.name.asciiLowercased)
        return Set(key) == wanted
            || table.indexes.contains { index in
                index.isUnique && index.isPlain
                    && Set(index.columns.compactMap { $0?.asciiLowercased }) == wanted
            }
    }

    /// The SQL columns that identify a row of the existing table, whatever the type declares: the
    /// row id, or the key of a table WITHOUT ROWID.
    ///
    /// Names must be qualified by the table, because SQLite takes an unqualified unknown `"name"`
    /// for a text.
    ///
    /// - Throws: `.sql` if there is no table; `.mismatch` for a view, or if the table lacks the key
    ///   that the type declares; `.unsupported` if columns take all names of the row id. An
    ///   ordinary column `rowid` may be the same in many rows.
    func rowNames() throws(StoreError) -> String {
        let rowID = try connection.freeRowIDName(of: plan.table, schema: nil)
        if rowID == nil || plan.isWithoutRowID, let missing = try missingColumn() { throw missing }
        if let rowID { return "\(plan.quotedTable).\(rowID)" }
        let table = try ExistingTable(plan.table, connection)
        guard table.isWithoutRowID else {
            throw try kind() == .view ? isView : StoreError.noRowIDs(in: plan.table)
        }
        var names: [String] = []
        for column in table.columns where column.keyRank > 0 {
            let name = try column.name.quotedIdentifier()
            // Must be BINARY, because the column's own collation may find two keys equal that the
            // primary key takes for different ones.
            names.append("\(plan.quotedTable).\(name) COLLATE BINARY")
        }
        return names.joined(separator: ", ")
    }

    /// Throws if the table lacks a column of the type, or would change a value on storing it.
    func requireWritable() throws(StoreError) {
        let found = try ExistingTable.columns(of: plan.table, connection)
        for column in plan.columns {
            let existing = found.first { $0.name.isSameIdentifier(as: column.name) }
            guard let existing else { throw try missing(column) }
            guard existing.isGenerated == (column.generated != nil) else {
                throw mismatch([
                    SchemaDifference(
                        column: column.name,
                        expected: column.generated == nil
                            ? column.storage.sqlType : "a computed column",
                        found: existing.description)
                ])
            }
            if existing.isGenerated { continue }
            guard existing.affinity.keeps(column) else {
                throw mismatch([
                    SchemaDifference(
                        column: column.name, expected: column.storage.sqlType,
                        found: existing.type)
                ])
            }
            if column.kind == .date, column.encoding == nil { try requireNoTexts(existing) }
        }
    }

    /// Throws if a column of dates holds texts, as a DATETIME of GRDB does. A date among them would
    /// be a number, which no order or comparison of SQL puts where it belongs.
    ///
    /// A column with numbers takes numbers, whatever else it holds.
    ///
    /// - Complexity: O(1): looks at the first hundred values. O(*rows*) if most of them are NULL.
    private func requireNoTexts(_ column: ExistingColumn) throws(StoreError) {
        guard !column.type.isSameIdentifier(as: DateColumns.declaredType) else { return }
        let row = try connection.firstRow(
            """
            SELECT total(typeof(date) = 'text') AS texts,
                total(typeof(date) IN ('integer', 'real')) AS numbers
            FROM (
                SELECT \(identifier: column.name) AS date FROM \(identifier: plan.table)
                WHERE \(identifier: column.name) IS NOT NULL LIMIT 100)
            """, isReadOnly: false)
        guard row?[0] != .real(0), row?[1] == .real(0) else { return }
        throw StoreError(
            .mismatch, "the column holds its dates as texts, and \(plan.typeName) writes numbers",
            hint: "Say how they are written in static var encodings: .date(.grdb) for "
                + "\"2013-02-20 12:00:00.000\", .date(.iso8601) for \"2013-02-20T12:00:00.000Z\".",
            table: plan.table, column: column.name)
    }

    /// Returns a `.mismatch` error that names the first column of the type that the table lacks;
    /// `nil` if the table has them all. A missing table lacks all of them. Throws errors of reading
    /// the schema.
    func missingColumn() throws(StoreError) -> StoreError? {
        let found = try ExistingTable.columns(of: plan.table, connection)
        let column = plan.columns.first { column in
            !found.contains { $0.name.isSameIdentifier(as: column.name) }
        }
        guard let column else { return nil }
        return try missing(column)
    }

    /// Whether an UPDATE by key changes at most one row and fires no trigger of a program. Then
    /// `OR FAIL` leaves no partial change that `OR ABORT` would undo: see `triggers()`.
    func updatesOneRowAlone() throws(StoreError) -> Bool {
        let found = try ExistingTable.columns(of: plan.table, connection)
        let keyNames = Set(plan.keyPositions.map { plan.columns[$0].name.asciiLowercased })
        let foundNames = found.filter { $0.keyRank > 0 }.map(\.name.asciiLowercased)
        guard Set(foundNames) == keyNames else { return false }
        guard try !triggers().mayDiffer else { return false }
        return try !hasFollowers(besides: keyNames)
    }

    /// Whether an INSERT of one row fires triggers, all of them Coffer's. Then `OR FAIL` leaves no
    /// partial change, and saves a statement journal, which an INSERT without triggers does not
    /// have.
    func insertsWithOwnTriggers() throws(StoreError) -> Bool {
        let found = try triggers()
        return found.areOwn && !found.mayDiffer
    }

    /// Whether attachments follow a column outside the key, which an UPDATE by key may change.
    private func hasFollowers(besides key: Set<String>) throws(StoreError) -> Bool {
        let rows = try connection.rows(
            """
            SELECT sql FROM sqlite_master WHERE type = 'trigger' \
            AND tbl_name = \(plan.table) COLLATE NOCASE \
            AND name GLOB 'coffer:bucket:*:record-changed'
            """, isReadOnly: false)
        for row in rows {
            let sql = try row.read("sql", as: String?.self)?.asciiLowercased ?? ""
            if !key.contains(where: { sql.contains("update of \($0.inDoubleQuotes) on") }) {
                return true
            }
        }
        return false
    }

    /// Looks for triggers on the table.
    ///
    /// Those of a change history note a row before it changes, and add no entry that a constraint
    /// could refuse: a note that `OR FAIL` leaves behind says only that the row was looked at.
    /// Those of attachments fire if a row is deleted, or gets another key.
    ///
    /// - Returns: Whether Coffer has made some; and whether a statement with `OR FAIL` might differ
    ///   from one without, because of other triggers or a conflict clause of the table.
    /// - Throws: Errors of reading the schema.
    private func triggers() throws(StoreError) -> (areOwn: Bool, mayDiffer: Bool) {
        let found = try connection.firstRow(
            """
            SELECT max(type = 'trigger' AND name GLOB 'coffer:*') AS own,
                max(type = 'trigger' AND name NOT GLOB 'coffer:*' OR sql LIKE '%conflict%')
                    AS other
            FROM (
                SELECT type, name, tbl_name, sql FROM sqlite_master UNION ALL
                SELECT type, name, tbl_name, sql FROM sqlite_temp_master)
            WHERE tbl_name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: false)
        return (found?["own"] == .integer(1), found?["other"] == .integer(1))
    }

    // MARK: Failures

    /// The error for a view where a table is needed.
    var isView: StoreError {
        guard (try? plan.declaration().view) == nil else {
            return StoreError(
                .misuse, "\(plan.typeName) is a view, which is only read",
                hint: "Write the records that it is made of.", table: plan.table)
        }
        return mismatch([SchemaDifference(column: nil, expected: "a table", found: "a view")])
    }

    private func mismatch(
        _ differences: [SchemaDifference],
        hint: String = "Change the type, or the table with SQL of your own."
    ) -> StoreError {
        StoreError(
            .mismatch,
            "the table and \(plan.typeName) differ: "
                + differences.map(\.description).joined(separator: "; "),
            hint: hint, table: plan.table, column: differences.first?.column)
    }

    private func missing(_ column: RecordColumn) throws(StoreError) -> StoreError {
        let position = plan.columns.firstIndex { $0.name == column.name } ?? 0
        let remedy =
            try plan.isAddable(position, plan.declaration())
            ? "tx.create(\(plan.typeName).self) adds it."
            : "Make the property optional or declare a default, static var defaults, and "
                + "create(_:) adds it; or add it with SQL."
        return mismatch(
            [
                SchemaDifference(
                    column: column.name, expected: plan.expected(position).description,
                    found: "no such column")
            ], hint: remedy)
    }
}
