import CSQLCipher

/// What a migration has switched on its connection, until it ends.
///
/// Foreign keys are suspended. `PRAGMA defer_foreign_keys` would not be enough: DROP TABLE first
/// deletes the table's rows, and ON DELETE CASCADE then deletes the rows that refer to them. See
/// <https://www.sqlite.org/foreignkeys.html#fk_schemacommands>.
struct MigrationMode {
    fileprivate var pausesForeignKeys = false
    fileprivate var renamesAsBefore = false
    /// Whether a migration runs, also if nothing had to be switched.
    fileprivate(set) var isRunning = false

    fileprivate var isActive: Bool { isRunning || pausesForeignKeys || renamesAsBefore }
}

extension Handle {
    /// Switches foreign keys off, if they are on, and the old renaming of tables on. Must run
    /// before BEGIN: in a transaction the pragma of foreign keys does nothing.
    ///
    /// - Throws: Errors of the pragmas.
    func beginMigrationMode() throws(StoreError) {
        migrationMode.isRunning = true
        try renameAsBefore()
        // Foreign keys that the program has switched off stay off.
        guard try firstInteger("PRAGMA foreign_keys") != 0 else { return }
        try run("PRAGMA foreign_keys = OFF")
        migrationMode.pausesForeignKeys = true
    }

    /// Makes the renaming of a table work as on SQLCipher 3, with SQLite 3.15. Throws errors of the
    /// pragmas.
    ///
    /// "From SQLite 3.26.0, FOREIGN KEY constraints are always converted": children of a renamed
    /// table would refer to its new name. See <https://www.sqlite.org/lang_altertable.html>.
    private func renameAsBefore() throws(StoreError) {
        guard sqlite3_libversion_number() >= 3_026_000,
            try firstInteger("PRAGMA legacy_alter_table") == 0
        else { return }
        try run("PRAGMA legacy_alter_table = ON")
        migrationMode.renamesAsBefore = true
    }

    /// Switches back what `beginMigrationMode()` has switched. Must run before the next BEGIN, or
    /// after COMMIT or ROLLBACK.
    ///
    /// In a transaction foreign keys stay off, and `isPausingForeignKeys` stays true.
    ///
    /// - Throws: Errors of the pragmas.
    @inline(__always)
    func endMigrationMode() throws(StoreError) {
        if migrationMode.isActive { try endActiveMigrationMode() }
    }

    @inline(never)
    private func endActiveMigrationMode() throws(StoreError) {
        migrationMode.isRunning = false
        if migrationMode.renamesAsBefore {
            try run("PRAGMA legacy_alter_table = OFF")
            migrationMode.renamesAsBefore = false
        }
        guard migrationMode.pausesForeignKeys else { return }
        try run("PRAGMA foreign_keys = ON")
        // In a transaction the pragma does nothing, and reports nothing.
        migrationMode.pausesForeignKeys = try firstInteger("PRAGMA foreign_keys") == 0
    }
}

extension Handle {
    /// Runs `body` with foreign keys in effect, so that ALTER TABLE gives the foreign keys of other
    /// tables the new name of a table. `body` must change no row.
    ///
    /// In a transaction the pragma does nothing, but the option does. See
    /// <https://www.sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfigenablefkey>.
    ///
    /// - Throws: What `body` throws; errors of the pragma.
    func enforcingForeignKeys(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        guard try firstInteger("PRAGMA foreign_keys") == 0 else { return try body() }
        _ = coffer_set_option(db, Int32(coffer_option_foreign_keys), 1)
        defer { _ = coffer_set_option(db, Int32(coffer_option_foreign_keys), 0) }
        try body()
    }
}

extension MigrationMode {
    /// Whether foreign keys are suspended.
    var isPausingForeignKeys: Bool { pausesForeignKeys }
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

    /// Counts the rows that refer to missing rows now. Counts none while foreign keys are not
    /// suspended, nor if a foreign key refers to columns that are not unique.
    ///
    /// - Throws: Errors of `PRAGMA foreign_key_check`, except `.sql`.
    /// - Complexity: O(*rows of tables with foreign keys*), memory O(*orphans*).
    init(_ connection: Connection) throws(StoreError) {
        guard try connection.current().migrationMode.isPausingForeignKeys else { return }
        do throws(StoreError) {
            for row in try Self.rows(connection) { counts[try Kind(row), default: 0] += 1 }
        } catch {
            // A foreign key refers to columns that are not unique. The body may repair that, so
            // nothing is known yet.
            guard error.code == .sql else { throw error }
            counts = [:]
        }
    }

    /// Checks that the database has no orphan that did not exist when `self` was made. Does nothing
    /// while foreign keys are not suspended.
    ///
    /// - Throws: `.constraint` for such an orphan, with its table; errors of
    ///   `PRAGMA foreign_key_check`.
    func requireNoOthers(_ connection: Connection) throws(StoreError) {
        guard try connection.current().migrationMode.isPausingForeignKeys else { return }
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
