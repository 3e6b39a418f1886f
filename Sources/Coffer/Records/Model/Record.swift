/// A `Codable` type whose values are the rows of a table.
///
/// ```swift
/// struct Note: Record {
///     var id: UUID
///     var title: String
///     var created: Date
/// }
/// ```
///
/// Nothing else is needed: the table is `note`, its columns are the coding keys, its key is `id`.
/// The type's own `init(from:)` is asked once, with placeholder values, for names, order and types.
///
/// | Property | Column |
/// |---|---|
/// | integers, `Bool` | INTEGER |
/// | `Double`, `Float`, `Date` (seconds since 1970) | REAL |
/// | `String`, `URL`, `Decimal` | TEXT |
/// | `Data`, `[UInt8]`, `UUID` (16 bytes) | BLOB |
/// | an enum or a wrapper that encodes a single value | that value's column |
/// | any other `Codable` | TEXT, its JSON with sorted keys |
/// | what a type encodes in a nested container, or for its superclass (`super`) | TEXT, its JSON |
/// | an optional of these | the same, without NOT NULL |
///
/// What does not fit a column exactly is refused with `.mismatch`, in both directions: an integer
/// out of range, NaN, NULL or another storage class where the property cannot hold it.
///
/// - Note: A `CodingKey`'s `stringValue` must always be the same: it is looked up once.
public protocol Record: Codable, Sendable {
    /// The name of the table. By default the type's name in snake case: `DownloadItem` is kept in
    /// `download_item`. Two types of the same name in different places share a table unless one
    /// of them says otherwise.
    static var table: String { get }

    /// The names of the columns that identify a row: by default `id` if there is such a column,
    /// else none. A single integer is the row id itself.
    static var key: [String] { get }

    /// A value to learn the columns from, for a type that cannot be made from placeholders: one
    /// with a raw-value enum that is not `CaseIterable`, or an initialiser that checks.
    static var example: Self? { get }

    /// Columns of the key paths that Coffer cannot resolve by itself: those of classes, of
    /// properties with observers, and of properties that `init(from:)` does not just decode.
    ///
    /// ```swift
    /// static var columns: [PartialKeyPath<Note>: String] { [\.title: "title_text"] }
    /// ```
    static var columns: [PartialKeyPath<Self>: String] { get }

    /// Columns that keep their values in another form than Coffer's usual one: a `Date` as
    /// milliseconds or text, a `UUID` as text.
    static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { get }

    /// The indexes of the table, by default none but that of the key.
    ///
    /// ```swift
    /// static var indexes: [Index<Self>] { [Index(\.created), Index(\.url, isUnique: true)] }
    /// ```
    static var indexes: [Index<Self>] { get }

    /// The foreign keys of the table, by default none.
    ///
    /// ```swift
    /// static var references: [Reference<Self>] {
    ///     [Reference(\.author, to: Author.self, onDelete: .cascade)]
    /// }
    /// ```
    static var references: [Reference<Self>] { get }

    /// What rows that are there get in a column that the type has gained.
    ///
    /// ```swift
    /// static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
    /// ```
    static var defaults: [Default<Self>] { get }

    /// Whether the rows are kept in the order of the key, without row ids: smaller and faster for
    /// short rows with a key that is no integer. By default not.
    /// See <https://www.sqlite.org/withoutrowid.html>.
    static var isWithoutRowID: Bool { get }

    /// How values get into rows and out of them: by the type's own coding, or faster.
    ///
    /// ```swift
    /// static var access: RecordAccess { .storedProperties }
    /// ```
    static var access: RecordAccess { get }
}

extension Record {
    /// The type's name in snake case.
    public static var table: String { TableName.of(Self.self) }

    /// `id` if there is such a column.
    public static var key: [String] { RecordPlan.defaultKey }

    /// None: the type is made from placeholders.
    public static var example: Self? { nil }

    /// None: key paths are resolved by the layout of the type.
    public static var columns: [PartialKeyPath<Self>: String] { [:] }

    /// None: every column has the form of the table above.
    public static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { [:] }
}
