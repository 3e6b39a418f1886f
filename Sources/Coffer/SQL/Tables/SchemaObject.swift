/// A table, index, view or trigger, as `sqlite_master` lists it.
public struct SchemaObject: Sendable, Hashable {
    /// What a schema consists of.
    public enum Kind: String, Sendable, CaseIterable {
        /// A table, also a virtual one.
        case table
        /// An index that has a name of its own.
        case index
        /// A view.
        case view
        /// A trigger.
        case trigger
    }

    /// What it is.
    public let kind: Kind
    /// Its name, as it was given.
    public let name: String
    /// The table that it belongs to; for tables and views their own name.
    public let table: String
    /// The schema: `main`, `temp`, or the name of an attached file.
    public let schema: String
    /// The page that it begins at; 0 for views, triggers and virtual tables.
    public let rootPage: Int
    /// The text that made it; `nil` for an index that a constraint made.
    public let sql: String?
}

/// A column of a table or view.
public struct ColumnInformation: Sendable, Hashable {
    /// Its place, from 0.
    public let position: Int
    /// Its name.
    public let name: String
    /// The type as declared; empty if there is none. SQLCipher 4 may write the usual ones in
    /// capitals.
    public let declaredType: String
    /// Whether it is declared NOT NULL.
    public let isNotNull: Bool
    /// The default as an SQL expression; `nil` if there is none.
    public let defaultExpression: String?
    /// Its place in the primary key, from 1; 0 if it is no part of it.
    public let primaryKeyPosition: Int
}

/// An index of a table, also one that a constraint made.
public struct IndexInformation: Sendable, Hashable {
    /// Its name.
    public let name: String
    /// Whether it allows a combination of values once only.
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
        /// The column of the parent; `nil` where its primary key is meant.
        public let parentColumn: String?
    }

    /// The table that it refers to.
    public let parentTable: String
    /// The columns, in order.
    public let references: [Reference]
    /// What happens when the parent's key changes, such as `CASCADE`.
    public let onUpdate: String
    /// What happens when the parent goes, such as `SET NULL`.
    public let onDelete: String
}
