extension Connection {
    /// Makes the operator `REGEXP` work: `title REGEXP '^[A-Z]'`, with Swift's regular expressions.
    ///
    /// SQLite has the operator, but no function behind it. The pattern may match anywhere in the
    /// text. NULL on either side gives NULL.
    ///
    /// - Warning: Swift's `Regex` has no bound on its work: `(a+)+$` takes exponential time on some
    ///   texts. Register it only where patterns come from the program, never from its users.
    ///   Otherwise run such statements where `interrupt` may end them, which it does only between
    ///   two rows.
    /// - Throws: As `register(function:)`. An invalid pattern fails the statement.
    public func registerRegexp() throws {
        // The pattern is nearly always the same for all rows of a statement.
        var last: (pattern: String, regex: Regex<AnyRegexOutput>)?
        try register(function: "regexp", argumentCount: 2, options: .deterministic) { arguments in
            guard let pattern = try arguments.get(0, as: String?.self),
                let text = try arguments.get(1, as: String?.self)
            else { return .null }
            if last?.pattern != pattern { last = (pattern, try Self.regex(pattern)) }
            guard let regex = last?.regex else { return .null }
            return .integer(try regex.firstMatch(in: text) == nil ? 0 : 1)
        }
    }

    private static func regex(_ pattern: String) throws -> Regex<AnyRegexOutput> {
        do {
            return try Regex(pattern)
        } catch {
            throw FunctionError("the pattern is not a regular expression")
        }
    }
}
