import CSQLCipher

/// One bucket's table on one connection, for one verb.
struct BucketTable {
    private let connection: Connection
    private let plan: BucketPlan
    private let statements: BucketStatements

    init(_ connection: Connection, _ plan: BucketPlan) throws(StoreError) {
        self.connection = connection
        self.plan = plan
        if let known = try connection.attachment(ObjectIdentifier(plan)) as? BucketStatements {
            statements = known
        } else {
            statements = BucketStatements(table: try plan.quoted.get())
            try checkKeyType()
        }
    }

    private var table: String { statements.table }

    /// Refuses a table with keys of another type, which SQLite would convert silently. Checked once
    /// per connection and schema, as soon as the table exists; does nothing before.
    ///
    /// - Throws: `.mismatch` if the table is not that of a bucket or its keys have another type;
    ///   `.misuse` if only the case of letters distinguishes its name.
    private func checkKeyType() throws(StoreError) {
        let columns = try connection.rows(
            "PRAGMA table_info(\(identifier: plan.table))", isReadOnly: false)
        guard !columns.isEmpty else { return }
        try checkCase()
        let names = columns.map { $0["name"] }
        guard names == [.text("key"), .text("value")], let found = columns[0]["type"] else {
            throw StoreError(
                .mismatch, "the table is not that of a bucket", table: plan.table)
        }
        guard found == .text(plan.keyType) else {
            throw StoreError(
                .mismatch, "the bucket has keys of another type",
                hint: "Name the bucket with the key type that it was made with.",
                table: plan.table, column: "key")
        }
        connection.attach(statements, as: ObjectIdentifier(plan))
    }

    /// Refuses a table whose name differs from the bucket's only in the case of ASCII letters.
    /// SQLite ignores that difference; buckets do not.
    ///
    /// - Throws: `.misuse` for such a table.
    private func checkCase() throws(StoreError) {
        let name = try connection.firstRow(
            """
            SELECT name FROM sqlite_master
            WHERE type = 'table' AND name = \(plan.table) COLLATE NOCASE
            """,
            isReadOnly: false)
        guard case .text(let found)? = name?[0], SQLText(found) != SQLText(plan.table) else {
            return
        }
        throw StoreError(
            .misuse, "another bucket's name differs in the case of letters only: \(found)",
            hint: "Give the bucket another name.", table: plan.table)
    }

    // MARK: Reading

    func get<K: BucketKey, V: Codable>(_ key: K) throws(StoreError) -> V? {
        guard let found = try stored(key) else { return nil }
        do throws(StoreError) {
            return try plan.coding.decode(V.self, from: found)
        } catch {
            throw error.with(table: plan.table, column: "value")
        }
    }

    /// A copy of the value under a key, because the type's own code may use the bucket while it
    /// decodes. `nil` if there is no such key or no table.
    ///
    /// - Throws: As `onRow`.
    private func stored<K: BucketKey>(_ key: K) throws(StoreError) -> Value? {
        try onRow(of: key) { raw throws(StoreError) in try Statement.value(of: raw, at: 0) }
    }

    func contains<K: BucketKey>(_ key: K) throws(StoreError) -> Bool {
        try onRow(of: key) { _ in true } ?? false
    }

    func count() throws(StoreError) -> Int {
        guard try exists() else { return 0 }
        let statement = try connection.cached("SELECT count(*) FROM \(table)")
        defer { connection.release(statement) }
        return try statement.advance() ? try statement.column(0, as: Int.self) : 0
    }

    /// The entries of a range of keys, in key order; empty without a table.
    ///
    /// - Parameters:
    ///   - from: The first key of the range; `nil` for the first key of the bucket.
    ///   - below: The first key after the range; `nil` for no end.
    ///   - maximumCount: The most entries; `nil` for all, none for 0 or less.
    ///   - belongs: Stops at the first key that it refuses, because it refuses all later keys in
    ///     key order too.
    /// - Throws: `.mismatch` if a key or a value does not fit its type; errors of the query.
    func entries<K: BucketKey, V: Codable>(
        from: K?, below: K?, _ maximumCount: Int?, while belongs: (K) -> Bool = { _ in true }
    ) throws(StoreError) -> [BucketEntry<K, V>] {
        guard try exists() else { return [] }
        var conditions: [String] = []
        var arguments: [Value] = []
        if let from {
            conditions.append("key >= ?")
            arguments.append(try from.asValue())
        }
        if let below {
            conditions.append("key < ?")
            arguments.append(try below.asValue())
        }
        let filter = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
        let sql = "SELECT key, value FROM \(table)\(filter) ORDER BY key LIMIT ?"
        arguments.append(.integer(Int64(max(0, maximumCount ?? .max))))
        let statement = try connection.cached(sql)
        defer { connection.release(statement) }
        try statement.bindArguments(arguments)
        var entries: [BucketEntry<K, V>] = []
        while try statement.advance() {
            let key: K = try self.key(statement)
            guard belongs(key) else { break }
            entries.append(BucketEntry(key: key, value: try value(statement, at: 1)))
        }
        return entries
    }

