#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An index of a record's table, for finding and sorting rows by its columns.
///
/// ```swift
/// static var indexes: [Index<Self>] {
///     [
///         Index(\.created),
///         Index(\.author, \.title, isUnique: true),
///         Index(\.created, where: \.deleted == nil),
///         Index(sql: "lower(title)"),
///     ]
/// }
/// ```
///
/// The primary key is always indexed.
public struct Index<R: Record>: Sendable {
    let paths: [PartialKeyPath<R> & Sendable]
    let expressions: [SQL]
    let isUnique: Bool
    let condition: SQL?
    let name: String?
    /// Whether the paths lead into JSON.
    let isOfJSON: Bool

    /// Describes an index.
    ///
    /// - Parameters:
    ///   - paths: The properties, in order; at least one.
    ///   - isUnique: Whether at most one row may have a combination of values. Any number of rows
    ///     may have NULL.
    ///   - condition: Which rows the index has; `nil` for all. A query uses the index if it has the
    ///     same condition and compares with `nil`, with the same SQL text, or on SQLCipher 4 also
    ///     with the same value. The condition names no other table and no function of the program.
    ///   - name: Its name in the file, which no table and no other index may have. `nil` for
    ///     `index_`, the table and the columns, joined by `_`, with a number added if that is
    ///     taken.
    public init(
        _ paths: (PartialKeyPath<R> & Sendable)..., isUnique: Bool = false,
        where condition: Condition<R>? = nil, name: String? = nil
    ) {
        self.paths = paths
        expressions = []
        isOfJSON = false
        self.isUnique = isUnique
        self.condition = condition?.sql
        self.name = name
    }

    /// Describes an index of expressions.
    ///
    /// ```swift
    /// Index(sql: "lower(title)", isUnique: true)
    /// ```
    ///
    /// A query uses it for the same SQL text. Every program that writes the table computes the
    /// expressions, so they call functions that SQLite 3.15 has by itself, and no others.
    ///
    /// - Parameters:
    ///   - expression: SQL over the columns of the table.
    ///   - others: Further expressions, in order.
    ///   - isUnique: As for an index of properties.
    ///   - condition: As for an index of properties.
    ///   - name: As for an index of properties.
    public init(
        sql expression: SQL, _ others: SQL..., isUnique: Bool = false,
        where condition: Condition<R>? = nil, name: String? = nil
    ) {
        paths = []
        expressions = [expression] + others
        isOfJSON = false
        self.isUnique = isUnique
        self.condition = condition?.sql
        self.name = name
    }

    /// Describes an index of values inside of JSON, with which **no other program can write the
    /// table any more**.
    ///
    /// ```swift
    /// Index(cofferOnly: \.address.city)
    /// ```
    ///
    /// SQLite computes the values by a function of Coffer. The `sqlcipher` shell and every other
    /// program lack it. They still read the table, and fail with "unknown function: coffer_json()"
    /// when they insert or delete a row or change that column, and when they check or rebuild the
    /// index (`integrity_check`, `REINDEX`, `VACUUM`). `DROP INDEX` makes the table theirs again.
    ///
    /// - Parameters:
    ///   - path: A property inside of a column of JSON.
    ///   - others: Further ones, in order.
    ///   - isUnique: As for an index of properties. Values that are missing or `null` are NULL.
    ///   - condition: As for an index of properties.
    ///   - name: As for an index of properties.
    /// - Complexity: Each write of a row computes the values again, in O(*bytes of the JSON*).
    public init(
        cofferOnly path: PartialKeyPath<R> & Sendable, _ others: (PartialKeyPath<R> & Sendable)...,
        isUnique: Bool = false, where condition: Condition<R>? = nil, name: String? = nil
    ) {
        paths = [path] + others
        expressions = []
        isOfJSON = true
        self.isUnique = isUnique
        self.condition = condition?.sql
        self.name = name
    }
}

/// A condition that every row of a record's table fulfils: the file refuses any other row.
///
/// ```swift
/// static var checks: [CheckConstraint<Self>] {
///     [CheckConstraint(\.price >= 0), CheckConstraint(sql: "length(title) <= 100")]
/// }
/// ```
///
/// All programs that write the table check it, so it calls functions that SQLite 3.15 has by
/// itself, and no others. A condition over NULL is not violated: declare the property as not
/// optional where it matters.
public struct CheckConstraint<R: Record>: Sendable {
    let sql: SQL

    /// Describes a condition by key paths.
    ///
    /// - Parameter condition: Compares the table's own columns with values that can be written as
    ///   SQL text and read back exactly.
    public init(_ condition: Condition<R>) { sql = condition.sql }

    /// Describes a condition by SQL.
    ///
    /// - Parameter expression: SQL over the columns of the table. `\( )` inserts a value that SQL
    ///   text keeps exactly.
    public init(sql expression: SQL) { sql = expression }
}

/// How SQLite compares and sorts the texts of a column.
public enum Collation: String, Sendable, CaseIterable {
    /// The case of A to Z is ignored.
    case nocase = "NOCASE"
    /// Spaces at the end are ignored.
    case rtrim = "RTRIM"
}

