import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The table of one record type on one connection: its plan and its compiled statements.
///
/// Finding the statements builds no SQL text. So they are outside the statement cache, whose key is
/// the text. They end with the connection, or with the schema that they were compiled for.
final class RecordTable {
    let plan: RecordPlan
    let encoder: RowEncoder
    /// Binds a record's key at least; all that a record has if no value may be in the file.
    let keyEncoder: RowEncoder
    let decoder: RowDecoder
    /// The columns whose dates count from 2001, as the file declares them.
    let since2001: ColumnSet
    private var insertion: Statement?
    private var updating: Statement?
    private var deletion: Statement?
    private var finding: Statement?
    /// Joins the table with many keys.
    var joining: Statement?
    /// Whether the join may be used; false once it turned out that it may not.
    var canJoin = true
    /// Deletes the rows of many keys.
    var deletingMany: Statement?
    /// Whether that may be used; false once it turned out that it may not.
    var canDeleteMany = true
    /// How rows are read as other types.
    var partialRows: [ObjectIdentifier: PartialRows] = [:]
    /// The parameter of a key that is a plain integer; 0 for any other key, and without a key.
    let integerKeyParameter: Int32
    /// UPDATEs of chosen columns, by kind and properties.
    var partialUpdates: [PartialUpdate: PreparedUpdate] = [:]
    /// Whether `ready` has checked that the table stores the type's values unchanged.
    private var isChecked = false
    /// Whether the table has row ids; known once `isChecked` is true.
    private var hasRowIDs = true

    private init(
        _ plan: RecordPlan, _ stored: StoredProperties?, isUTF16: Bool, since2001: ColumnSet
    ) {
        self.plan = plan
        self.since2001 = since2001
        let encoder = RowEncoder(
            plan: plan, stored: stored, isUTF16: isUTF16, since2001: since2001)
        self.encoder = encoder
        keyEncoder = plan.hasLazy ? encoder.only(plan.keyPositions) : encoder
        let position = plan.keyPositions.count == 1 ? plan.keyPositions[0] : 0
        let key = plan.keyPositions.count == 1 ? plan.columns[position] : nil
        let isInteger = key?.storage == .integer && key?.encoding == nil
        integerKeyParameter = isInteger ? Int32(position + 1) : 0
        decoder = RowDecoder(
            plan, names: plan.columns.map(\.name), key: key?.name, leavesLazy: true, stored: stored,
            since2001: since2001)
    }

    @inline(__always)
    static func of<R: Record>(
        _ type: R.Type, _ connection: Connection
    ) throws(StoreError) -> RecordTable {
        if let known = try connection.attachment(ObjectIdentifier(type)) as? RecordTable {
            return known
        }
        return try make(type, connection)
    }

    @inline(never)
    private static func make<R: Record>(
        _ type: R.Type, _ connection: Connection
    ) throws(StoreError) -> RecordTable {
        let plan = try RecordPlan.of(type)
        let encoding = try connection.current().firstText("PRAGMA encoding")
        let made = RecordTable(
            plan, try StoredProperties.of(type, plan).usable,
            isUTF16: encoding?.hasPrefix("UTF-16") == true,
            since2001: plan.hasDates ? try plan.columnsFrom2001(connection) : ColumnSet())
        connection.attach(made, as: ObjectIdentifier(type))
        return made
    }

    // MARK: Writing

    func create(_ connection: Connection) throws(StoreError) {
        try RecordSchema(plan, connection).create()
    }

    /// Returns the row id of the new row; 0 if the table has no row ids, or if a trigger ignored
    /// the INSERT.
    @discardableResult
    func insert<R: Record>(_ record: R, _ connection: Connection) throws(StoreError) -> Int64 {
        let statement = try insertStatement(connection)
        try add(statement, connection) { () throws(StoreError) in
            try encoder.bind(record, to: statement)
        }
        let db = statement.handle.db
        // Otherwise SQLite returns the row id of an earlier INSERT.
        guard hasRowIDs, coffer_changes(db) > 0 else { return 0 }
        return sqlite3_last_insert_rowid(db)
    }

