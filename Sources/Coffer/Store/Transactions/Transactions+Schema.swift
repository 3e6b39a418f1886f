/// Facts about the schema, as the transaction sees it.
///
/// A parameter `schema` is `main` or `temp`; `nil` means both. Names are compared as SQLite does:
/// without regard to case in ASCII.
extension Reading where Self: ~Copyable {
    /// All tables, indexes, views and triggers except SQLite's own, whose names begin with
    /// `sqlite_`, ordered by schema and table.
    ///
    /// ```swift
    /// let tables = try tx.schemaObjects().filter { $0.kind == .table }.map(\.name)
    /// ```
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such schema; `.damaged`.
    /// - Complexity: O(*objects*).
    public func schemaObjects(in schema: String? = nil) throws -> [SchemaObject] {
        try connection().schemaObjects(in: schema)
    }

    /// Whether there is a table of this name, virtual ones included.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func tableExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try connection().tableExists(name, in: schema)
    }

    /// Whether there is a view of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func viewExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try connection().viewExists(name, in: schema)
    }

    /// Whether there is an index of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func indexExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try connection().indexExists(name, in: schema)
    }

    /// Whether there is a trigger of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func triggerExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try connection().triggerExists(name, in: schema)
    }

    /// Whether a table or view has a column of this name; `false` if there is no such table.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func columnExists(
        _ column: String, in table: String, of schema: String? = nil
    ) throws -> Bool {
        try connection().columnExists(column, in: table, of: schema)
    }

    /// The columns of a table or view, in order.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA table_info`.
    public func columns(of table: String, in schema: String? = nil) throws -> [ColumnInformation] {
        try connection().columns(of: table, in: schema)
    }

    /// The indexes of a table, including those of its constraints.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA index_list` and `PRAGMA index_info`.
    public func indexes(of table: String, in schema: String? = nil) throws -> [IndexInformation] {
        try connection().indexes(of: table, in: schema)
    }

    /// The foreign keys of a table.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA foreign_key_list`.
    public func foreignKeys(
        of table: String, in schema: String? = nil
    ) throws -> [ForeignKeyInformation] {
        try connection().foreignKeys(of: table, in: schema)
    }

    /// The number that a program gives its schema, 0 until it is set.
    ///
    /// - Throws: `StoreError` `.damaged`, `.io`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    public var userVersion: Int32 {
        get throws { try connection().userVersion }
    }

    /// The number that identifies the program that the file belongs to, 0 until it is set.
    ///
    /// - Throws: As `userVersion`.
    /// - Note: The corresponding SQL is `PRAGMA application_id`.
    public var applicationID: UInt32 {
        get throws { try connection().applicationID }
    }

    /// Compiles all statements of a text and runs none.
    ///
    /// Each statement is compiled against the current schema: one that needs a table which an
    /// earlier statement would create is `.sql`.
    ///
    /// - Throws: `StoreError` `.sql` for a text that does not compile or holds no statement, with
    ///   `sqlOffset` of the first statement that does not compile; `.misuse` for SQL that a store
    ///   refuses, such as COMMIT or a pragma with a key.
    public func validate(_ sql: String) throws {
        try connection().validate(sql)
    }
}

extension WriteTransaction {
    /// Sets the number that a program gives its schema.
    ///
    /// - Throws: `StoreError` `.full`, `.io`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    public func setUserVersion(_ version: Int32) throws {
        try connection().setUserVersion(version)
    }

    /// Sets the number that identifies the program that the file belongs to.
    ///
    /// - Throws: `StoreError` `.full`, `.io`.
    /// - Note: The corresponding SQL is `PRAGMA application_id`.
    public func setApplicationID(_ id: UInt32) throws {
        try connection().setApplicationID(id)
    }
}
