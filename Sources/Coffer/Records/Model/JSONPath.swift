/// The place of a value inside the JSON of a column.
///
/// ```swift
/// static var jsonPaths: [PartialKeyPath<Self>: JSONPath] {
///     [\.address?.city: JSONPath("address", "city"), \.tags[0]: JSONPath("tags", 0)]
/// }
/// ```
public struct JSONPath: Sendable, Hashable {
    /// One step from an object or an array to a value inside: a key or an index.
    public enum Step: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
        /// The value of a key of an object.
        case key(String)
        /// The element of an array; the first one has the index 0.
        case index(Int)

        /// The value of a key.
        public init(stringLiteral key: String) { self = .key(key) }
        /// An element of an array.
        public init(integerLiteral index: Int) { self = .index(index) }
    }

    let column: String
    let steps: [Step]

    /// Describes a place.
    ///
    /// - Parameters:
    ///   - column: The name of the column: the coding key of the record's property.
    ///   - first: The first step from the column's value.
    ///   - others: The further steps, in order.
    public init(_ column: String, _ first: Step, _ others: Step...) {
        self.column = column
        steps = [first] + others
    }
}

/// A place inside the JSON of a column, for conditions, orders and indexes.
struct JSONPlace: Sendable {
    let plan: RecordPlan
    /// The position of the column.
    let position: Int
    let steps: [JSONPath.Step]
    /// The type of the property.
    let type: Any.Type

    /// The column and the steps, for errors.
    var name: String {
        steps.reduce(plan.columns[position].name) { name, step in
            switch step {
            case .key(let key): "\(name).\(key)"
            case .index(let index): "\(name)[\(index)]"
            }
        }
    }

    /// The value, as a call of Coffer's function. It has no arguments, so that SQLite recognises
    /// the expression of an index.
    ///
    /// - Throws: `.misuse` for a key that SQL text cannot have.
    func sql() throws(StoreError) -> SQL {
        var terms = [plan.qualifiedColumns[position]]
        for step in steps {
            switch step {
            case .key(let key):
                guard !key.utf8.contains(0) else {
                    throw StoreError(
                        .misuse, "a key of a JSON path contains NUL", table: plan.table,
                        column: plan.columns[position].name)
                }
                terms.append(Self.literal(of: key))
            case .index(let index):
                guard index >= 0 else {
                    throw StoreError(
                        .misuse, "an index of a JSON path is negative",
                        hint: "The first element has the index 0.", table: plan.table,
                        column: plan.columns[position].name)
                }
                terms.append("\(index)")
            }
        }
        var sql = SQL(text: "\(JSONFunction.name)(\(terms.joined(separator: ", ")))")
        sql.requirements = [JSONFunction()]
        sql.mayFail = true
        return sql
    }

    /// Scalar by scalar, because a quote with a combining mark is another character.
    private static func literal(of key: String) -> String {
        var literal = "'"
        for scalar in key.unicodeScalars {
            if scalar == "'" { literal += "'" }
            literal.unicodeScalars.append(scalar)
        }
        return literal + "'"
    }

    /// The value that the function finds where a property has this one.
    ///
    /// - Throws: `.misuse` for an object, an array or a `Decimal`, `.mismatch` for a value that
    ///   cannot be encoded or does not fit 64 bits.
    func value<V: Encodable>(_ value: V) throws(StoreError) -> Value {
        try requireComparable(kind(of: V.self))
        try requireComparable(kind(of: type))
        let json: [UInt8]
        do {
            json = Array(try JSONText.data(value))
        } catch {
            throw StoreError(
                .mismatch, "a value in a condition could not be encoded as JSON",
                table: plan.table, column: name, cause: error)
        }
        guard let value = JSONScanner.value(of: json) else { throw notComparable() }
        // Such an integer would be rounded.
        if case .real = value, !json.contains(where: { "eE.".utf8.contains($0) }) {
            throw StoreError.outOfRange(Int64.self).with(table: plan.table, column: name)
        }
        return value
    }

    /// - Throws: `.misuse` for a type whose JSON sorts differently from its values.
    func requireOrder() throws(StoreError) {
        let kind = kind(of: type)
        try requireComparable(kind)
        guard kind != .data else {
            throw StoreError(
                .misuse, "bytes are base64 in JSON, which sorts differently from their values",
                hint: "Compare with == or !=.", table: plan.table, column: name)
        }
    }

    private func kind(of type: Any.Type) -> ValueKind? {
        let plain = (type as? any OptionalValue.Type)?.wrapped ?? type
        return ScalarEncoder.shape(of: plain)?.kind
    }

    private func requireComparable(_ kind: ValueKind?) throws(StoreError) {
        // The function finds NULL for an object and an array, as for a missing value.
        let refused: [ValueKind] = [.decimal, .bytes, .keyed, .unkeyed]
        if let kind, refused.contains(kind) { throw notComparable() }
    }

    private func notComparable() -> StoreError {
        StoreError(
            .misuse, "an object, an array or a decimal number inside JSON cannot be compared",
            hint: "Compare its properties one by one, or give it a column of its own.",
            table: plan.table, column: name)
    }
}

extension JSONScanner {
    /// The value that `coffer_json` finds in a text; `nil` for an object, an array, or a text that
    /// is not JSON.
    static func value(of json: [UInt8], _ steps: [JSONPath.Step] = []) -> Value? {
        json.withUnsafeBytes { bytes in
            var scanner = JSONScanner(bytes)
            guard let found = try? scanner.find(steps) else { return .null }
            switch found {
            case .null: return .null
            case .bool(let value): return .integer(value ? 1 : 0)
            case .number(let range):
                return try? number(UnsafeRawBufferPointer(rebasing: bytes[range]))
            case .string(let range, _):
                let text = try? unescaped(UnsafeRawBufferPointer(rebasing: bytes[range]))
                return text.map { .text(String(decoding: $0, as: UTF8.self)) }
            case .container: return nil
            }
        }
    }

    private mutating func find(_ steps: [JSONPath.Step]) throws(Malformed) -> Found? {
        for step in steps {
            let isInside =
                switch step {
                case .key(let key): try enterObject(at: key.utf8)
                case .index(let index): try enterArray(at: index)
                }
            guard isInside else { return nil }
        }
        return try value()
    }
}