    /// Binds and runs an INSERT. Repeats both if it had to make the missing table again.
    @inline(__always)
    func add(
        _ statement: Statement, _ connection: Connection, bind: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try bind()
        do throws(StoreError) {
            try statement.runToEnd()
        } catch {
            try recreate(connection, after: error)
            try bind()
            try statement.runToEnd()
        }
    }

    /// Updates the record's row; returns whether it exists.
    func update<R: Record>(_ record: R, _ connection: Connection) throws(StoreError) -> Bool {
        let statement = try updateStatement(connection, isCreating: false)
        do throws(StoreError) {
            try encoder.bind(record, to: statement)
        } catch {
            return try updateLoaded(record, after: error, connection)
        }
        return try change(statement, connection)
    }

    func upsert<R: Record>(_ record: R, _ connection: Connection) throws(StoreError) {
        try updateOrInsert(record, updateStatement(connection, isCreating: true), connection)
    }

    /// Runs an UPDATE, and inserts the record if it has changed no row.
    ///
    /// - Returns: The result of `insert`; `nil` if the UPDATE has changed a row.
    @discardableResult
    func updateOrInsert<R: Record>(
        _ record: R, _ statement: Statement, _ connection: Connection
    ) throws(StoreError) -> Int64? {
        try encoder.bind(record, to: statement)
        do throws(StoreError) {
            try statement.runToEnd()
            if coffer_changes(statement.handle.db) > 0 { return nil }
        } catch {
            try recreate(connection, after: error)
        }
        return try insert(record, connection)
    }

