#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes a Swift value of one SQL value, for types that decode themselves from a single value.
final class ScalarDecoder: Decoder, SingleValueDecodingContainer {
    private let value: Value

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: Value) {
        self.value = value
    }

    /// A container that the type did not ask for when it was reflected.
    private func refuse() -> StoreError {
        StoreError(.mismatch, "the type asks for a single value once and for a container later")
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw refuse()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw refuse() }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value == .null }

    // The two that raw-value enums ask for; the generic method meets all other requirements.

    func decode(_ type: Int.Type) throws -> Int { try Int(value) }
    func decode(_ type: String.Type) throws -> String { try String(value) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        // The frequent ones without casts; equal types have the same bits.
        if type == Int.self { return unsafeBitCast(try Int(value), to: type) }
        if type == String.self { return unsafeBitCast(try String(value), to: type) }
        if type == Double.self { return unsafeBitCast(try Double(value), to: type) }
        if ColumnShape.known(type) != nil, let known = type as? any ValueConvertible.Type {
            guard let made = try known.init(value) as? T else {
                throw StoreError.mismatch(value, type)
            }
            return made
        }
        guard ColumnShape.of(type)?.coding == .json else { return try T(from: self) }
        guard case .text(let json) = value else { throw StoreError.mismatch(value, type) }
        return try JSONText.decode(type, from: Data(json.utf8))
    }
}
