extension Migration {
    /// Runs migrations on a new store in memory, and compares the result with record types.
    ///
    /// One line in a program's tests. It finds a migration that works only on files that exist: one
    /// that makes the table of a type as the type is now, and one after it that expects the table
    /// as it was.
    ///
    /// ```swift
    /// @Test func `a new file runs all migrations`() throws {
    ///     try Migration.rehearse(migrations, for: Note.self, Author.self)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - migrations: All migrations of the program.
    ///   - types: The record types whose tables the migrations make.
    /// - Throws: What a migration throws; `StoreError` `.mismatch` with all differences between a
    ///   type and its table; otherwise as `migrate(_:)`.
    /// - Complexity: The time of the migrations on an empty store.
    public static func rehearse(
        _ migrations: [Migration], for types: any Record.Type...
    ) throws {
        let store = try Store(.memory)
        defer { try? store.close() }
        try store.migrate(migrations)
        try store.read { tx in
            for type in types { try requireTable(of: type, &tx) }
        }
    }

    private static func requireTable<R: Record>(
        of type: R.Type, _ tx: inout ReadTransaction
    ) throws {
        let differences = try tx.schemaDifferences(of: type)
        guard !differences.isEmpty else { return }
        let text = differences.map(\.description).joined(separator: ", ")
        throw StoreError(
            .mismatch, "after all migrations the table and \(type) differ: \(text)",
            hint: "Add a migration that makes the table as the type is now.", table: type.table)
    }
}
