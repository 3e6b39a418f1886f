import CSQLCipher

/// Foreign keys without effect, for a transaction that rebuilds tables.
///
/// `PRAGMA defer_foreign_keys` is not enough: DROP TABLE deletes the rows of a table first, and
/// then what refers to them with ON DELETE CASCADE goes as well.
/// See <https://www.sqlite.org/foreignkeys.html#fk_schemacommands>.
extension Handle {
    /// Before BEGIN: in a transaction the pragma does nothing.
    func pauseForeignKeys() throws(StoreError) {
        // Who has switched them off keeps them off.
        guard try firstInteger("PRAGMA foreign_keys") != 0 else { return }
        try run("PRAGMA foreign_keys = OFF")
        isPausingForeignKeys = true
    }

    /// Before the next BEGIN, or after COMMIT or ROLLBACK.
    func resumeForeignKeys() throws(StoreError) {
        guard isPausingForeignKeys else { return }
        try run("PRAGMA foreign_keys = ON")
        // In a transaction the pragma does nothing, and says so by nothing.
        isPausingForeignKeys = try firstInteger("PRAGMA foreign_keys") == 0
    }
}

/// Rows that refer to rows that are not there, while foreign keys have no effect.
struct Orphans {
    private struct Kind: Hashable {
        let table: String
        let parent: String
        /// `nil` in a table without row ids: there they are counted.
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
            // A key that refers to no unique columns: who mends it may, and nothing is known.
            guard error.code == .sql else { throw error }
            counts = [:]
        }
    }

    /// - Throws: `.constraint` if there is an orphan that was none before.
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
                    + "\(parent) that is not there",
                hint: "PRAGMA foreign_key_check lists all such rows.", table: table,
                resultCode: SQLITE_CONSTRAINT | 3 << 8)
        }
    }

    private static func rows(_ connection: Connection) throws(StoreError) -> [Row] {
        try connection.rows("PRAGMA foreign_key_check", isReadOnly: true)
    }
}
