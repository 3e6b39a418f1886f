import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Statement {
    /// Binds all arguments, in order.
    ///
    /// A run of the statement ends first, as by `reset()`.
    ///
    /// - Throws: `StoreError` `.misuse` if their number is not `parameterCount`; the arguments then
    ///   stay. `.mismatch` for NaN, `.tooBig` for a value above the engine's limit: then all
    ///   arguments are NULL. Errors of `reset()`. The statement stays usable.
    /// - Note: The corresponding C functions are `sqlite3_bind_*`.
    public func bind(_ arguments: [Value]) throws {
        try bindArguments(arguments)
    }

    func bindArguments(_ arguments: [Value]) throws(StoreError) {
        let raw = try pointer()
        try endRun()
        guard arguments.count == parameterCount else {
            throw StoreError(
                .misuse, "\(parameterCount) arguments expected, \(arguments.count) given", sql: sql)
        }
        for (index, argument) in arguments.enumerated() {
            try bindArgument(argument, to: raw, at: Int32(index + 1))
        }
    }

    /// Binds one argument; the others keep theirs. An argument that was never bound is NULL.
    ///
    /// - Parameters:
    ///   - value: The argument.
    ///   - index: The placeholder's position, counted from 0 like columns and the array of
    ///     `bind(_:)`: `?1` is at 0.
    /// - Throws: `StoreError` `.misuse` if there is no such placeholder, `.mismatch` for NaN,
    ///   `.tooBig` for a value above SQLite's limit. After `.mismatch` or `.tooBig` bind all
    ///   arguments again: they may be NULL. The statement stays usable.
    /// - Note: The corresponding C functions are `sqlite3_bind_*`.
    public func bind(_ value: some ValueConvertible, at index: Int) throws {
        let raw = try placeholder(index)
        if value is Date, let connection { try requirePlainDates(on: connection) }
        try bindArgument(try value.asValue(), to: raw, at: Int32(index + 1))
    }

    /// Binds all arguments by name, to placeholders such as `:a`, `@a` and `$a`.
    ///
    /// - Parameters:
    ///   - arguments: By name, with or without the sign.
    ///   - isStrict: Whether an argument that no placeholder takes is an error.
    /// - Throws: `StoreError` `.misuse` naming the placeholder that has no argument, or the
    ///   argument that has no placeholder; otherwise as `bind(_:)`. The statement stays usable.
    /// - Note: The corresponding C function is `sqlite3_bind_parameter_name`.
    public func bind(
        named arguments: [String: (any ValueConvertible)?], isStrict: Bool = false
    ) throws {
        let named = SQL(text: sql, named: arguments, isStrict: isStrict)
        try bind(connection.map { try named.checked(on: $0) } ?? named.checked())
    }

    /// Makes all arguments NULL. Rewinds the statement.
    ///
    /// - Throws: As `reset()`.
    /// - Note: The corresponding C function is `sqlite3_clear_bindings`.
    public func clearBindings() throws {
        _ = try pointer()
        try endRun()
        forgetArguments()
    }

    /// The names of the placeholders, in order, with their signs; `nil` for a plain `?`.
    ///
    /// - Note: The corresponding C function is `sqlite3_bind_parameter_name`.
    public var parameterNames: [String?] {
        guard let raw else { return [] }
        return (0..<Int32(parameterCount)).map { index in
            sqlite3_bind_parameter_name(raw, index + 1).map { String(cString: $0) }
        }
    }

    /// Binds the arguments of checked SQL, by name where it has names. A run of the statement ends
    /// first.
    ///
    /// - Throws: `.misuse` if an argument is missing or superfluous; otherwise as `bind(_:)` of all
    ///   arguments.
    func bind(_ sql: SQL) throws(StoreError) {
        if sql.bindsPlainDate, let connection { try requirePlainDates(on: connection) }
        guard let named = sql.namedArguments else { return try bindArguments(sql.arguments) }
        let raw = try pointer()
        try endRun()
        let values = try inOrder(sql.arguments, named, isStrict: sql.isStrict)
        for (index, value) in values.enumerated() {
            try bindArgument(value, to: raw, at: Int32(index + 1))
        }
    }

    /// One value for each placeholder: by its name, or the next one for a plain `?`.
    ///
    /// - Throws: `.misuse` if an argument is missing, if there are more than plain `?`, and with
    ///   `isStrict` if no placeholder has the name of an argument.
    private func inOrder(
        _ arguments: [Value], _ named: [String: Value], isStrict: Bool
    ) throws(StoreError) -> [Value] {
        var rest = arguments[...]
        var unused = isStrict ? Set(named.keys) : []
        var values: [Value] = []
        for name in parameterNames {
            if let name {
                let key = String(name.dropFirst())
                guard let value = named[key] else {
                    throw StoreError(.misuse, "the argument for \(name) is missing", sql: sql)
                }
                unused.remove(key)
                values.append(value)
            } else if let next = rest.popFirst() {
                values.append(next)
            } else {
                throw StoreError(.misuse, "an argument for a ? is missing", sql: sql)
            }
        }
        guard rest.isEmpty else {
            throw StoreError(
                .misuse, "\(rest.count) more arguments are given than the text has ?", sql: sql)
        }
        if let name = unused.min() {
            throw StoreError(.misuse, "no placeholder is named \(name)", sql: sql)
        }
        return values
    }

    // MARK: The engine's calls

    /// Binds one argument of a statement that is not running; positions count from 1.
    ///
    /// - Throws: `.mismatch` for NaN, `.tooBig` for a value above the engine's limit. All arguments
    ///   are then NULL.
    @inline(__always)
    func bindArgument(
        _ argument: Value, to raw: OpaquePointer, at index: Int32
    ) throws(StoreError) {
        let code = Self.bind(argument, to: raw, at: index)
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }

    @inline(never)
    func bindingFailure(_ code: Int32) -> StoreError {
        sqlite3_clear_bindings(raw)
        return code == Self.notANumber
            ? StoreError(.mismatch, "NaN cannot be stored: SQLite makes it NULL", sql: sql)
            : handle.error(code, sql: sql)
    }

    /// Not an SQLite result code: stands for NaN, which `sqlite3_bind_double` would make NULL.
    private static let notANumber: Int32 = -1

    static func bind(_ value: Value, to raw: OpaquePointer, at index: Int32) -> Int32 {
        switch value {
        case .null: return sqlite3_bind_null(raw, index)
        case .integer(let integer): return sqlite3_bind_int64(raw, index, integer)
        case .real(let real): return bind(real, to: raw, at: index)
        case .text(var text): return text.withUTF8 { bind(utf8: $0, to: raw, at: index) }
        case .blob(let data): return data.withUnsafeBytes { bind(bytes: $0, to: raw, at: index) }
        }
    }

    static func bind(_ real: Double, to raw: OpaquePointer, at index: Int32) -> Int32 {
        real.isNaN ? notANumber : sqlite3_bind_double(raw, index, real)
    }

    /// Binds a copy of a text, and returns the engine's code. The empty text needs an address,
    /// because SQLite binds a null pointer as NULL.
    @inline(__always)
    static func bind(
        utf8 bytes: UnsafeBufferPointer<UInt8>, to raw: OpaquePointer, at index: Int32
    ) -> Int32 {
        bytes.withMemoryRebound(to: CChar.self) {
            sqlite3_bind_text64(
                raw, index, $0.baseAddress ?? emptyText, UInt64($0.count), coffer_transient(),
                UInt8(SQLITE_UTF8))
        }
    }

    @inline(__always)
    static func bind(
        bytes: UnsafeRawBufferPointer, to raw: OpaquePointer, at index: Int32
    ) -> Int32 {
        bytes.isEmpty
            ? sqlite3_bind_zeroblob(raw, index, 0)
            : sqlite3_bind_blob64(
                raw, index, bytes.baseAddress, UInt64(bytes.count), coffer_transient())
    }
}
