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

extension Connection {
    /// - Throws: `.constraint` if foreign keys had no effect meanwhile and one refers to nothing.
    /// - Complexity: O(*rows of tables with foreign keys*).
    func requireIntactForeignKeys() throws(StoreError) {
        guard try current().isPausingForeignKeys else { return }
        guard let row = try firstRow("PRAGMA foreign_key_check", isReadOnly: true) else { return }
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
