import CSQLCipher

/// What to do about SQL that fails for a reason that the engine's message does not tell.
enum SQLHint {
    /// A hint for SQL that failed: for VACUUM, for MATCH, and for RENAME COLUMN on SQLCipher 3.
    ///
    /// - Returns: `nil` for all other SQL.
    static func of(_ sql: String) -> String? {
        let words = sql.split { !$0.isLetter }.map { $0.lowercased() }
        if sql.isVacuum {
            return "VACUUM cannot run inside a transaction. Use Store.compact(), or run it on a "
                + "Connection, outside one."
        }
        let renames = zip(words, words.dropFirst()).contains { $0 == "rename" && $1 != "to" }
        if words.first == "alter", renames, sqlite3_libversion_number() < 3_025_000 {
            return "RENAME COLUMN needs SQLCipher 4. On this engine make a new table, copy the "
                + "rows, and drop the old table."
        }
        if words.contains("match") {
            return "MATCH needs a full-text table, and its text is a query: put each word of a "
                + "user in double quotes."
        }
        return nil
    }
}
