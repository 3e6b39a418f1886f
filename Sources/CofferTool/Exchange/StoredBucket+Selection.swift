import Coffer

extension StoredBucket {
    /// Which entries a list has, and in which order.
    struct Selection {
        var prefix: String?
        var from: String?
        var below: String?
        var after: String?
        var isReversed = false
        var limit: Int?
    }

    /// Passes the entries to `body` one by one, in the order of the keys.
    func entries(
        _ connection: Connection, _ selection: Selection, _ body: (Value, Value) throws -> Void
    ) throws {
        try connection.transaction(.deferred) {
            let form = try requireForm { try connection.rows($0) }
            let sql = try select("key, value", form, selection, connection)
            let statement = try connection.prepare(sql.text)
            try statement.bind(sql.arguments)
            while try statement.step() {
                try body(form.shown(try statement.value(at: 0)), try statement.value(at: 1))
            }
        }
    }

    /// The query for the entries that are selected and have not expired.
    ///
    /// - Throws: `ToolError` `.usage` for a key that is not of the bucket's type.
    func select(
        _ columns: String, _ form: BucketForm, _ selection: Selection, _ connection: Connection
    ) throws -> SQL {
        guard selection.prefix == nil || form.keyType == "text" else {
            throw ToolError(.usage, "--prefix is for text keys; these are \(form.keyType)")
        }
        var sql = SQL(text: "SELECT \(columns)")
        sql.append(" FROM \(identifier: table) WHERE 1")
        if let prefix = selection.prefix { try appendPrefix(prefix, to: &sql, connection) }
        if let from = selection.from { sql.append(" AND key >= \(try form.stored(from, name))") }
        if let end = selection.below { sql.append(" AND key < \(try form.stored(end, name))") }
        if let after = selection.after {
            let key = try form.stored(after, name)
            sql.append(selection.isReversed ? " AND key < \(key)" : " AND key > \(key)")
        }
        form.appendLive(to: &sql)
        sql.append(selection.isReversed ? " ORDER BY key DESC" : " ORDER BY key")
        sql.append(" LIMIT \(selection.limit ?? .max)")
        return sql
    }

    /// Adds the condition that a text key begins with a prefix, byte by byte.
    private func appendPrefix(
        _ prefix: String, to sql: inout SQL, _ connection: Connection
    ) throws {
        sql.append(
            """
             AND substr(CAST(key AS BLOB), 1, length(CAST(\(prefix) AS BLOB)))
            = CAST(\(prefix) AS BLOB)
            """)
        // Bounds for the index, which hold in the order of UTF-8: no text has the byte FF.
        guard try connection.firstRow("PRAGMA encoding")?[0] == .text("UTF-8") else { return }
        sql.append(
            """
             AND key >= \(prefix)
            AND key < CAST(CAST(\(prefix) AS BLOB) || x'FF' AS TEXT)
            """)
    }
}
