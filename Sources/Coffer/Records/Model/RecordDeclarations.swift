/// An index of a record's table: its rows in the order of columns, so that they are found by them.
///
/// ```swift
/// static var indexes: [Index<Self>] {
///     [Index(\.created), Index(\.author, \.title, isUnique: true)]
/// }
/// ```
///
/// The primary key has one by itself.
public struct Index<R: Record>: Sendable {
    let paths: [PartialKeyPath<R> & Sendable]
    let isUnique: Bool
    let name: String?

    /// Describes an index.
    ///
    /// - Parameters:
    ///   - paths: The properties, in order. One at least.
    ///   - isUnique: Whether a combination of values may stand in one row only. NULL may stand in
    ///     many.
    ///   - name: Its name in the file, which no other index has, of whatever table; `nil` for
    ///     `index_`, the table and the columns, joined by `_`, and a number if that is taken.
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
/// To delete rows of the other table fast, declare an index of the same columns.
public struct Reference<R: Record>: Sendable {
    /// What happens to a row when the one that it refers to goes, or changes its key.
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
    ///   - onDelete: When the row goes that is referred to.
    ///   - onUpdate: When its key changes.
    ///   - isDeferred: Whether a missing row is an error at the end of the transaction only.
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

    /// Refers to another property than the key, for which the other type declares a unique index.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - parent: The other type's property: `\Download.url`.
    ///   - onDelete: When the row goes that is referred to.
    ///   - onUpdate: When its property changes.
    ///   - isDeferred: Whether a missing row is an error at the end of the transaction only.
    public init<Parent: Record>(
        _ path: PartialKeyPath<R> & Sendable, to parent: PartialKeyPath<Parent> & Sendable,
        onDelete: Action = .noAction, onUpdate: Action = .noAction, isDeferred: Bool = false
    ) {
        paths = [path]
        self.parent = { () throws(StoreError) in
            let plan = try RecordPlan.of(Parent.self)
            let position = try plan.position(of: parent)
            try TableDeclaration.requireUnique(position, of: Parent.self, plan)
            return (plan, [position])
        }
        (self.onDelete, self.onUpdate, self.isDeferred) = (onDelete, onUpdate, isDeferred)
    }
}

/// What the rows that are there get in a column that a record type has gained.
///
/// ```swift
/// static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
/// ```
///
/// It becomes the column's DEFAULT, so rows of other programs' INSERTs get it too. A record always
/// has a value of its own. A column that is there already keeps the default it has.
public struct Default<R: Record>: Sendable {
    let path: PartialKeyPath<R> & Sendable
    let value: @Sendable (ConditionColumn) throws(StoreError) -> Value

    /// Gives a property's column a default.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - value: A value that can be written as SQL text and read back exactly: not a text with
    ///     NUL, and not a real of more than 15 digits that the engine would round.
    public init<V: Encodable & Sendable>(_ path: KeyPath<R, V> & Sendable, _ value: V) {
        self.path = path
        self.value = { column throws(StoreError) in try column.value(value) }
    }
}

extension Record {
    /// None but that of the key.
    public static var indexes: [Index<Self>] { [] }

    /// None.
    public static var references: [Reference<Self>] { [] }

    /// None.
    public static var defaults: [Default<Self>] { [] }

    /// False: the table has row ids.
    public static var isWithoutRowID: Bool { false }
}
