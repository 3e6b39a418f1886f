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
/// Coffer learns names, order and types once, by calling the type's own `init(from:)` with
/// placeholder values.
///
/// | Property | Column |
/// |---|---|
/// | integers, `Bool` | INTEGER |
/// | `Double`, `Float` | REAL |
/// | `Date` (seconds since 2001) | REAL_SINCE_2001; other columns count from 1970 |
/// | `String`, `URL`, `Decimal` | TEXT |
/// | `Data`, `[UInt8]`, `UUID` (16 bytes) | BLOB |
/// | an enum or a wrapper that encodes a single value | that value's column |
/// | any other `Codable` | TEXT, its JSON with sorted keys |
/// | a nested container, or that of the superclass (`super`) | TEXT, its JSON |
/// | an optional of these | the same, without NOT NULL |
///
/// Values must fit their columns exactly in both directions. Coffer throws `.mismatch` for an
/// integer out of range, for NaN, and for NULL or another storage class where the property cannot
/// hold it.
///
/// - Note: A `CodingKey`'s `stringValue` must never change, because Coffer looks it up once.
public protocol Record: Codable, Sendable {
    /// The name of the table. By default the type's name in snake case: `DownloadItem` is kept in
    /// `download_item`. Two types of the same name in different scopes share a table unless one of
    /// them declares another name.
    static var table: String { get }

    /// The names of the columns that identify a row. The default is `id` if there is such a column,
    /// else no key. A key of one INTEGER column is the row id itself, unless the table is WITHOUT
    /// ROWID.
    static var key: [String] { get }

    /// A value that shows the columns of a type that cannot be made from placeholders, because its
    /// initialiser checks its values. If one property is the reason, conform that property's type
    /// to ``Exemplified`` instead: it then serves every record.
    static var example: Self? { get }

    /// Columns of key paths that Coffer cannot resolve by itself: key paths of classes, of
    /// properties with observers, and of properties that `init(from:)` does not simply decode.
    ///
    /// ```swift
    /// static var columns: [PartialKeyPath<Note>: String] { [\.title: "title_text"] }
    /// ```
    static var columns: [PartialKeyPath<Self>: String] { get }

    /// The places inside of JSON of key paths that Coffer cannot resolve by itself: paths through
    /// optional structs, to elements of arrays and dictionaries, and of types that do not simply
    /// decode their properties.
    ///
    /// ```swift
    /// static var jsonPaths: [PartialKeyPath<Self>: JSONPath] {
    ///     [\.address?.city: JSONPath("address", "city")]
    /// }
    /// ```
    static var jsonPaths: [PartialKeyPath<Self>: JSONPath] { get }

    /// Columns that store values in another form than Coffer's usual one: a `Date` as milliseconds
    /// or text, a `UUID` as text.
    static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { get }

    /// The indexes of the table. By default only the key has an index.
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

    /// The values that existing rows get in a column that the type has gained.
    ///
    /// ```swift
    /// static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
    /// ```
    static var defaults: [Default<Self>] { get }

    /// The index of the words in texts of the table, by default none.
    ///
    /// ```swift
    /// static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.body) }
    /// ```
    static var fullTextIndex: FullTextIndex<Self>? { get }

    /// Conditions that the file keeps for every row, by default none.
    ///
    /// ```swift
    /// static var checks: [CheckConstraint<Self>] { [CheckConstraint(\.price >= 0)] }
    /// ```
    static var checks: [CheckConstraint<Self>] { get }

    /// Columns whose values the file computes, by default none. Needs SQLCipher 4.
    ///
    /// ```swift
    /// static var generated: [Generated<Self>] { [Generated(\.total, sql: "price * count")] }
    /// ```
    static var generated: [Generated<Self>] { get }

    /// The triggers of the table, by default none.
    ///
    /// ```swift
    /// static var triggers: [Trigger<Self>] {
    ///     [Trigger("book_gone", .after, .delete, sql: "INSERT INTO gone VALUES (old.title)")]
    /// }
    /// ```
    static var triggers: [Trigger<Self>] { get }

    /// The SELECT of a type whose records are the rows of a view; `nil`, the default, for a table.
    ///
    /// ```swift
    /// struct Shelf: Record {
    ///     static var view: SQL? {
    ///         "SELECT shelf AS id, count(*) AS books FROM book GROUP BY shelf"
    ///     }
    ///     var id: Int64
    ///     var books: Int
    /// }
    /// ```
    ///
    /// Declare `static var key` of columns that identify a row of the view: `find` takes any row
    /// with the key, and pages (`after`) skip further rows with it.
    ///
    /// The view is made by `create`, and only read. The names of its columns are those of the
    /// properties. It calls functions that SQLite 3.15 has by itself, and no others. `\( )` inserts
    /// a value that SQL text keeps exactly.
    static var view: SQL? { get }

    /// How the texts of columns compare; by default by their bytes. The column's index, its UNIQUE
    /// and all conditions on it compare so.
    ///
    /// ```swift
    /// static var collations: [PartialKeyPath<Account>: Collation] { [\.email: .nocase] }
    /// ```
    static var collations: [PartialKeyPath<Self>: Collation] { get }

    /// Whether the row id of a deleted row is never given out again; false by default. The key must
    /// be one integer. See <https://www.sqlite.org/autoinc.html>.
    static var isAutoincrement: Bool { get }

    /// Whether the table is WITHOUT ROWID; false by default. Such a table keeps its rows in the
    /// order of the key. It is smaller and faster for short rows with a key that is not an integer.
    /// See <https://www.sqlite.org/withoutrowid.html>.
    static var isWithoutRowID: Bool { get }

    /// How Coffer moves values into and out of rows: by the type's own coding, or faster.
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

    /// No example: the type is made from placeholders.
    public static var example: Self? { nil }

    /// No columns: key paths are resolved by the layout of the type.
    public static var columns: [PartialKeyPath<Self>: String] { [:] }

    /// No paths: key paths into stored structs are resolved by the layouts of their types.
    public static var jsonPaths: [PartialKeyPath<Self>: JSONPath] { [:] }

    /// No encodings: every column has the form listed in ``Record``.
    public static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { [:] }
}
