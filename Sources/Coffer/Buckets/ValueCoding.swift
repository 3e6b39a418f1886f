#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How the values of a bucket become SQL values.
enum ValueCoding: Hashable {
    /// The type is `ValueConvertible`, so it has an SQL value itself.
    case direct
    /// Any other `Codable` type: JSON text with sorted keys, so that equal values are equal bytes.
    case json

    init<V>(_ type: V.Type) {
        self = type is any ValueConvertible.Type ? .direct : .json
    }

    func encode<V: Encodable>(_ value: V) throws(StoreError) -> Value {
        if self == .direct, let convertible = value as? any ValueConvertible {
            return try convertible.asValue()
        }
        do {
            return .text(try JSONText.text(value))
        } catch {
            throw StoreError(.mismatch, "a value of \(V.self) could not be encoded", cause: error)
        }
    }

    func decode<V: Decodable>(_ type: V.Type, from value: Value) throws(StoreError) -> V {
        if self == .direct, let convertible = type as? any ValueConvertible.Type {
            let made: any ValueConvertible = try convertible.init(value)
            if let made = made as? V { return made }
        }
        guard case .text(let json) = value else { throw .mismatch(value, type) }
        do {
            return try JSONText.decode(type, from: Data(json.utf8))
        } catch {
            throw StoreError(.mismatch, "a stored value is not a \(V.self)", cause: error)
        }
    }
}
