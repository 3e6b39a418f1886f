// Swift encodes these types as their raw value if that is a number, a text or a Bool, and so a
// record stores it. A type whose raw value is anything else, such as a UUID, it encodes as a
// structure.
extension SQL.StringInterpolation {
    /// Binds the raw value of an enum or a typed identifier, which is what a record stores of it;
    /// NULL for `nil`.
    ///
    /// ```swift
    /// let drafts = try tx.rows("SELECT title FROM note WHERE kind = \(Kind.draft)")
    /// ```
    public mutating func appendInterpolation<V: RawRepresentable>(_ value: V?)
    where V.RawValue: ValueConvertible & LosslessStringConvertible {
        sql.append(argument: value?.rawValue)
    }

    /// Binds a list of raw values, in parentheses: `kind IN \(list: [Kind.draft, .sent])`.
    public mutating func appendInterpolation<V: RawRepresentable>(list values: [V])
    where V.RawValue: ValueConvertible & LosslessStringConvertible {
        appendInterpolation(list: values.map(\.rawValue))
    }

    // A type that is `ValueConvertible` as well is bound as its own `asValue()`. Without these two
    // forms the compiler could not choose.

    /// Binds an optional value that has a raw value too; NULL for `nil`. If it cannot be stored,
    /// each use of the SQL throws the error of `asValue()`, such as `.mismatch`.
    public mutating func appendInterpolation<V: RawRepresentable & ValueConvertible>(_ value: V?)
    where V.RawValue: ValueConvertible & LosslessStringConvertible {
        sql.append(argument: value)
    }

    /// Binds a list of values that have raw values too, in parentheses.
    public mutating func appendInterpolation<V: RawRepresentable & ValueConvertible>(
        list values: [V]
    ) where V.RawValue: ValueConvertible & LosslessStringConvertible {
        sql.append(list: values)
    }

    /// Refuses the name of a column where a value is bound: each use of the SQL throws `.misuse`.
    @available(*, deprecated, message: "insert a name by \\(identifier: key.stringValue)")
    public mutating func appendInterpolation<V: RawRepresentable & CodingKey>(_ key: V)
    where V.RawValue: ValueConvertible & LosslessStringConvertible {
        sql.append(argument: Value.null)
        sql.failure =
            sql.failure
            ?? StoreError(
                .misuse, "a CodingKey is bound, which is the name of a column",
                hint: "Insert the name by \\(identifier: key.stringValue).")
    }
}
