import CSQLCipher

/// A limit of one connection, to bound what SQL from elsewhere may cost.
/// See <https://www.sqlite.org/c3ref/c_limit_attached.html>.
public struct Limit: Sendable, Hashable, CustomStringConvertible {
    let number: Int32
    /// The limit's name.
    public let description: String

    private init(_ number: Int32, _ description: String) {
        self.number = number
        self.description = description
    }

    /// Bytes of a text, a blob or a row.
    public static let length = Self(SQLITE_LIMIT_LENGTH, "length")
    /// Bytes of an SQL text.
    public static let sqlLength = Self(SQLITE_LIMIT_SQL_LENGTH, "sqlLength")
    /// Columns of a table, a result, an index or a clause.
    public static let column = Self(SQLITE_LIMIT_COLUMN, "column")
    /// Depth of an expression's tree.
    public static let expressionDepth = Self(SQLITE_LIMIT_EXPR_DEPTH, "expressionDepth")
    /// Terms of a compound SELECT.
    public static let compoundSelect = Self(SQLITE_LIMIT_COMPOUND_SELECT, "compoundSelect")
    /// Instructions of a compiled statement.
    public static let instruction = Self(SQLITE_LIMIT_VDBE_OP, "instruction")
    /// Arguments of a function.
    public static let functionArgument = Self(SQLITE_LIMIT_FUNCTION_ARG, "functionArgument")
    /// Bytes of a LIKE or GLOB pattern; the work grows with its length.
    public static let patternLength = Self(SQLITE_LIMIT_LIKE_PATTERN_LENGTH, "patternLength")
    /// Number of the highest `?NNN` parameter.
    public static let parameterNumber = Self(SQLITE_LIMIT_VARIABLE_NUMBER, "parameterNumber")
    /// Depth of triggers that fire triggers.
    public static let triggerDepth = Self(SQLITE_LIMIT_TRIGGER_DEPTH, "triggerDepth")
}

extension Connection {
    /// The current value of the limit.
    ///
    /// - Throws: `StoreError` `.misuse` before the key is set, `.closed`.
    /// - Note: The corresponding C function is `sqlite3_limit`.
    public func limit(_ limit: Limit) throws -> Int {
        Int(sqlite3_limit(try current().db, limit.number, -1))
    }

    /// Changes a limit for as long as the connection lives, even before the key is set.
    ///
    /// - Parameters:
    ///   - limit: The limit to change.
    ///   - value: From 0 to the ceiling that the engine was built with.
    /// - Throws: `StoreError` `.misuse` for a value below 0 or above the engine's ceiling; the
    ///   limit then keeps its value. Before the key is set, `setKey(_:)` throws the error for a
    ///   value above the ceiling.
    /// - Note: The corresponding C function is `sqlite3_limit`.
    public func setLimit(_ limit: Limit, to value: Int) throws {
        guard let wanted = Int32(exactly: value), wanted >= 0 else {
            throw StoreError(.misuse, "the limit \(limit) cannot be \(value)")
        }
        try set("limit \(limit)") { handle throws(StoreError) in
            let before = sqlite3_limit(handle.db, limit.number, wanted)
            // "Attempts to increase a limit above its hard upper bound are silently truncated".
            let after = sqlite3_limit(handle.db, limit.number, -1)
            guard after == wanted else {
                sqlite3_limit(handle.db, limit.number, before)
                throw StoreError(
                    .misuse, "the limit \(limit) cannot be \(value): the engine allows \(after)")
            }
        }
    }
}
