/// One row that a commit has changed.
public struct ChangedRow: Sendable, Hashable {
    /// What became of a row, from before the commit to after it.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// The row is new.
        case insert
        /// The row is the same by its key, and may have other values.
        case update
        /// The row is gone.
        case delete
    }

    /// The table's name, as the schema has it.
    public let table: String
    /// The values of the table's primary key, in its order; the row id in a table without one, or
    /// with one that may be NULL.
    ///
    /// In SQLite a primary key may be NULL, even in many rows, unless its columns are NOT NULL, the
    /// table is WITHOUT ROWID, or it is a single INTEGER, which is the row id. Tables that Coffer
    /// makes for records have a primary key that is never NULL.
    public let key: [Value]
    /// What became of the row.
    public let kind: Kind

    init(table: String, key: [Value], kind: Kind) {
        self.table = table
        self.key = key
        self.kind = kind
    }

    /// The key as a Swift value, for keys of one column.
    ///
    /// ```swift
    /// for change in batch.changes where change.kind == .delete {
    ///     try await server.delete(change.key(as: UUID.self))
    /// }
    /// ```
    ///
    /// - Throws: `StoreError` `.mismatch` if the key has several columns, or is no `K`.
    public func key<K: ValueConvertible>(as type: K.Type = K.self) throws -> K {
        guard key.count == 1 else {
            throw StoreError(.mismatch, "the key has \(key.count) columns", table: table)
        }
        do throws(StoreError) { return try K(key[0]) } catch { throw error.with(table: table) }
    }
}

/// What a loop over `Store.changes(in:)` is told.
public enum ChangeEvent: Sendable, Hashable {
    /// The rows that one commit has changed, each once: never empty. What came and went within the
    /// commit is not among them.
    case commit([ChangedRow])
    /// Rows have changed that are not told one by one: read what you need anew. The event stands
    /// for all commits up to the moment when the loop gets it.
    case rescan(Reason)

    /// Why rows are not told one by one. New reasons may be added.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        /// The reason's name, as written in this source: `overflow`.
        public let description: String

        /// Another process, or another connection of this one, has committed; what, it does not
        /// tell.
        public static let elsewhere = Self(description: "elsewhere")
        /// The loop was too slow, and more rows waited for it than `waitingRowCountMax`.
        public static let overflow = Self(description: "overflow")
        /// One commit changed 10 000 rows of observed tables or more.
        public static let tooManyRows = Self(description: "tooManyRows")
        /// The commit changed the schema: tables may have gone, come, or got other columns.
        public static let schema = Self(description: "schema")
        /// The commit had begun before the loop did, so not all of it was written down.
        public static let begunBefore = Self(description: "begunBefore")
        /// The commit replaced rows of a table with a unique index on an expression or on a part
        /// of the rows, or could not be written down; which rows have gone, cannot be told.
        public static let unknown = Self(description: "unknown")
    }
}
