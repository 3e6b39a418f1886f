/// A table, index, view or trigger, as `sqlite_master` lists it.
public struct SchemaObject: Sendable, Hashable {
    /// The kind of an object in a schema.
    public enum Kind: String, Sendable, CaseIterable {
        /// A table, including a virtual one.
        case table
        /// An index that was created by name, and not by a constraint.
        case index
        /// A view.
        case view
        /// A trigger.
        case trigger
    }

    /// Its kind.
    public let kind: Kind
    /// Its name, as it was given.
    public let name: String
    /// The table that it belongs to; for tables and views their own name.
    public let table: String
    /// The schema: `main`, `temp`, or the name of an attached file.
    public let schema: String
    /// Its root page; 0 for views, triggers and virtual tables.
    public let rootPage: Int
    /// The SQL text that created it; `nil` if `sqlite_master` has none.
    public let sql: String?
}

/// A column of a table or view.
public struct ColumnInformation: Sendable, Hashable {
    /// Its position, from 0.
    public let position: Int
    /// Its name.
    public let name: String
    /// The type as declared; empty if there is none. SQLCipher 4 may return the usual ones in
    /// capitals.
    public let declaredType: String
    /// Whether it is declared NOT NULL.
    public let isNotNull: Bool
    /// The default as an SQL expression; `nil` if there is none.
    public let defaultExpression: String?
    /// Its position in the primary key, from 1; 0 if it does not belong to the key.
    public let primaryKeyPosition: Int
}

/// An index of a table, including one that a constraint made.
public struct IndexInformation: Sendable, Hashable {
    /// Its name.
    public let name: String
    /// Whether a combination of values may occur only once.
    public let isUnique: Bool
    /// Whether it has a WHERE clause.
    public let isPartial: Bool
    /// Whether the table's PRIMARY KEY or UNIQUE made it.
    public let isOfConstraint: Bool
    /// Its columns, in order; `nil` for an expression or the row id.
    public let columns: [String?]
}

/// A foreign key of a table.
public struct ForeignKeyInformation: Sendable, Hashable {
    /// A column, and the column of the parent that it refers to.
    public struct Reference: Sendable, Hashable {
        /// The column of this table.
        public let column: String
        /// The column of the parent; `nil` for its primary key.
        public let parentColumn: String?
    }

    /// The table that it refers to.
    public let parentTable: String
    /// The columns, in order.
    public let references: [Reference]
    /// The effect when the parent's key changes, such as `CASCADE`.
    public let onUpdate: String
    /// The effect when the parent's row is deleted, such as `SET NULL`.
    public let onDelete: String
}
