import Coffer

extension StoredBucket {
    /// An entry as it is known after a change.
    struct Changed: Sendable {
        /// Microseconds since 1970 at which it ends; `nil` for never.
        let end: Int64?
    }

    /// Gives an entry another time at which it ends.
    ///
    /// - Returns: `nil` if there is no such entry, or if it has expired: it stays so.
    /// - Throws: `ToolError` `.constraint` if a trigger refuses it.
    func expire(
        _ key: String, _ end: EntryEnd, _ tx: inout WriteTransaction
    ) throws -> Changed? {
        let form = try requireForm { try tx.rows($0) }
        let stored = try form.stored(key, name)
        var live: SQL = "SELECT 1 FROM \(identifier: table) WHERE key = \(stored)"
        form.appendLive(to: &live)
        guard try tx.firstRow(live) != nil else { return nil }
        let time = try end.time(now: BucketForm.now)
        // An entry of a bucket without the column never ends.
        guard form.hasExpiry || time != nil else { return Changed(end: nil) }
        if !form.hasExpiry { try addExpiry { try tx.execute($0) } }
        try requireChange(
            tx.execute("UPDATE \(identifier: table) SET expires = \(time) WHERE key = \(stored)"))
        return Changed(end: time)
    }

    /// Adds the column for expiry and its index, as `Documentation/file-format.md` has them.
    func addExpiry(_ run: (SQL) throws -> Void) throws {
        try run("ALTER TABLE \(identifier: table) ADD COLUMN expires INTEGER")
        try run(
            """
            CREATE INDEX \(identifier: "coffer:expires:" + name) ON \(identifier: table) (expires) \
            WHERE expires IS NOT NULL
            """)
    }
}
