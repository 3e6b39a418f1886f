/// An index of a record's table, for finding and sorting rows by its columns.
///
/// ```swift
/// static var indexes: [Index<Self>] {
///     [Index(\.created), Index(\.author, \.title, isUnique: true)]
/// }
/// ```
///
/// The primary key is always indexed.
public struct Index<R: Record>: Sendable {
    let paths: [PartialKeyPath<R> & Sendable]
    let isUnique: Bool
    let name: String?

    /// Describes an index.
    ///
    /// - Parameters:
    ///   - paths: The properties, in order; at least one.
    ///   - isUnique: Whether at most one row may have a combination of values. Any number of rows
    ///     may have NULL.
    ///   - name: Its name in the file, which no table and no other index may have. `nil` for
    ///     `index_`, the table and the columns, joined by `_`, with a number added if that is
    ///     taken.
    public init(
        _ paths: (PartialKeyPath<R> & Sendable)..., isUnique: Bool = false, name: String? = nil
    ) {
        self.paths = paths
        self.isUnique = isUnique
        self.name = name
    }
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
    let path: PartialKeyPath<R> & Sendable
    let value: @Sendable (ConditionColumn) throws(StoreError) -> ConditionValue

    /// Gives a property's column a default.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - value: A value that can be written as SQL text and read back exactly. A text must not
    ///     contain NUL. A real must not have more than 15 digits if SQLite would round it.
    public init<V: Encodable & Sendable>(_ path: KeyPath<R, V> & Sendable, _ value: V) {
        self.path = path
        self.value = { column throws(StoreError) in try column.value(value) }
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

    /// False: the table has row ids.
    public static var isWithoutRowID: Bool { false }
}
