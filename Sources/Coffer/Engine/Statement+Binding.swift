import CSQLCipher

extension Statement {
    /// Binds one argument; the others keep theirs, and what was never bound is NULL.
    ///
    /// - Parameters:
    ///   - value: The argument.
    ///   - index: The placeholder's position, counted from 0 as those of columns and of
    ///     `bind(_:)`'s array: `?1` is at 0.
    /// - Throws: `StoreError` `.misuse` if there is no such placeholder, `.mismatch` for NaN,
    ///   `.tooBig` for a value above the engine's limit, after which all arguments are NULL. The
    ///   statement stays usable.
    /// - Note: The corresponding C functions are `sqlite3_bind_*`.
    public func bind(_ value: some ValueConvertible, at index: Int) throws {
        let raw = try pointer()
        try endRun()
        guard index >= 0, index < parameterCount else {
            throw StoreError(
                .misuse, "no placeholder \(index): there are \(parameterCount), counted from 0",
                sql: sql)
        }
        try bindArgument(try value.asValue(), to: raw, at: Int32(index + 1))
    }

    /// Binds all arguments by name, of placeholders such as `:a`, `@a` and `$a`.
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
        try bind(try SQL(text: sql, named: arguments, isStrict: isStrict).checked())
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

    /// Binds the arguments of checked SQL, by name where it has names.
    func bind(_ sql: SQL) throws(StoreError) {
        guard let named = sql.namedArguments else { return try bindArguments(sql.arguments) }
        let raw = try pointer()
        try endRun()
        let values = try inOrder(sql.arguments, named, isStrict: sql.isStrict)
        for (index, value) in values.enumerated() {
            try bindArgument(value, to: raw, at: Int32(index + 1))
        }
    }

    /// One value for each placeholder: by its name, or the next one for a plain `?`.
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
                    throw StoreError(.misuse, "no argument is given for \(name)", sql: sql)
                }
                unused.remove(key)
                values.append(value)
            } else if let next = rest.popFirst() {
                values.append(next)
            } else {
                throw StoreError(.misuse, "no argument is given for a ? in the text", sql: sql)
            }
        }
        guard rest.isEmpty else {
            throw StoreError(
                .misuse, "\(rest.count) arguments are given more than there are ?", sql: sql)
        }
        if let name = unused.min() {
            throw StoreError(.misuse, "no placeholder is named \(name)", sql: sql)
        }
        return values
    }
}
