import CSQLCipher

/// Suspends foreign keys for a transaction that rebuilds tables.
///
/// `PRAGMA defer_foreign_keys` is not enough: DROP TABLE first deletes the table's rows, and ON
/// DELETE CASCADE then deletes the rows that refer to them. See
/// <https://www.sqlite.org/foreignkeys.html#fk_schemacommands>.
extension Handle {
    /// Must run before BEGIN: in a transaction the pragma does nothing.
    func pauseForeignKeys() throws(StoreError) {
        // Foreign keys that the program has switched off stay off.
        guard try firstInteger("PRAGMA foreign_keys") != 0 else { return }
        try run("PRAGMA foreign_keys = OFF")
        isPausingForeignKeys = true
    }

    /// Must run before the next BEGIN, or after COMMIT or ROLLBACK.
    func resumeForeignKeys() throws(StoreError) {
        guard isPausingForeignKeys else { return }
        try run("PRAGMA foreign_keys = ON")
        // In a transaction the pragma does nothing, and reports nothing.
        isPausingForeignKeys = try firstInteger("PRAGMA foreign_keys") == 0
    }
}

/// Rows that refer to missing rows, while foreign keys are suspended.
struct Orphans {
    private struct Kind: Hashable {
        let table: String
        let parent: String
        /// `nil` in a table without row ids: its rows are only counted.
        let rowID: Int64?

        init(_ row: Row) throws(StoreError) {
            let table: String = try row.read("table")
            let parent: String = try row.read("parent")
            (self.table, self.parent) = (table.asciiLowercased, parent.asciiLowercased)
            rowID = try row.read("rowid")
        }
    }

    private var counts: [Kind: Int] = [:]

    /// - Complexity: O(*rows of tables with foreign keys*), memory O(*orphans*).
    init(_ connection: Connection) throws(StoreError) {
        guard try connection.current().isPausingForeignKeys else { return }
        do throws(StoreError) {
            for row in try Self.rows(connection) { counts[try Kind(row), default: 0] += 1 }
        } catch {
            // A foreign key refers to columns that are not unique. The body may repair that, so
            // nothing is known yet.
            guard error.code == .sql else { throw error }
            counts = [:]
        }
    }

    /// - Throws: `.constraint` if there is an orphan that did not exist before.
    func requireNoOthers(_ connection: Connection) throws(StoreError) {
        guard try connection.current().isPausingForeignKeys else { return }
        var rest = counts
        for row in try Self.rows(connection) {
            let kind = try Kind(row)
            if let count = rest[kind], count > 0 {
                rest[kind] = count - 1
                continue
            }
            let table: String = try row.read("table")
            let parent: String = try row.read("parent")
            throw StoreError(
                .constraint,
                "FOREIGN KEY constraint failed: a row of \(table) refers to a row of "
                    + "\(parent) that does not exist",
                hint: "PRAGMA foreign_key_check lists all such rows.", table: table,
                resultCode: SQLITE_CONSTRAINT | 3 << 8)
        }
    }

    private static func rows(_ connection: Connection) throws(StoreError) -> [Row] {
        try connection.rows("PRAGMA foreign_key_check", isReadOnly: true)
    }
}
