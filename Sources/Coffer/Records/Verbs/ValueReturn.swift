extension RecordColumn {
    /// Converts a value to the column's form.
    ///
    /// A type may try one kind of value after the other, but its column has the kind that it tries
    /// first. A value of another kind is stored only if decoding returns a value with the same
    /// encoding.
    ///
    /// - Parameter countingFrom2001: Whether the column's dates count from 2001 rather than 1970.
    ///   A `ColumnEncoding` takes precedence.
    /// - Throws: `.mismatch` if it would decode to something else; any error from the type's own
    ///   coding.
    @inline(__always)
    func stored<T: Encodable>(
        _ value: T, by scalar: ScalarEncoder, countingFrom2001: Bool
    ) throws -> Value {
        // An enum may encode one case as a container and another one as a single value, or as nil.
        if coding == .json, isOwn(T.self) { return try json(value) }
        let encoded = try scalar.encode(value: value)
        let returned =
            scalar.kind == kind || encoded == .null
            ? encoded : try checked(value, encoded, scalar.kind)
        if let encoding { return try encoding.stored(returned) }
        let isOfOtherCount = scalar.kind == .date && !countingFrom2001
        return isOfOtherCount ? returned.countedFrom1970 : returned
    }

    /// Whether a type is the column's type or an optional of it. Coffer does not check a property
    /// that the record encodes as another type than it decodes.
    private func isOwn(_ other: Any.Type) -> Bool {
        type == other || (other as? any OptionalValue.Type)?.wrapped == type
    }

    @inline(never)
    private func json<T: Encodable>(_ value: T) throws -> Value {
        if let optional = value as? any OptionalValue, optional.isNil { return .null }
        return .text(try JSONText.text(value))
    }

    @inline(never)
    private func checked<T: Encodable>(
        _ value: T, _ encoded: Value, _ kind: ValueKind
    ) throws -> Value {
        guard isOwn(T.self), let type = type as? any Decodable.Type else { return encoded }
        guard Self.comesBack(encoded, kind, as: type) else {
            throw StoreError(
                .mismatch,
                "a value of \(type) would not be read back unchanged: it is not of the kind "
                    + "that the type decodes first",
                hint: "Wrap it in a struct, which is stored as JSON.")
        }
        return encoded
    }

    private static func comesBack<D: Decodable>(
        _ encoded: Value, _ kind: ValueKind, as type: D.Type
    ) -> Bool {
        func again<E: Encodable>(_ made: E) -> Bool {
            let scalar = ScalarEncoder()
            return (try? scalar.encode(value: made)) == encoded && scalar.kind == kind
        }
        let made = (try? D(from: ScalarDecoder(encoded, countingFrom2001: true))) as? any Encodable
        return made.map { again($0) } ?? false
    }
}
