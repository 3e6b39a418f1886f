import CSQLCipher

/// One bucket's table on one connection.
struct BucketTable {
    private let connection: Connection
    private let plan: BucketPlan
    private let table: String

    init(_ connection: Connection, _ plan: BucketPlan) throws(StoreError) {
        self.connection = connection
        self.plan = plan
        table = try plan.quoted.get()
        if try connection.attachment(ObjectIdentifier(plan)) == nil { try checkKeyType() }
    }

    /// Refuses a table whose keys are of another type: SQLite would convert them in silence. Asked
    /// once for each connection, as soon as the table is there.
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
        connection.attach(plan, as: ObjectIdentifier(plan))
    }

    /// SQLite ignores the case of ASCII letters in a table's name; buckets do not.
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
        try onRow("SELECT value FROM \(table) WHERE key = ?1", [try key.asValue()]) {
            statement throws(StoreError) in
            try value(statement, at: 0)
        }
    }

    func contains<K: BucketKey>(_ key: K) throws(StoreError) -> Bool {
        let sql = "SELECT 1 FROM \(table) WHERE key = ?1"
        return try onRow(sql, [try key.asValue()]) { _ in true } ?? false
    }

    func count() throws(StoreError) -> Int {
        try onRow("SELECT count(*) FROM \(table)", []) { statement throws(StoreError) in
            try statement.column(0, as: Int.self)
        } ?? 0
    }

    /// Ends early at the first key that `belongs` refuses: in the order of keys, the rest does too.
    func entries<K: BucketKey, V: Codable>(
        from: K?, below: K?, _ countMax: Int?, while belongs: (K) -> Bool = { _ in true }
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
        arguments.append(.integer(Int64(max(0, countMax ?? .max))))
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
        let arguments = [try key.asValue(), try encode(value)]
        let sql = "INSERT OR REPLACE INTO \(table) (key, value) VALUES (?1, ?2)"
        do throws(StoreError) {
            try run(sql, arguments)
        } catch  where error.code == .sql {
            guard try !exists() else { throw error.with(table: plan.table) }
            try run(try plan.createSQL(), [])
            try run(sql, arguments)
        }
    }

    func remove<K: BucketKey>(_ key: K) throws(StoreError) -> Bool {
        guard try exists() else { return false }
        return try run("DELETE FROM \(table) WHERE key = ?1", [try key.asValue()]) > 0
    }

    func removeAll() throws(StoreError) -> Int {
        // `WHERE 1` counts the rows: a plain DELETE truncates without looking at them.
        try exists() ? try run("DELETE FROM \(table) WHERE 1", []) : 0
    }

    // MARK: Inside

    /// The first row of a SELECT; `nil` without a row or without the table.
    private func onRow<R>(
        _ sql: String, _ arguments: [Value], _ body: (Statement) throws(StoreError) -> R
    ) throws(StoreError) -> R? {
        let statement: Statement
        do throws(StoreError) {
            statement = try connection.cached(sql)
        } catch  where error.code == .sql {
            if try exists() { throw error.with(table: plan.table) }
            return nil
        }
        defer { connection.release(statement) }
        try statement.bindArguments(arguments)
        do throws(StoreError) {
            return try statement.advance() ? try body(statement) : nil
        } catch  where error.code == .sql {
            // Compiled while the table was there; a rollback has removed it since.
            if try exists() { throw error.with(table: plan.table) }
            return nil
        }
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
