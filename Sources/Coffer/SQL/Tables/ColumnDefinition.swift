#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A column of a table to be created.
///
/// ```swift
/// try connection.createTable("note", [
///     ColumnDefinition("id", .integer, isPrimaryKey: true),
///     ColumnDefinition("title", .text, isNotNull: true),
///     ColumnDefinition("author", .integer, references: .init("author", onDelete: .cascade)),
/// ], ifNotExists: true)
/// ```
public struct ColumnDefinition: Sendable, Hashable {
    /// The type affinity of a column. SQLite stores a value that does not fit as it is. See
    /// <https://www.sqlite.org/datatype3.html#type_affinity>.
    public enum Kind: String, Sendable, CaseIterable {
        /// Whole numbers of 64 bits; also `Bool`.
        case integer = "INTEGER"
        /// Floating-point numbers.
        case real = "REAL"
        /// A `Date`, as seconds since 2001: see `DateEncoding.secondsSince2001`.
        case date = "REAL_SINCE_2001"
        /// Texts.
        case text = "TEXT"
        /// Bytes. Every value stays as it is.
        case blob = "BLOB"
        /// Numbers of both kinds. A text that looks like a number becomes one.
        case numeric = "NUMERIC"
    }

    /// The column of another table that a column refers to.
    public struct Reference: Sendable, Hashable {
        /// The effect on a row when the row that it refers to is deleted or changes its key.
        public enum Action: String, Sendable, CaseIterable {
            /// The change is refused, at the end of the statement or transaction.
            case noAction = "NO ACTION"
            /// The change is refused at once.
            case restrict = "RESTRICT"
            /// The column becomes NULL.
            case setNull = "SET NULL"
            /// The column gets its default.
            case setDefault = "SET DEFAULT"
            /// The row is deleted, or changed, too.
            case cascade = "CASCADE"
        }

        /// The referenced table.
        public var table: String
        /// Its column; `nil` for its primary key.
        public var column: String?
        /// The effect when the referenced row is deleted.
        public var onDelete: Action
        /// The effect when the referenced key changes.
        public var onUpdate: Action

        /// Refers to a column of another table, or to its primary key.
        public init(
            _ table: String, column: String? = nil, onDelete: Action = .noAction,
            onUpdate: Action = .noAction
        ) {
            self.table = table
            self.column = column
            self.onDelete = onDelete
            self.onUpdate = onUpdate
        }
    }

    /// Its name.
    public var name: String
    /// Its type affinity.
    public var kind: Kind
    /// Whether it is the primary key. Several such columns form the key together, in their order.
    ///
    /// A key that is one `.integer` is the row id: an insert without it gets a new one. Any other
    /// key is also NOT NULL, which SQLite does not require.
    public var isPrimaryKey: Bool
    /// Whether NULL is refused.
    public var isNotNull: Bool
    /// Whether each value may occur in one row only. NULL may occur in many.
    public var isUnique: Bool
    /// The value of the column in a row that is inserted without one; NULL by default.
    public var defaultValue: Value
    /// The referenced column; `nil` if there is none.
    public var references: Reference?

    /// Describes a column.
    public init(
        _ name: String, _ kind: Kind, isPrimaryKey: Bool = false, isNotNull: Bool = false,
        isUnique: Bool = false, default defaultValue: Value = .null,
        references: Reference? = nil
    ) {
        self.name = name
        self.kind = kind
        self.isPrimaryKey = isPrimaryKey
        self.isNotNull = isNotNull
        self.isUnique = isUnique
        self.defaultValue = defaultValue
        self.references = references
    }

    // MARK: SQL

    /// - Parameters:
    ///   - defaultText: The default as SQL; `nil` for NULL.
    ///   - isWholeKey: Whether this column is the entire primary key.
    func sql(defaultText: String?, isWholeKey: Bool) throws(StoreError) -> String {
        var text = "\(try name.quotedIdentifier()) \(kind.rawValue)"
        let isRowID = isWholeKey && kind == .integer
        if isWholeKey { text += " PRIMARY KEY" }
        if isNotNull || isPrimaryKey && !isRowID { text += " NOT NULL" }
        if isUnique { text += " UNIQUE" }
        if let defaultText { text += " DEFAULT \(defaultText)" }
        if let references {
            text += " REFERENCES \(try references.table.quotedIdentifier())"
            if let column = references.column { text += "(\(try column.quotedIdentifier()))" }
            text += " ON DELETE \(references.onDelete.rawValue)"
            text += " ON UPDATE \(references.onUpdate.rawValue)"
        }
        return text
    }
}

extension Connection {
    /// A default as SQL text, since a table's definition takes no bound values; `nil` for NULL.
    ///
    /// The engine must read a number back unchanged, because it does not round every decimal
    /// correctly.
    func literal(_ value: Value) throws(StoreError) -> String? {
        let text: String
        switch value {
        case .null: return nil
        case .blob(let data): return Self.literal(of: data)
        case .text(let value):
            guard !value.utf8.contains(0) else {
                throw StoreError(.mismatch, "a default text contains NUL, which would end it")
            }
            return value.inSingleQuotes
        case .integer(let integer): text = String(integer)
        case .real(let real):
            guard !real.isNaN else {
                throw StoreError(.mismatch, "NaN cannot be stored: SQLite makes it NULL")
            }
            text = real.isFinite ? real.description : (real < 0 ? "-9e999" : "9e999")
        }
        guard try firstRow(SQL(text: "SELECT \(text)"), isReadOnly: true)?[0] == value else {
            throw StoreError(
                .mismatch, "the engine does not read the default number back as it was",
                hint: "Choose a number of at most 15 digits.")
        }
        return text
    }

    private static func literal(of data: Data) -> String {
        var literal = "x'"
        for byte in data {
            literal += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return literal + "'"
    }
}