    // MARK: Writing

    func set<K: BucketKey, V: Codable>(_ value: V, for key: K) throws(StoreError) {
        let key = try key.asValue()
        let value = try encode(value)
        do throws(StoreError) {
            try put(key, value)
        } catch  where error.code == .sql {
            guard try !exists() else { throw error.with(table: plan.table) }
            try run(try plan.createSQL(), [])
            connection.attach(statements, as: ObjectIdentifier(plan))
            try put(key, value)
        }
    }

    /// Inserts the entry, or replaces the value of the existing one. Not by INSERT OR REPLACE, for
    /// which SQLCipher 3.4.1 would encrypt a statement journal each time.
    ///
    /// - Throws: `.constraint` if the key is NULL; `.sql` if there is no table.
    private func put(_ key: Value, _ value: Value) throws(StoreError) {
        if try run(try statements.insertion(connection), key, value) { return }
        guard try run(try statements.update(connection), key, value) else {
            // Only a user's own key type can make NULL. OR IGNORE has ignored its NOT NULL
            // violation too.
            throw StoreError(.constraint, "the key is NULL", table: plan.table, column: "key")
        }
    }

    func remove<K: BucketKey>(_ key: K) throws(StoreError) -> Bool {
        guard try exists() else { return false }
        return try run(try statements.deletion(connection), try key.asValue())
    }

    func removeAll() throws(StoreError) -> Int {
        // `WHERE 1` makes SQLite count the rows: a plain DELETE truncates the table without
        // visiting them.
        try exists() ? try run("DELETE FROM \(table) WHERE 1", []) : 0
    }

    // MARK: Inside

    /// Calls `body` with a key's row; `nil` if there is no row or no table.
    ///
    /// - Throws: What `body` throws; errors of the query, with the table.
    private func onRow<K: BucketKey, R>(
        of key: K, _ body: (OpaquePointer) throws(StoreError) -> R
    ) throws(StoreError) -> R? {
        do throws(StoreError) {
            let statement = try statements.selection(connection)
            let raw = try statement.pointer()
            try statement.bindArgument(try key.asValue(), to: raw, at: 1)
            defer { statement.rewind() }
            return try statement.advance() ? try body(raw) : nil
        } catch  where error.code == .sql {
            if try exists() { throw error.with(table: plan.table) }
            return nil
        }
    }

    /// Runs a statement for one row.
    ///
    /// - Parameter value: The argument `?2`; `nil` for a statement without one.
    /// - Returns: Whether it changed the row.
    /// - Throws: Errors of the statement.
    private func run(
        _ statement: Statement, _ key: Value, _ value: Value? = nil
    ) throws(StoreError) -> Bool {
        let raw = try statement.pointer()
        defer { statement.forgetArguments() }
        try statement.bindArgument(key, to: raw, at: 1)
        if let value { try statement.bindArgument(value, to: raw, at: 2) }
        try statement.runToEnd()
        return coffer_changes(statement.handle.db) > 0
    }

    @discardableResult
    private func run(_ sql: String, _ arguments: [Value]) throws(StoreError) -> Int {
        let statement = try connection.cached(sql)
        defer { connection.release(statement) }
        try statement.bindArguments(arguments)
        try statement.runToEnd()
        return Int(coffer_changes(statement.handle.db))
    }

    private func exists() throws(StoreError) -> Bool {
        let statement = try connection.cached(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE")
        defer { connection.release(statement) }
        try statement.bindArguments([.text(plan.table)])
        return try statement.advance()
    }

    private func key<K: BucketKey>(_ statement: Statement) throws(StoreError) -> K {
        do throws(StoreError) {
            return try K(try statement.column(0))
        } catch {
            throw error.with(table: plan.table, column: "key")
        }
    }

    private func value<V: Codable>(_ statement: Statement, at index: Int) throws(StoreError) -> V {
        do throws(StoreError) {
            return try plan.coding.decode(V.self, from: try statement.column(index))
        } catch {
            throw error.with(table: plan.table, column: "value")
        }
    }

    private func encode<V: Codable>(_ value: V) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try plan.coding.encode(value)
        } catch {
            throw error.with(table: plan.table, column: "value")
        }
    }
}
