/// Tables and indexes from descriptions. Write what descriptions cannot express (CHECK, COLLATE,
/// WITHOUT ROWID, expressions) as SQL, with `execute(_:)`.
extension Connection {
    /// Makes a table.
    ///
    /// - Parameters:
    ///   - table: Its name; any text without NUL.
    ///   - columns: Its columns, in order. Never empty.
    ///   - ifNotExists: Whether an existing table of this name, whatever its columns, is left as it
    ///     is instead of being an error. `addColumnIfMissing(_:to:)` adds missing columns.
    /// - Throws: `StoreError` `.sql` if the table exists, or for what SQLite refuses, such as two
    ///   columns of one name; `.misuse` without columns; `.mismatch` for a default that cannot be
    ///   written exactly; `.damaged`, `.busy`, `.full`, `.io`.
    /// - Note: The corresponding SQL is `CREATE TABLE`.
    public func createTable(
        _ table: String, _ columns: [ColumnDefinition], ifNotExists: Bool = false
    ) throws {
        do throws(StoreError) {
            guard !columns.isEmpty else {
                throw StoreError(.misuse, "a table needs at least one column")
            }
            let keys = columns.filter(\.isPrimaryKey)
            var parts: [String] = []
            for column in columns {
                let isWholeKey = column.isPrimaryKey && keys.count == 1
                parts.append(try definition(of: column, isWholeKey: isWholeKey))
            }
            if keys.count > 1 {
                var names: [String] = []
                for key in keys { names.append(try key.name.quotedIdentifier()) }
                parts.append("PRIMARY KEY (\(names.joined(separator: ", ")))")
            }
            let clause = ifNotExists ? "IF NOT EXISTS " : ""
            let name = try table.quotedIdentifier()
            try perform(
                SQL(text: "CREATE TABLE \(clause)\(name) (\(parts.joined(separator: ", ")))"))
        } catch {
            throw error.with(table: table)
        }
    }

    /// Removes a table with its rows, indexes and triggers.
    ///
    /// - Parameters:
    ///   - table: Its name.
    ///   - ifExists: Whether a missing table is not an error.
    /// - Throws: `StoreError` `.notFound` if there is no such table, `.constraint` if rows of
    ///   another table refer to its rows, `.busy` while a statement has a current row; `.damaged`,
    ///   `.full`, `.io`.
    /// - Note: The corresponding SQL is `DROP TABLE`.
    public func dropTable(_ table: String, ifExists: Bool = false) throws {
        try onTable(table) { () throws(StoreError) in
            let clause = ifExists ? "IF EXISTS " : ""
            try perform(SQL(text: "DROP TABLE \(clause)\(try table.quotedIdentifier())"))
        }
    }

    /// Makes an index.
    ///
    /// ```swift
    /// try connection.createIndex(on: "note", columns: ["author", "created"], ifNotExists: true)
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - columns: Its columns, in order. Never empty.
    ///   - isUnique: Whether a combination of values may occur in one row only.
    ///   - ifNotExists: Whether the same index under the same name is not an error. A different
    ///     index of that name always is, because a name does not say what is indexed.
    ///   - name: Its name; `nil` for `index_`, the table and the columns, joined by `_`.
    /// - Returns: Its name.
    /// - Throws: `StoreError` `.notFound` if there is no such table or column; `.mismatch` if, with
    ///   `ifNotExists`, the index of that name is a different one; `.sql` if the name is taken
    ///   otherwise; `.constraint` if a unique index finds the same values in two rows; `.misuse`
    ///   without columns, or while a statement outside a transaction has a current row; `.damaged`,
    ///   `.busy`, `.full`, `.io`.
    /// - Complexity: O(*rows* log *rows*).
    /// - Note: The corresponding SQL is `CREATE INDEX`.
    @discardableResult
    public func createIndex(
        on table: String, columns: [String], isUnique: Bool = false, ifNotExists: Bool = false,
        name: String? = nil
    ) throws -> String {
        guard !columns.isEmpty else {
            throw StoreError(.misuse, "an index needs at least one column", table: table)
        }
        let name = name ?? (["index", table] + columns).joined(separator: "_")
        let terms = try columns.map { try $0.quotedIdentifier() }.joined(separator: ", ")
        let sql = SQL(
            text: "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(try name.quotedIdentifier()) "
                + "ON \(try table.quotedIdentifier()) (\(terms))")
        try asWhole {
            // SQLite would treat an unknown column name in quotes as a text, and index that.
            let known = try self.columns(of: table)
            for column in columns where !known.contains(where: { $0.isNamed(column) }) {
                throw StoreError(.notFound, "there is no such column", table: table, column: column)
            }
            let existing = try indexes(of: table).first { $0.name.isSameIdentifier(as: name) }
            if ifNotExists, let existing {
                guard existing.covers(columns, isUnique: isUnique) else {
                    throw StoreError(
                        .mismatch, "the index \(existing.name) exists, but on other columns",
                        hint: "Give the new index another name.", table: table)
                }
                return
            }
            try onTable(table) { () throws(StoreError) in _ = try perform(sql) }
        }
        return name
    }

