import Coffer
import Foundation

/// Keys in JSON: as `coffer kv list --json` writes them, and the parts of a composite key as an
/// array.
extension BucketForm {
    /// Appends a stored key in a form that `stored(_:)` reads back to the same bytes.
    ///
    /// A value that no key of the bucket's type is stored as is written as the value that it is.
    func append(_ key: Value, to bytes: inout [UInt8]) {
        guard let type, let parts = type.parts(of: key) else {
            return JSONValue.append(key, to: &bytes)
        }
        let shown = zip(parts, type.partNames).map(Self.shown)
        guard type.isComposite else { return JSONValue.append(shown[0], to: &bytes) }
        bytes.append(0x5b)
        for (index, part) in shown.enumerated() {
            if index > 0 { bytes.append(0x2c) }
            JSONValue.append(part, to: &bytes)
        }
        bytes.append(0x5d)
    }

    /// Converts the key of a JSON entry to the form in the file.
    ///
    /// - Returns: `nil` if the key does not have the bucket's type.
    func stored(_ key: JSONEntry.Key) -> Value? {
        guard let type else { return nil }
        switch key {
        case .parts(let parts):
            guard type.isComposite, parts.count == type.partNames.count else { return nil }
            let values = zip(parts, type.partNames).compactMap(Self.stored)
            return type.stored(values)
        case .single(let value):
            guard type.isComposite else {
                return Self.stored(value, type.partNames[0]).flatMap { type.stored([$0]) }
            }
            // The bytes of such a key, as kv list writes them.
            let stored = Value(copying: value)
            guard type.parts(of: stored) != nil else { return nil }
            return stored
        }
    }

    private static func stored(_ part: BorrowedValue, _ type: String) -> Value? {
        let value = Value(copying: part)
        switch (type, value) {
        case ("bool", .text(let text)):
            return Bool(text).map { .integer($0 ? 1 : 0) }
        case ("unsigned", .text(let text)): return UInt64(text).map { $0.storedKey() }
        case ("unsigned", .integer(let number)):
            return UInt64(exactly: number).map { $0.storedKey() }
        case ("uuid", .text(let text)): return UUID(uuidString: text).map { $0.asValue() }
        case ("date", .integer(let number)): return Double(exactly: number).map { .real($0) }
        default: return value
        }
    }
}
