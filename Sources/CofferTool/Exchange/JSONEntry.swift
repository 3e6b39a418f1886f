import Coffer

/// An entry of a bucket on a line of JSON: `{"key":…,"value":…,"expires":…}`.
struct JSONEntry {
    enum Key {
        case single(BorrowedValue)
        /// The parts of a composite key.
        case parts([BorrowedValue])
    }

    let key: Key
    let value: BorrowedValue
    /// Microseconds since 1970; `nil` for never.
    let end: Int64?

    /// Reads an entry.
    ///
    /// - Parameter bytes: Escapes are replaced in place, where the texts and blobs then are.
    /// - Throws: `JSONProblem`, which repeats no key of the bucket and no value.
    init(_ bytes: UnsafeMutableBufferPointer<UInt8>) throws(JSONProblem) {
        var (keys, values, ends): ([Key], [BorrowedValue], [BorrowedValue]) = ([], [], [])
        try JSONRecord.read(bytes) { record, member throws(JSONProblem) in
            switch member {
            case "key":
                if let parts = try record.list(of: member) {
                    keys.append(.parts(parts))
                } else {
                    keys.append(.single(try record.value(of: member)))
                }
            case "value": values.append(try record.value(of: member))
            case "expires": ends.append(try record.value(of: member))
            default:
                throw JSONProblem(
                    message: "an entry has key, value and expires, and nothing else")
            }
        }
        guard keys.count == 1, values.count == 1, ends.count <= 1 else {
            throw JSONProblem(message: "an entry has one key, one value and at most one expires")
        }
        (key, value) = (keys[0], values[0])
        end = try Self.end(ends.first ?? .null)
    }

    private static func end(_ value: BorrowedValue) throws(JSONProblem) -> Int64? {
        switch value {
        case .null: return nil
        case .integer(let time): return time
        case .text(let bytes):
            if let time = ExactTime.microseconds(of: String(decoding: bytes, as: UTF8.self)) {
                return time
            }
        case .real, .blob: break
        }
        throw JSONProblem(
            message: "expires is no time",
            hint: "Write it as 2026-12-24T18:00:00.250000Z, or as whole microseconds since 1970.")
    }

    /// Appends a time as `init(_:)` reads it: a text, or a number outside the years 0 to 9999.
    static func append(end: Int64, to bytes: inout [UInt8]) {
        if let text = ExactTime.text(of: end) {
            JSONValue.append(text, to: &bytes)
        } else {
            bytes.append(decimal: end)
        }
    }
}
