#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Something without which some SQL would fail, or find something else than it says.
protocol SQLRequirement: Sendable {
    /// Provides it, if the connection can.
    ///
    /// - Throws: `.mismatch` if the file does not have it.
    func require(on connection: Connection) throws(StoreError)
}

/// SQL text, and its arguments separate from the text.
///
/// Interpolating a value binds it, never splices it: `"… WHERE name = \(name)"` becomes `name = ?`
/// with the name as an argument, so a value cannot become SQL.
///
/// ```swift
/// let query: SQL = "SELECT title FROM \(identifier: table) WHERE author = \(author)"
/// ```
public struct SQL: Sendable, ExpressibleByStringInterpolation {
    /// The text, with `?` in place of each argument.
    public internal(set) var text: String
    /// The arguments for the `?`, in order.
    public private(set) var arguments: [Value]
    /// The arguments for `:a`, `@a` and `$a`, by name without the sign; `nil` if every
    /// placeholder takes the next one of `arguments`.
    public private(set) var namedArguments: [String: Value]?
    /// Whether a named argument without a placeholder is an error.
    private(set) var isStrict = false
    /// The queries of `ValueList` in the text, in their order.
    var lists: [ListPlace] = []
    /// Whether an argument is a `Date` of which nobody said from when it counts.
    var bindsPlainDate = false
    /// Arguments for columns that count from 2001 or from 1970, as the file says.
    var dates: [DateArgument] = []
    /// Columns that are compared, and of which the file says from when they count.
    var datePairs: [DatePair] = []
    /// The tables of other record types that the text names.
    var otherTables: [any NamedTable] = []
    /// The functions and indexes without which the text must not run on a connection.
    var requirements: [any SQLRequirement] = []
    /// Whether an expression may fail at some row, when other rows have changed.
    var mayFail = false
    /// The first error met while the SQL was made, such as a value that cannot be stored or a
    /// name with two arguments; thrown when the SQL is used.
    var failure: StoreError?

    /// Makes SQL from a text with `?` placeholders and their arguments.
    ///
    /// An interpolation in `text` is spliced, not bound, as the label `text` warns.
    public init(text: String, arguments: [Value] = []) {
        self.text = text
        self.arguments = arguments
    }

    /// Makes SQL from a text with named placeholders: `:a`, `@a` or `$a`.
    ///
    /// ```swift
    /// let sql = SQL(text: "… WHERE author = :author", named: ["author": name])
    /// ```
    ///
    /// - Parameters:
    ///   - text: The text. Every placeholder needs an argument; use without one is `.misuse`.
    ///   - arguments: By name, with or without the sign.
    ///   - isStrict: Whether an argument that no placeholder takes is `.misuse`, too.
    public init(
        text: String, named arguments: [String: (any ValueConvertible)?], isStrict: Bool = false
    ) {
        self.init(text: text)
        self.isStrict = isStrict
        var named: [String: Value] = [:]
        for (key, argument) in arguments {
            let name = key.withoutParameterSign
            do throws(StoreError) {
                if named[name] != nil { throw .twoArguments(for: name) }
                named[name] = try argument?.asValue() ?? .null
                if argument is Date { bindsPlainDate = true }
            } catch {
                failure = failure ?? error
            }
        }
        namedArguments = named
    }

    /// Makes SQL from a literal text.
    public init(stringLiteral text: String) {
        self.init(text: text)
    }

