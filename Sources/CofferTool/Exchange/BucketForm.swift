import Coffer
import Foundation

/// What the file says of a bucket: the type of its keys, how its values are stored, and expiry.
struct BucketForm {
    /// `text`, `integer`, `bool`, `unsigned`, `date`, `uuid`, `bytes`, or the parts of a composite
    /// key in parentheses.
    let keyType: String
    /// `nil` for a bucket that an earlier version made.
    private let codec: String?
    /// The lifetime of new entries, in microseconds; `nil` for none.
    let lifetime: Int64?
    let hasExpiry: Bool
    /// `nil` for a type that this version does not know.
    let type: BucketKeyType?

    init(
        columnType: String, keyType: String?, codec: String?, lifetime: Int64?, hasExpiry: Bool
    ) {
        let stated = ["INTEGER": "integer", "TEXT": "text", "REAL_SINCE_2001": "date"]
        self.keyType = keyType ?? stated[columnType] ?? "bytes"
        type = BucketKeyType(named: self.keyType)
        self.codec = codec
        self.lifetime = lifetime
        self.hasExpiry = hasExpiry
    }

    /// The form of a bucket that the tool makes.
    init(_ type: StoredBucket.KeyType) {
        keyType = type.rawValue
        self.type = BucketKeyType(named: keyType)
        (codec, lifetime, hasExpiry) = (nil, nil, false)
    }

    /// Microseconds since 1970.
    static var now: Int64 { Int64((Date().timeIntervalSince1970 * 1e6).rounded(.down)) }

    /// When an entry ends that is stored now; `nil` for never.
    ///
    /// - Throws: `ToolError` `.badInput` for a lifetime beyond 64 bits.
    func end() throws -> Int64? {
        guard let lifetime else { return nil }
        let (end, isTooLong) = Self.now.addingReportingOverflow(lifetime)
        guard !isTooLong else {
            throw ToolError(.badInput, "the lifetime of the bucket is out of range")
        }
        return end
    }

    /// Adds the condition that an entry has not expired.
    func appendLive(to sql: inout SQL) {
        if hasExpiry { sql.append(" AND (expires IS NULL OR expires > \(Self.now))") }
    }

    // MARK: Keys

    /// The stored key that a text on the command line means.
    ///
    /// - Throws: `ToolError` `.usage` for a text that is no key of the type.
    func stored(_ key: String, _ bucket: String) throws -> Value {
        switch keyType {
        case "text": return .text(key)
        case "integer":
            guard let number = Int64(key) else { throw refusal(bucket, "integers") }
            return .integer(number)
        case "bool":
            guard let isTrue = Bool(key) else { throw refusal(bucket, "true or false") }
            return .integer(isTrue ? 1 : 0)
        case "unsigned":
            guard let number = UInt64(key) else { throw refusal(bucket, "integers from 0") }
            return number.storedKey()
        case "date":
            guard let seconds = Double(key), seconds.isFinite else {
                throw refusal(
                    bucket, "dates", hint: "Write the seconds since 2001, as kv list does.")
            }
            return .real(seconds)
        case "uuid":
            guard let id = UUID(uuidString: key) else { throw refusal(bucket, "UUIDs") }
            return id.asValue()
        case "bytes":
            if let id = UUID(uuidString: key) { return id.asValue() }
            return try bytes(key, bucket, "bytes", "Write a UUID, or bytes as hex:00ff.")
        default:
            return try bytes(
                key, bucket, "composite: \(keyType)",
                "Write the bytes as hex:00ff, as kv list does.")
        }
    }

    private func bytes(
        _ key: String, _ bucket: String, _ kind: String, _ hint: String
    ) throws -> Value {
        guard key.hasPrefix("hex:"),
            case .blob(let bytes) = try BoundValue.parse(key, apartFrom: "")
        else { throw refusal(bucket, kind, hint: hint) }
        return .blob(bytes)
    }

    private func refusal(_ bucket: String, _ kind: String, hint: String? = nil) -> ToolError {
        ToolError(.usage, "the keys of \(bucket) are \(kind)", hint: hint)
    }

    /// A key as it is written on the command line: a UUID, an unsigned integer and a Boolean as
    /// text, every other one as it is stored.
    func shown(_ key: Value) -> Value { Self.shown(key, keyType) }

    static func shown(_ key: Value, _ type: String) -> Value {
        switch (type, key) {
        case ("uuid", _): (try? UUID(key)).map { .text($0.uuidString) } ?? key
        case ("unsigned", _): (try? UInt64(storedKey: key)).map { .text("\($0)") } ?? key
        case ("bool", .integer(let number)): .text(number == 0 ? "false" : "true")
        default: key
        }
    }

    // MARK: Values

    /// Whether the bucket's codec allows only some values.
    var hasCodec: Bool { codec != nil && codec != "sql" && codec != "any" }

    /// Refuses a bucket of attachments, whose values only stand for bytes in other tables.
    ///
    /// - Throws: `ToolError` `.badInput`.
    func requireOwnValues(_ bucket: String) throws {
        guard codec == Self.attachmentCodec else { return }
        throw ToolError(
            .badInput,
            "the values of \(bucket) are attachments, which only a program reads and writes",
            hint: "coffer backup copies them with the whole store.")
    }

    static let attachmentCodec = "attachment"

    /// Checks that a value is of the bucket's kind.
    ///
    /// - Throws: `ToolError` `.badInput` for a value that the bucket cannot hold. A bucket of JSON
    ///   holds JSON text. One with a program's codec holds bytes. One of attachments holds none.
    func requireFitting(_ value: Value, _ bucket: String) throws {
        try requireOwnValues(bucket)
        switch (codec, value) {
        case (nil, _), ("sql", _), ("any", _): return
        case ("json", .text(let text)):
            let options: JSONSerialization.ReadingOptions = [.fragmentsAllowed]
            guard
                (try? JSONSerialization.jsonObject(with: Data(text.utf8), options: options)) == nil
            else { return }
            throw ToolError(
                .badInput, "the values of \(bucket) are JSON, and this one is not",
                hint: "Write a text as '\"text\"'.")
        case ("json", _):
            throw ToolError(
                .badInput, "the values of \(bucket) are JSON",
                hint: "Give it as text: without a type before a colon, and without --raw.")
        case (_?, .blob): return
        case (let codec?, _):
            throw ToolError(
                .badInput, "the values of \(bucket) are the bytes of \(codec)",
                hint: "Give them as file:PATH or hex:00ff.")
        }
    }
}
