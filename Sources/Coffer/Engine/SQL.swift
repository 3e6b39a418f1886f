/// SQL text with its arguments apart from it.
///
/// An interpolation binds, it never splices: `"… WHERE name = \(name)"` becomes `name = ?` with the
/// name as an argument, so a value cannot become SQL.
///
/// ```swift
/// let query: SQL = "SELECT title FROM \(identifier: table) WHERE created > \(date)"
/// ```
public struct SQL: Sendable, ExpressibleByStringInterpolation {
    /// The text, with `?` in the place of each argument.
    public private(set) var text: String
    /// The arguments, in order.
    public private(set) var arguments: [Value]
    /// A value that no SQL value can hold; thrown when the SQL is used.
    var failure: StoreError?

    /// Makes SQL of a text with `?` placeholders and their arguments.
    ///
    /// The label says what an interpolation in `text` would do: splice, not bind.
    public init(text: String, arguments: [Value] = []) {
        self.text = text
        self.arguments = arguments
    }

    /// Makes SQL of a literal text.
    public init(stringLiteral text: String) {
        self.init(text: text)
    }

    /// Makes SQL of an interpolated literal.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.sql
    }

    /// Appends text and arguments of other SQL.
    public mutating func append(_ other: SQL) {
        text += other.text
        arguments += other.arguments
        failure = failure ?? other.failure
    }

    mutating func append(argument: some ValueConvertible) {
        text += "?"
        do throws(StoreError) {
            arguments.append(try argument.asValue())
        } catch {
            arguments.append(.null)
            failure = failure ?? error
        }
    }

    /// Text and arguments, or the reason why an argument cannot be bound.
    func checked() throws(StoreError) -> SQL {
        if let failure { throw failure.with(sql: text) }
        return self
    }

    /// Collects the pieces of an interpolated literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        var sql: SQL

        /// Makes an empty collection.
        public init(literalCapacity: Int, interpolationCount: Int) {
            sql = SQL(text: "")
            sql.text.reserveCapacity(literalCapacity + interpolationCount)
        }

        /// Appends SQL text as it stands in the source.
        public mutating func appendLiteral(_ literal: String) {
            sql.text += literal
        }

        /// Binds a value.
        public mutating func appendInterpolation(_ value: some ValueConvertible) {
            sql.append(argument: value)
        }

        /// Binds a list of values, in parentheses: `id IN \(ids)`.
        public mutating func appendInterpolation<V: ValueConvertible>(list values: [V]) {
            sql.text += "("
            for (index, value) in values.enumerated() {
                if index > 0 { sql.text += ", " }
                sql.append(argument: value)
            }
            sql.text += ")"
        }

        /// Inserts the name of a table or column, quoted.
        public mutating func appendInterpolation(identifier name: String) {
            do throws(StoreError) {
                sql.text += try name.quotedIdentifier()
            } catch {
                sql.failure = sql.failure ?? error
            }
        }

        /// Inserts other SQL with its arguments.
        public mutating func appendInterpolation(_ other: SQL) {
            sql.append(other)
        }
    }
}

extension String {
    /// The name in double quotes, with every `"` doubled.
    ///
    /// - Throws: `StoreError` `.sql` for an empty name or one with a NUL, which would end the text.
    func quotedIdentifier() throws(StoreError) -> String {
        guard !isEmpty, !utf8.contains(0) else {
            throw StoreError(.sql, "a name in SQL is neither empty nor contains NUL")
        }
        return inDoubleQuotes
    }

    /// In double quotes, with every `"` doubled: scalar by scalar, since a combining mark behind a
    /// quote makes one `Character` of both.
    var inDoubleQuotes: String {
        var quoted = "\""
        for scalar in unicodeScalars {
            if scalar == "\"" { quoted += "\"" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}
