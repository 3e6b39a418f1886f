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

    /// Calls `body` for each entry of a scan that lives now, in the order of the scan, until it
    /// returns `false`.
    ///
    /// - Parameters:
    ///   - columns: Those that `body` reads, in SQL.
    ///   - body: Gets the statement with its current row.
    /// - Throws: What `body` throws; errors of the query.
    func forEach(
        _ columns: String, _ scan: Scan, _ body: (Statement) throws(StoreError) -> Bool
    ) throws(StoreError) {
        guard let statements else { return }
        var (sql, arguments) = try condition(scan, statements)
        sql =
            "SELECT \(columns) FROM \(statements.table) WHERE \(sql)"
            + " ORDER BY key\(scan.order == .descending ? " DESC" : "") LIMIT ?"
        arguments.append(.integer(Int64(max(0, scan.maximumCount ?? .max))))
        let statement = try connection.cached(sql)
        defer { connection.release(statement) }
        try statement.bindArguments(arguments)
        while try statement.advance() {
            guard try body(statement) else { return }
        }
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
