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
    /// - Note: The verb that uses the place throws `.misuse` if there is no column of JSON of that
    ///   name, for a negative index, and for a key with NUL.
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
    /// - Throws: `.misuse` for an object, an array or a `Decimal`, for a key that SQL text cannot
    ///   have, and for a negative index.
    func sql() throws(StoreError) -> SQL {
        try requireComparable()
        var terms = [plan.qualifiedColumns[position]]
        for step in steps {
            switch step {
            case .key(let key):
                guard !key.utf8.contains(0) else {
                    throw StoreError(
                        .misuse, "a key of a JSON path contains NUL", table: plan.table,
                        column: plan.columns[position].name)
                }
                terms.append(key.inSingleQuotes)
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

    /// The value that the function finds where a property has this one.
    ///
    /// - Throws: `.misuse` for an object or an array, `.mismatch` for a value that cannot be
    ///   encoded or does not fit 64 bits.
    func value<V: Encodable>(_ value: V) throws(StoreError) -> Value {
        let json: [UInt8]
        do {
            json = Array(try JSONText.data(value))
        } catch {
            throw StoreError(
                .mismatch, "a value in a condition could not be encoded as JSON",
                table: plan.table, column: name, cause: error)
        }
        guard let value = try? JSONScanner.value(of: json) else { throw notComparable() }
        // Such an integer would be rounded.
        if case .real = value, !json.contains(where: { "eE.".utf8.contains($0) }) {
            throw StoreError.outOfRange(Int64.self).with(table: plan.table, column: name)
        }
        return value
    }

    /// - Throws: `.misuse` for a type whose JSON sorts differently from its values.
    func requireOrder() throws(StoreError) {
        guard kind != .data else {
            throw StoreError(
                .misuse, "bytes are base64 in JSON, which sorts differently from their values",
                hint: "Compare with == or !=.", table: plan.table, column: name)
        }
    }

    private var kind: ValueKind? {
        let plain = (type as? any OptionalValue.Type)?.wrapped ?? type
        return ScalarEncoder.shape(of: plain)?.kind
    }

    private func requireComparable() throws(StoreError) {
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
    /// The value that `coffer_json` finds in a text; `nil` for an object or an array.
    ///
    /// - Throws: `Malformed` if the text is not JSON up to the value.
    static func value(of json: [UInt8], _ steps: [JSONPath.Step] = []) throws -> Value? {
        try json.withUnsafeBytes { bytes in
            var scanner = JSONScanner(bytes)
            let found = try scanner.find(
                steps.lazy.map { step -> Step<String.UTF8View> in
                    switch step {
                    case .key(let key): .key(key.utf8)
                    case .index(let index): .index(index)
                    }
                })
            switch found {
            case nil, .null: return .null
            case .bool(let value): return .integer(value ? 1 : 0)
            case .number(let range):
                return try number(UnsafeRawBufferPointer(rebasing: bytes[range]))
            case .string(let range, _):
                let text = try unescaped(UnsafeRawBufferPointer(rebasing: bytes[range]))
                return .text(String(decoding: text, as: UTF8.self))
            case .container: return nil
            }
        }
    }
}
