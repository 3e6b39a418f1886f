#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How the values of one Swift type become SQL values, and back.
struct ValueCoder<V: Sendable>: Sendable {
    let coding: ValueCoding
    /// Throws `.mismatch` if the value cannot be stored.
    let encode: @Sendable (V) throws(StoreError) -> Value
    /// Throws `.mismatch` if the SQL value stands for no value of the type.
    let decode: @Sendable (Value) throws(StoreError) -> V
}

extension ValueCoder {
    /// A value as the bucket's table has it.
    ///
    /// - Throws: As `encode`, with the table and its column.
    func stored(_ value: V, in bucket: BucketPlan) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try encode(value)
        } catch {
            throw error.with(table: bucket.table, column: "value")
        }
    }

    /// The value that the bucket's table has stored.
    ///
    /// - Throws: As `decode`, with the table and its column.
    func value(_ stored: Value, in bucket: BucketPlan) throws(StoreError) -> V {
        try bucket.value(stored, by: decode)
    }
}

/// How a bucket's values are stored, as the file records it.
enum ValueCoding: Hashable, Sendable {
    /// As the SQL values that the type has itself.
    case sql
    /// As JSON text with sorted keys, so that equal values are equal bytes.
    case json
    /// Each value as its type has it, `sql` or `json`: settings of many types share a bucket.
    case any
    /// As the id of the content of an attachment.
    case attachment
    /// As the bytes of a codec with this name.
    case codec(String)

    init(named name: String) {
        switch name {
        case "sql": self = .sql
        case "json": self = .json
        case "any": self = .any
        case "attachment": self = .attachment
        default: self = .codec(name)
        }
    }

    /// Whether a bucket without a record may have it: earlier versions made those, and had no
    /// others.
    var isWithoutRecord: Bool {
        switch self {
        case .sql, .json, .any: true
        case .attachment, .codec: false
        }
    }

    /// The name in the file.
    var name: String {
        switch self {
        case .sql: "sql"
        case .json: "json"
        case .any: "any"
        case .attachment: "attachment"
        case .codec(let name): name
        }
    }

    /// Checks the name of a codec.
    ///
    /// - Throws: `.misuse` for an empty name, or that of a built-in coding.
    func check() throws(StoreError) {
        guard case .codec(let name) = self else { return }
        guard !name.isEmpty, !["sql", "json", "any", "attachment"].contains(name) else {
            throw StoreError(.misuse, "a codec must not have the name \"\(name)\"")
        }
    }
}

extension ValueCoder where V: Codable {
    /// A type with an SQL value is stored as it, any other as JSON text.
    static func standard() -> Self {
        if let convertible = V.self as? any ValueConvertible.Type,
            let coder = sql(convertible) as? Self
        {
            return coder
        }
        return Self(coding: .json) { value throws(StoreError) in
            do {
                return .text(try JSONText.text(value))
            } catch {
                throw StoreError(
                    .mismatch, "a value of \(V.self) could not be encoded", cause: error)
            }
        } decode: { value throws(StoreError) in
            guard case .text(let json) = value else { throw .mismatch(value, V.self) }
            do {
                return try JSONText.decode(V.self, from: Data(json.utf8))
            } catch {
                throw StoreError(.mismatch, "a stored value is not a \(V.self)", cause: error)
            }
        }
    }

    private static func sql<C: ValueConvertible>(_ type: C.Type) -> Any {
        ValueCoder<C>(coding: .sql) { value throws(StoreError) in
            try value.asValue()
        } decode: { value throws(StoreError) in
            try C(value)
        }
    }

    /// The same coder for a bucket with values of many types.
    func forAny() -> Self { Self(coding: .any, encode: encode, decode: decode) }
}

extension ValueCoder {
    /// The coder of a user's codec: its bytes are blobs.
    init(_ codec: BucketCodec<V>) {
        coding = .codec(codec.name)
        encode = { value throws(StoreError) in
            do {
                return .blob(try codec.encode(value))
            } catch {
                throw StoreError(.mismatch, "the codec could not encode a value", cause: error)
            }
        }
        decode = { value throws(StoreError) in
            guard case .blob(let bytes) = value else { throw .mismatch(value, V.self) }
            do {
                return try codec.decode(bytes)
            } catch {
                throw StoreError(
                    .mismatch, "the codec could not decode a stored value", cause: error)
            }
        }
    }
}