    /// Makes SQL from an interpolated literal.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.sql
    }

    /// Appends text and arguments of other SQL. If both have different values for one name, each
    /// use of the result throws `.misuse`.
    public mutating func append(_ other: SQL) {
        lists += other.lists.map { $0.moved(by: text.utf8.count) }
        text += other.text
        dates += other.dates.map { $0.moved(by: arguments.count) }
        datePairs += other.datePairs
        otherTables += other.otherTables
        requirements += other.requirements
        mayFail = mayFail || other.mayFail
        arguments += other.arguments
        bindsPlainDate = bindsPlainDate || other.bindsPlainDate
        failure = failure ?? other.failure
        isStrict = isStrict || other.isStrict
        guard let others = other.namedArguments else { return }
        var named = namedArguments ?? [:]
        for (name, value) in others {
            if let mine = named.updateValue(value, forKey: name), mine != value {
                failure = failure ?? .twoArguments(for: name)
            }
        }
        namedArguments = named
    }

    mutating func append<V: ValueConvertible>(argument: V) {
        text += "?"
        if V.self == Date.self || V.self == Date?.self { bindsPlainDate = true }
        do throws(StoreError) {
            arguments.append(try argument.asValue())
        } catch {
            arguments.append(.null)
            failure = failure ?? error
        }
    }

    mutating func append<V: ValueConvertible>(list values: [V]) {
        text += "("
        for (index, value) in values.enumerated() {
            if index > 0 { text += ", " }
            append(argument: value)
        }
        text += ")"
    }

    /// The SQL itself. Throws `failure`, with the SQL text, if there is one.
    func checked() throws(StoreError) -> SQL {
        if let failure { throw failure.with(sql: text) }
        return self
    }

    /// The SQL with its dates as the columns of this connection's file hold them.
    ///
    /// - Throws: `failure`, with the SQL text, if there is one; the error of a requirement that the
    ///   file does not meet. Errors of reading the schema.
    @inline(__always)
    func checked(on connection: Connection) throws(StoreError) -> SQL {
        if failure == nil, dates.isEmpty, datePairs.isEmpty, requirements.isEmpty {
            return self
        }
        return try resolved(on: connection)
    }

    @inline(never)
    private func resolved(on connection: Connection) throws(StoreError) -> SQL {
        var sql = try checked()
        for pair in datePairs { try pair.requireOneCount(on: connection) }
        for requirement in requirements { try requirement.require(on: connection) }
        for date in dates { sql.arguments[date.index] = try date.value(of: sql, connection) }
        // Now they are as the file has them: nothing must convert them again.
        (sql.dates, sql.datePairs) = ([], [])
        return sql
    }

    /// Collects the pieces of an interpolated literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        var sql: SQL

        /// Makes an empty collection.
        public init(literalCapacity: Int, interpolationCount: Int) {
            sql = SQL(text: "")
            sql.text.reserveCapacity(literalCapacity + interpolationCount)
        }

        /// Appends SQL text unchanged.
        public mutating func appendLiteral(_ literal: String) {
            sql.text += literal
        }

        /// Binds a value. If it cannot be stored, each use of the SQL throws the error of
        /// `asValue()`, such as `.mismatch`.
        public mutating func appendInterpolation(_ value: some ValueConvertible) {
            sql.append(argument: value)
        }

        /// Binds a value, or NULL for `nil`.
        public mutating func appendInterpolation<V: ValueConvertible>(_ value: V?) {
            sql.append(argument: value)
        }

        /// Binds a date in the given encoding: `\(date, as: .iso8601)`. NULL for `nil`.
        public mutating func appendInterpolation(_ date: Date?, as encoding: DateEncoding) {
            do throws(StoreError) {
                sql.append(argument: try date.map(encoding.encode) ?? .null)
            } catch {
                sql.append(argument: Value.null)
                sql.failure = sql.failure ?? error
            }
        }

        /// Binds a list of values, in parentheses: `id IN \(list: ids)`. An empty list becomes
        /// `()`.
        public mutating func appendInterpolation<V: ValueConvertible>(list values: [V]) {
            sql.append(list: values)
        }

        /// Inserts the name of a table or column, quoted. If it is empty or has a NUL, each use of
        /// the SQL throws `.sql`.
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

/// The table of a record type, as SQL names it.
protocol NamedTable: AnyObject, Sendable {}

extension StoreError {
    fileprivate static func twoArguments(for name: String) -> StoreError {
        StoreError(.misuse, "two arguments are given for the name \(name)")
    }
}

extension String {
    /// The name of a placeholder without its leading sign.
    fileprivate var withoutParameterSign: String {
        hasPrefix(":") || hasPrefix("@") || hasPrefix("$") ? String(dropFirst()) : self
    }

    /// The name in double quotes, with every `"` doubled.
    ///
    /// - Throws: `StoreError` `.sql` for an empty name or one with a NUL, which would end the text.
    func quotedIdentifier() throws(StoreError) -> String {
        guard !isEmpty, !utf8.contains(0) else {
            throw StoreError(.sql, "a name in SQL must not be empty or contain NUL")
        }
        return inDoubleQuotes
    }

    /// As a name: in double quotes, with every `"` doubled.
    var inDoubleQuotes: String { quoted(by: "\"") }

    /// As a string literal: in single quotes, with every `'` doubled.
    var inSingleQuotes: String { quoted(by: "'") }

    /// Goes scalar by scalar, because a quote and a combining mark after it are one `Character`.
    private func quoted(by quote: Unicode.Scalar) -> String {
        var quoted = String.UnicodeScalarView([quote])
        for scalar in unicodeScalars {
            if scalar == quote { quoted.append(quote) }
            quoted.append(scalar)
        }
        quoted.append(quote)
        return String(quoted)
    }
}