    func delete<R: Record>(_ record: R, _ connection: Connection) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try delete(connection) { statement throws(StoreError) in
                try keyEncoder.bind(record, to: statement)
            }
        } catch {
            try requireNoTable(after: error, connection)
            return false
        }
    }

    func delete(key: Value, _ connection: Connection) throws(StoreError) -> Bool {
        let position = try plan.singleKey(for: "delete(_:key:)")
        do throws(StoreError) {
            return try delete(connection) { statement throws(StoreError) in
                try encoder.bind(key: key, at: position, to: statement)
            }
        } catch {
            try requireNoTable(after: error, connection)
            return false
        }
    }

    /// Deletes the row whose key `bind` binds, and reports its key to an observer that asks for it.
    @inline(__always)
    private func delete(
        _ connection: Connection, bind: (Statement) throws(StoreError) -> Void
    ) throws(StoreError) -> Bool {
        let statement = try deleteStatement(connection)
        let observer = statement.handle.touchObserver
        let columns = observer?.wantedKey(of: plan.table)
        let keys =
            if let columns { try keys(columns, connection, bind: bind) } else { [[Value]]() }
        try bind(statement)
        guard try change(statement, connection) else { return false }
        for key in keys {
            observer?.didChange(ReportedChange(kind: .deletion, table: plan.table, key: key))
        }
        return true
    }

    /// The values of columns in the rows with a key: as the table has them, which a bound key need
    /// not be.
    @inline(never)
    private func keys(
        _ columns: [String], _ connection: Connection,
        bind: (Statement) throws(StoreError) -> Void
    ) throws(StoreError) -> [[Value]] {
        let statement = try connection.cached(plan.selectSQL(columns))
        defer { connection.release(statement) }
        try bind(statement)
        var keys: [[Value]] = []
        while try statement.advance() {
            keys.append(
                try columns.indices.map { column throws(StoreError) in
                    try Statement.value(of: statement.pointer(), at: Int32(column))
                })
        }
        return keys
    }

    func change(
        _ statement: Statement, _ connection: Connection
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try statement.runToEnd()
        } catch {
            throw try explain(error, connection, isWriting: true)
        }
        return coffer_changes(statement.handle.db) > 0
    }

    // MARK: Reading

    func find<R: Record>(
        _ type: R.Type, _ key: Value, _ connection: Connection
    ) throws(StoreError) -> R? {
        guard let statement = try findStatement(connection) else { return nil }
        try bind(key: key, to: statement)
        defer { statement.rewind() }
        do throws(StoreError) {
            return try decoder.first(type, statement)
        } catch {
            try requireNoTable(after: error, connection)
            return nil
        }
    }

    /// A key as the encoder takes it: a date counts from 2001.
    @inline(__always)
    func key<K: ValueConvertible>(_ key: K) throws(StoreError) -> Value {
        plan.hasDateKey ? try dateKey(key) : try key.asValue()
    }

    @inline(never)
    private func dateKey(_ key: some ValueConvertible) throws(StoreError) -> Value {
        if let date = key as? Date { return try date.timeIntervalSinceReferenceDate.asValue() }
        let value = try key.asValue()
        guard let seconds = value.seconds else { return value }
        return .real(Date(timeIntervalSince1970: seconds).timeIntervalSinceReferenceDate)
    }

    /// Binds a key to the statement that finds by it.
    @inline(__always)
    func bind(key: Value, to statement: Statement) throws(StoreError) {
        if case .integer(let integer) = key, integerKeyParameter > 0 {
            return try encoder.bind(integer, toParameter: integerKeyParameter, of: statement)
        }
        try encoder.bind(key: key, at: plan.keyPositions[0], to: statement)
    }

    /// The rows that a query asks for.
    func fetch<R: Record>(
        _ query: Query<R>, _ connection: Connection
    ) throws(StoreError) -> [R] {
        if try decoder.collects(on: connection), let sql = query.collectSQL(plan) {
            return try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
                try decoder.collected(R.self, statement)
            }
        }
        return try fetch(R.self, query.selectSQL(plan), connection)
    }

    /// The rows of a SELECT of all columns in the order of the plan.
    func fetch<R: Record>(
        _ type: R.Type, _ sql: SQL, _ connection: Connection
    ) throws(StoreError) -> [R] {
        let decoder = decoder
        return try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
            try decoder.all(type, statement)
        }
    }

    func first<R: Record>(
        _ type: R.Type, _ sql: SQL, _ connection: Connection
    ) throws(StoreError) -> R? {
        let decoder = decoder
        return try read(sql, connection, ifMissing: nil) { statement throws(StoreError) in
            try decoder.first(type, statement)
        }
    }

    /// The results of `make` for each row.
    func rows<T>(
        _ sql: SQL, _ connection: Connection, _ make: (Statement) throws(StoreError) -> T
    ) throws(StoreError) -> [T] {
        try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
            var rows: [T] = []
            while try statement.advance() { rows.append(try make(statement)) }
            return rows
        }
    }

    func integer(_ sql: SQL, _ connection: Connection) throws(StoreError) -> Int {
        try read(sql, connection, ifMissing: 0) { statement throws(StoreError) in
            guard try statement.advance() else { return 0 }
            return try statement.column(0, as: Int.self)
        }
    }

    /// The SQL columns that identify a row: see `RecordSchema`.
    ///
    /// - Throws: As a statement that changes rows would; `.unsupported` if columns take all names
    ///   of the row id.
    func rowNames(_ connection: Connection) throws(StoreError) -> String {
        do throws(StoreError) {
            return try RecordSchema(plan, connection).rowNames()
        } catch {
            throw try explain(error, connection, isWriting: true)
        }
    }

    /// - Throws: `.misuse` for a type whose records are the rows of a view, also if a trigger of
    ///   the file would take the write.
    private func requireTable(_ connection: Connection) throws(StoreError) {
        guard try plan.declaration().view == nil else {
            throw RecordSchema(plan, connection).isView
        }
    }

    /// Runs a statement that changes rows, and counts them. Builds the SQL inside, because that
    /// may look at the table.
    func execute(
        _ sql: () throws(StoreError) -> SQL, _ connection: Connection
    ) throws(StoreError) -> Int {
        try requireTable(connection)
        do throws(StoreError) {
            let sql = try sql()
            func run() throws(StoreError) -> Int {
                try query(sql, connection, isWriting: true) { statement throws(StoreError) in
                    try statement.runToEnd()
                    return Int(coffer_changes(statement.handle.db))
                }
            }
            // SQLite keeps the rows that it changed before an expression failed: only constraints
            // make it undo a statement.
            return sql.mayFail ? try connection.undoing(run) : try run()
        } catch {
            try requireNoTable(after: error, connection)
            return 0
        }
    }

    /// Runs a query. A type without a table has no rows.
    ///
    /// An observer then learns that the query reads the schema, so it looks again when the table
    /// comes.
    func read<T>(
        _ sql: SQL, _ connection: Connection, ifMissing none: T,
        _ body: (Statement) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        do throws(StoreError) {
            return try query(sql, connection, body)
        } catch {
            try requireNoTable(after: error, connection)
            return none
        }
    }

    /// Runs a query by key paths. Types that it refers to have no rows if they have no table.
    private func query<T>(
        _ sql: SQL, _ connection: Connection, isWriting: Bool = false,
        _ body: (Statement) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        do throws(StoreError) {
            return try run(sql, connection, isWriting: isWriting, body)
        } catch {
            // SQL that did not compile has passed no row to `body`.
            let filled = try withEmptyParents(sql, after: error, connection)
            guard let filled else { throw error }
            return try run(filled, connection, isWriting: isWriting, body)
        }
    }

    /// Returns if the error means that the type has no table.
    ///
    /// - Throws: Any other error, explained.
    @inline(never)
    func requireNoTable(
        after error: StoreError, _ connection: Connection
    ) throws(StoreError) {
        guard error.code == .notFound, error.table == plan.table,
            try RecordSchema(plan, connection).kind() == .nothing
        else { throw try explain(error, connection) }
        // A missing view would have rows, if it were made.
        guard try plan.declaration().view == nil else { throw try notFound }
    }

    func run<T>(
        _ sql: SQL, _ connection: Connection, isWriting: Bool = false,
        _ body: (Statement) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let sql = try sql.checked(on: connection)
        let limit = try connection.current().maximumArgumentCount
        guard sql.arguments.count <= limit else {
            throw StoreError(
                .tooBig,
                "the query binds \(sql.arguments.count) values, and the engine takes \(limit)",
                hint: "Split it into several queries.", table: plan.table)
        }
        do throws(StoreError) {
            let statement = try connection.cached(sql.text(on: connection))
            defer { connection.release(statement) }
            try statement.bind(sql)
            return try body(statement)
        } catch {
            throw try explain(error, connection, isWriting: isWriting)
        }
    }

    // MARK: Preparing

    @inline(__always)
    func insertStatement(_ connection: Connection) throws(StoreError) -> Statement {
        if let insertion { return insertion }
        try ready(connection, isCreating: true)
        // Each row would cost SQLCipher 3.4.1 an encrypted statement journal: 200 000 instructions.
        let orFail = try RecordSchema(plan, connection).insertsWithOwnTriggers()
        let statement = try prepare(plan.insertSQL(orFail: orFail), connection)
        statement.changesOneRow = orFail
        insertion = statement
        return statement
    }

    @inline(__always)
    func updateStatement(
        _ connection: Connection, isCreating: Bool
    ) throws(StoreError) -> Statement {
        if let updating { return updating }
        try plan.requireKey(for: isCreating ? "upsert" : "update")
        try ready(connection, isCreating: isCreating)
        // `OR FAIL` saves SQLCipher 3.4.1 an encrypted statement journal for every row: 10 µs.
        let orFail = try RecordSchema(plan, connection).updatesOneRowAlone()
        let statement = try prepare(plan.updateSQL(orFail: orFail), connection)
        statement.changesOneRow = orFail
        updating = statement
        return statement
    }

    @inline(__always)
    private func deleteStatement(_ connection: Connection) throws(StoreError) -> Statement {
        if let deletion { return deletion }
        try plan.requireKey(for: "delete")
        try requireTable(connection)
        let statement = try prepare(plan.deleteSQL, connection)
        statement.reportedChange = .deletion
        deletion = statement
        return statement
    }

    /// - Returns: `nil` if the type has no table.
    @inline(__always)
    func findStatement(_ connection: Connection) throws(StoreError) -> Statement? {
        if let finding { return finding }
        return try makeFindStatement(connection)
    }

    @inline(never)
    private func makeFindStatement(_ connection: Connection) throws(StoreError) -> Statement? {
        _ = try plan.singleKey(for: "find")
        do throws(StoreError) {
            finding = try prepare(plan.findSQL, connection, isWriting: false)
        } catch {
            try requireNoTable(after: error, connection)
            return nil
        }
        return finding
    }

    @inline(never)
    func prepare(
        _ sql: String, _ connection: Connection, isWriting: Bool = true
    ) throws(StoreError) -> Statement {
        do throws(StoreError) {
            return try connection.compile(sql, persistent: true)
        } catch {
            if isWriting, let tooWide = try tooWide(connection) { throw tooWide }
            throw try explain(error, connection, isWriting: isWriting)
        }
    }

    /// The error if the record has more columns than SQLite takes arguments, else `nil`.
    private func tooWide(_ connection: Connection) throws(StoreError) -> StoreError? {
        let limit = try connection.current().maximumArgumentCount
        guard plan.columns.count > limit else { return nil }
        return StoreError(
            .tooBig,
            "\(plan.typeName) has \(plan.columns.count) columns, and the engine takes \(limit) "
                + "values",
            hint: "Move some of the properties into a nested type, which is one column.",
            table: plan.table)
    }

    /// Checks the table before the first write of values on this connection.
    ///
    /// - Parameter isCreating: Whether to make a missing table.
    @inline(never)
    func ready(_ connection: Connection, isCreating: Bool) throws(StoreError) {
        guard !isChecked else { return }
        let schema = RecordSchema(plan, connection)
        try requireTable(connection)
        if try schema.kind() == .nothing {
            guard isCreating else { throw try notFound }
            try schema.create()
            hasRowIDs = !plan.isWithoutRowID
        } else {
            try schema.requireWritable()
            hasRowIDs = try schema.hasRowIDs()
        }
        isChecked = true
    }

    /// Checks a table that exists, before the first write of values on this connection.
    func requireWritable(_ connection: Connection) throws(StoreError) {
        do throws(StoreError) {
            try ready(connection, isCreating: false)
        } catch {
            try requireNoTable(after: error, connection)
        }
    }

    // MARK: Failures

    /// Makes the table again if it is gone, as after a rollback of the transaction that made it.
    /// Otherwise throws the error, explained.
    ///
    /// The statements remain usable: SQLite recompiles them when the schema has changed.
    @inline(never)
    func recreate(
        _ connection: Connection, after error: StoreError
    ) throws(StoreError) {
        // The encoder counts dates as the table did that is gone.
        guard error.code == .sql, since2001 == plan.columnsFrom2001IfNew || !plan.hasDates,
            try RecordSchema(plan, connection).kind() == .nothing
        else {
            throw try explain(error, connection, isWriting: true)
        }
        try RecordSchema(plan, connection).create()
        hasRowIDs = !plan.isWithoutRowID
    }

    /// Explains a failure: a missing table, a missing column, a view, or the error itself.
    @inline(never)
    func explain(
        _ error: StoreError, _ connection: Connection, isWriting: Bool = false
    ) throws(StoreError) -> StoreError {
        guard error.code == .sql else {
            return error.table == nil ? plan.explained(error) : error
        }
        let schema = RecordSchema(plan, connection)
        let kind = try schema.kind()
        if kind == .nothing { return try notFound }
        if let missing = try schema.missingColumn() { return missing }
        if let missing = try schema.missingFullText(error) { return missing }
        return isWriting && kind == .view ? schema.isView : error.with(table: plan.table)
    }

    private var notFound: StoreError {
        get throws(StoreError) { try plan.notFound }
    }
}

extension Handle {
    /// The most values that a statement can bind.
    var maximumArgumentCount: Int {
        Int(sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, -1))
    }
}