    /// Removes an index; its table stays.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - ifExists: Whether a missing index is not an error.
    /// - Throws: `StoreError` `.notFound` if there is no such index, `.sql` if a constraint of the
    ///   table needs it, `.busy` while a statement has a current row; `.damaged`, `.full`, `.io`.
    /// - Note: The corresponding SQL is `DROP INDEX`.
    public func dropIndex(_ name: String, ifExists: Bool = false) throws {
        let sql = "DROP INDEX \(ifExists ? "IF EXISTS " : "")\(try name.quotedIdentifier())"
        do throws(StoreError) {
            try perform(SQL(text: sql))
        } catch {
            guard error.code == .sql, (try? indexExists(name)) == false else { throw error }
            throw StoreError(
                .notFound, "there is no such index", sql: error.sql, resultCode: error.resultCode)
        }
    }

    /// Adds a column to a table, unless it has one of this name, which stays as it is.
    ///
    /// Existing rows get the default.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table.
    /// - Returns: Whether it was added.
    /// - Throws: `StoreError` `.notFound` if there is no such table; `.sql` for what SQLite cannot
    ///   add: a key, a unique column, NOT NULL without a default (in SQLCipher 4 only if there are
    ///   rows); `.misuse` while a statement outside a transaction has a current row; `.mismatch`,
    ///   `.damaged`, `.busy`, `.full`, `.io`.
    /// - Complexity: O(1), whatever the number of rows.
    /// - Note: The corresponding SQL is `ALTER TABLE … ADD COLUMN`.
    @discardableResult
    public func addColumnIfMissing(_ column: ColumnDefinition, to table: String) throws -> Bool {
        try asWhole {
            guard try !columnExists(column.name, in: table) else { return false }
            return try onTable(table) { () throws(StoreError) in
                let text = try definition(of: column, isWholeKey: column.isPrimaryKey)
                let name = try table.quotedIdentifier()
                try perform(SQL(text: "ALTER TABLE \(name) ADD COLUMN \(text)"))
                return true
            }
        }
    }

    private func definition(
        of column: ColumnDefinition, isWholeKey: Bool
    ) throws(StoreError) -> String {
        do throws(StoreError) {
            let text = try literal(column.defaultValue)
            return try column.sql(defaultText: text, isWholeKey: isWholeKey)
        } catch {
            throw StoreError(error.code, error.message, hint: error.hint, column: column.name)
        }
    }
}

extension ColumnInformation {
    fileprivate func isNamed(_ other: String) -> Bool { name.isSameIdentifier(as: other) }
}

extension IndexInformation {
    fileprivate func covers(_ names: [String], isUnique: Bool) -> Bool {
        self.isUnique == isUnique && !isPartial && columns.count == names.count
            && zip(columns, names).allSatisfy { $0?.isSameIdentifier(as: $1) == true }
    }
}
