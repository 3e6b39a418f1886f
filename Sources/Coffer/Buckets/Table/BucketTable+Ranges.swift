extension BucketTable {
    /// The part of a bucket that a scan visits, and how.
    struct Scan {
        var bounds = KeyBounds()
        var order = ScanOrder.ascending
        /// The key after which the scan begins, in its order; `nil` for its first one.
        var after: Value?
        /// The most entries; `nil` for all, none for 0 or less.
        var maximumCount: Int?
    }

    /// The rows of the entries of a scan that live now, in the order of the scan.
    ///
    /// A loop over them needs no closure, whose types Swift would look up for each row.
    ///
    /// - Parameters:
    ///   - columns: Those that are read, in SQL.
    ///   - scan: Which entries.
    /// - Throws: Errors of the query.
    func rows(_ columns: String, _ scan: Scan) throws(StoreError) -> ScannedRows {
        guard let statements else { return ScannedRows(connection, nil) }
        var (sql, arguments) = try condition(scan, statements)
        sql =
            "SELECT \(columns) FROM \(statements.table) WHERE \(sql)"
            + " ORDER BY key\(scan.order == .descending ? " DESC" : "") LIMIT ?"
        arguments.append(.integer(Int64(max(0, scan.maximumCount ?? .max))))
        let rows = ScannedRows(connection, try connection.cached(sql))
        try rows.statement?.bindArguments(arguments)
        return rows
    }

    /// Key and value of the first entry of a scan; `nil` if there is none.
    ///
    /// - Throws: Errors of the query.
    func first(_ scan: Scan) throws(StoreError) -> (key: Value, value: Value)? {
        let rows = try rows("key, value", scan)
        guard let row = try rows.next() else { return nil }
        return (try row.column(0), try row.column(1))
    }

    /// The number of entries in a range that live now.
    ///
    /// - Throws: Errors of the query.
    func count(_ bounds: KeyBounds) throws(StoreError) -> Int {
        guard let statements else { return 0 }
        let (condition, arguments) = try condition(Scan(bounds: bounds), statements)
        let statement = try connection.cached(
            "SELECT count(*) FROM \(statements.table) WHERE \(condition)")
        defer { connection.release(statement) }
        try statement.bindArguments(arguments)
        return try statement.advance() ? try statement.column(0, as: Int.self) : 0
    }

    /// Removes the entries of a range, also the expired ones.
    ///
    /// - Returns: The number of removed entries that had not expired.
    /// - Throws: Errors of the statements.
    func removeAll(_ bounds: KeyBounds) throws(StoreError) -> Int {
        guard let statements else { return 0 }
        let count = try removeAll(bounds, statements, isLiveOnly: true)
        if statements.hasExpiry { _ = try removeAll(bounds, statements, isLiveOnly: false) }
        return count
    }

    private func removeAll(
        _ bounds: KeyBounds, _ statements: BucketStatements, isLiveOnly: Bool
    ) throws(StoreError) -> Int {
        let (condition, arguments) = try condition(
            Scan(bounds: bounds), statements, isLiveOnly: isLiveOnly)
        // A condition makes SQLite count the rows: a plain DELETE truncates the table without
        // visiting them.
        return try connection.perform(
            SQL(text: "DELETE FROM \(statements.table) WHERE \(condition)", arguments: arguments))
    }

    /// The condition of a scan, and its arguments in order.
    private func condition(
        _ scan: Scan, _ statements: BucketStatements, isLiveOnly: Bool = true
    ) throws(StoreError) -> (String, [Value]) {
        var conditions: [String] = []
        var arguments: [Value] = []
        if let prefix = scan.bounds.textPrefix, try !hasUTF8Texts() {
            // The bounds of a prefix are in the order of UTF-8.
            conditions.append(
                "substr(CAST(key AS BLOB), 1, length(CAST(? AS BLOB))) = CAST(? AS BLOB)")
            arguments += [.text(prefix), .text(prefix)]
        } else {
            if let lower = scan.bounds.lower {
                conditions.append("key >= ?")
                arguments.append(lower)
            }
            if let upper = scan.bounds.upper {
                conditions.append(scan.bounds.includesUpper ? "key <= ?" : "key < ?")
                arguments.append(upper)
            }
        }
        if let after = scan.after {
            conditions.append(scan.order == .ascending ? "key > ?" : "key < ?")
            arguments.append(after)
        }
        if isLiveOnly, statements.hasExpiry {
            conditions.append(statements.isLive(at: "?"))
            arguments.append(.integer(try now()))
        }
        return (conditions.isEmpty ? "1" : conditions.joined(separator: " AND "), arguments)
    }

    private func hasUTF8Texts() throws(StoreError) -> Bool {
        try connection.firstRow("PRAGMA encoding", isReadOnly: false)?[0] == .text("UTF-8")
    }
}

/// The rows of one scan of a bucket's table, one after the other.
struct ScannedRows: ~Copyable {
    private let connection: Connection
    /// Selects the rows; `nil` for a bucket without a table, which has none.
    fileprivate let statement: Statement?

    fileprivate init(_ connection: Connection, _ statement: Statement?) {
        (self.connection, self.statement) = (connection, statement)
    }

    deinit {
        if let statement { connection.release(statement) }
    }

    /// Goes to the next row, and returns the statement that has it; `nil` at the end.
    ///
    /// - Throws: Errors of the query.
    func next() throws(StoreError) -> Statement? {
        guard let statement, try statement.advance() else { return nil }
        return statement
    }
}