/// A foreign key of a record's table: its columns hold the key of a row of another table.
///
/// ```swift
/// static var references: [Reference<Self>] {
///     [Reference(\.author, to: Author.self, onDelete: .cascade)]
/// }
/// ```
///
/// Declare an index of the same columns to make deleting rows of the other table fast.
public struct Reference<R: Record>: Sendable {
    /// The effect on a row when the row that it refers to is deleted, or changes its key.
    public typealias Action = ColumnDefinition.Reference.Action

    let paths: [PartialKeyPath<R> & Sendable]
    let parent: @Sendable () throws(StoreError) -> (plan: RecordPlan, positions: [Int])
    let onDelete: Action
    let onUpdate: Action
    let isDeferred: Bool

    /// Refers to the key of another record type, or of the same.
    ///
    /// - Parameters:
    ///   - paths: The properties, as many and in the order as the other type's key.
    ///   - parent: The other type.
    ///   - onDelete: The action when the other row is deleted.
    ///   - onUpdate: The action when its key changes.
    ///   - isDeferred: Whether a missing row is an error only at the end of the transaction.
    public init<Parent: Record>(
        _ paths: (PartialKeyPath<R> & Sendable)..., to parent: Parent.Type,
        onDelete: Action = .noAction, onUpdate: Action = .noAction, isDeferred: Bool = false
    ) {
        self.paths = paths
        self.parent = { () throws(StoreError) in
            let plan = try RecordPlan.of(parent)
            try plan.requireKey(for: "a reference to it")
            return (plan, plan.keyPositions)
        }
        (self.onDelete, self.onUpdate, self.isDeferred) = (onDelete, onUpdate, isDeferred)
    }

    /// Refers to a property other than the key. The other type must declare a unique index for it.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - parent: The other type's property: `\Download.url`.
    ///   - onDelete: The action when the other row is deleted.
    ///   - onUpdate: The action when its property changes.
    ///   - isDeferred: Whether a missing row is an error only at the end of the transaction.
    public init<Parent: Record>(
        _ path: PartialKeyPath<R> & Sendable, to parent: PartialKeyPath<Parent> & Sendable,
        onDelete: Action = .noAction, onUpdate: Action = .noAction, isDeferred: Bool = false
    ) {
        paths = [path]
        self.parent = { () throws(StoreError) in
            let plan = try RecordPlan.of(Parent.self)
            let position = try plan.position(of: parent)
            try plan.requireLoaded(position)
            try TableDeclaration.requireUnique(position, of: Parent.self, plan)
            return (plan, [position])
        }
        (self.onDelete, self.onUpdate, self.isDeferred) = (onDelete, onUpdate, isDeferred)
    }
}

/// The value that existing rows get in a column that a record type has gained.
///
/// ```swift
/// static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
/// ```
///
/// It becomes the column's DEFAULT, so rows that other programs INSERT without the column get it
/// too. A record always writes its own value. An existing column keeps the default it has.
public struct Default<R: Record>: Sendable {
    enum Source: Sendable {
        case value(@Sendable (ConditionColumn) throws(StoreError) -> ConditionValue)
        case sql(SQL)
        /// The moment of the INSERT.
        case now
    }

    let path: PartialKeyPath<R> & Sendable
    let source: Source

    private init(_ path: PartialKeyPath<R> & Sendable, source: Source) {
        (self.path, self.source) = (path, source)
    }

    /// Gives a property's column a default.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - value: A value that can be written as SQL text and read back exactly. A text must not
    ///     contain NUL. A real must not have more than 15 digits if SQLite would round it.
    public init<V: Encodable & Sendable>(_ path: KeyPath<R, V> & Sendable, _ value: V) {
        self.init(path, source: .value { column throws(StoreError) in try column.value(value) })
    }

    /// Gives a property's column an expression as its default, which is computed for each row.
    ///
    /// ```swift
    /// Default(\.code, sql: "lower(hex(randomblob(8)))")
    /// ```
    ///
    /// `create` cannot add such a column to a table with rows: `tx.alter` in a migration can.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - expression: SQL without columns. `\( )` inserts a value.
    public init(_ path: PartialKeyPath<R> & Sendable, sql expression: SQL) {
        self.init(path, source: .sql(expression))
    }

    /// Gives a date's column the moment of the INSERT as its default, to the millisecond.
    ///
    /// - Parameter path: The property, which has no encoding of its own.
    public static func now(_ path: KeyPath<R, Date> & Sendable) -> Default {
        Default(path, source: .now)
    }
}

extension Record {
    /// No indexes besides the key's.
    public static var indexes: [Index<Self>] { [] }

    /// No foreign keys.
    public static var references: [Reference<Self>] { [] }

    /// No defaults.
    public static var defaults: [Default<Self>] { [] }

    /// No full-text index.
    public static var fullTextIndex: FullTextIndex<Self>? { nil }

    /// No conditions besides NOT NULL.
    public static var checks: [CheckConstraint<Self>] { [] }

    /// No triggers.
    public static var triggers: [Trigger<Self>] { [] }

    /// A table.
    public static var view: SQL? { nil }

    /// No collations: texts compare by their bytes.
    public static var collations: [PartialKeyPath<Self>: Collation] { [:] }

    /// False: the row id of a deleted row may be given out again.
    public static var isAutoincrement: Bool { false }

    /// False: the table has row ids.
    public static var isWithoutRowID: Bool { false }
}
