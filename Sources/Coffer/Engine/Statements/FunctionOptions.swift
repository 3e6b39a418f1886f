import CSQLCipher

/// Properties of a function that the engine may rely on.
/// See <https://www.sqlite.org/c3ref/c_deterministic.html>.
public struct FunctionOptions: OptionSet, Sendable {
    /// The bits, which are Coffer's and not SQLite's.
    public let rawValue: Int

    /// Makes a set of the bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The result depends only on the arguments: the engine may call the function once for many
    /// rows, and indexes may use it.
    public static let deterministic = FunctionOptions(rawValue: 1)
    /// Views, triggers, indexes and CHECK constraints may call the function, and so may the author
    /// of the file. Without this option SQLCipher 4 refuses such calls. SQLCipher 3 has no such
    /// rule: there a function with side effects must check its arguments.
    public static let schema = FunctionOptions(rawValue: 2)

    /// The text encoding and flags of `sqlite3_create_function_v2`; the older engine ignores flags
    /// that it does not know.
    var flags: Int32 {
        var flags = SQLITE_UTF8
        if contains(.deterministic) { flags |= SQLITE_DETERMINISTIC }
        flags |= contains(.schema) ? Self.innocuous : Self.directOnly
        return flags
    }

    private static let directOnly: Int32 = 0x8_0000
    private static let innocuous: Int32 = 0x20_0000
}
