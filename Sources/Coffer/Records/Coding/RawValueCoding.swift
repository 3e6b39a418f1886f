// Types such as `struct ID: RawRepresentable, Codable { let rawValue: UUID }`. Swift encodes such a
// type under one key, `rawValue`, unless that is a number or a text. A column has the raw value.

/// Takes the value that a type encodes under the key `rawValue`.
final class RawValueEncoder: Encoder {
    private let scalar: ScalarEncoder
    fileprivate(set) var value: Value?
    /// The first thing that the type encodes and that is not under the key `rawValue`.
    private var other: String?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ scalar: ScalarEncoder) {
        self.scalar = scalar
    }

    /// - Throws: `.mismatch` if the type encodes something else; errors of its `encode(to:)`.
    func encode<T: Encodable>(_ value: T) throws -> Value {
        try value.encode(to: self)
        guard let encoded = self.value, other == nil else {
            throw StoreError(
                .mismatch,
                "a \(T.self) encodes \(other ?? "nothing"), and decodes the key rawValue alone",
                hint: "Encode what init(from:) decodes.")
        }
        return encoded
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        note("a list")
        return InertEncoder().unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        note("a single value")
        return InertEncoder().singleValueContainer()
    }

    private func note(_ what: String) { other = other ?? what }

    // One generic method meets all requirements of the protocol: nothing here is hot.
    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: RawValueEncoder
        var codingPath: [any CodingKey] { [] }

        func encodeNil(forKey key: Key) {
            if isOwn(key) { encoder.value = .null }
        }

        func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
            if isOwn(key) { encoder.value = try encoder.scalar.encode(value: value) }
        }

        private func note(_ key: Key) { encoder.note("the key \(key.stringValue)") }

        private func isOwn(_ key: Key) -> Bool {
            if key.stringValue == "rawValue" { return true }
            note(key)
            return false
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            note(key)
            return InertEncoder().container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            note(key)
            return InertEncoder().unkeyedContainer()
        }

        func superEncoder() -> any Encoder {
            encoder.note("its superclass")
            return InertEncoder()
        }

        func superEncoder(forKey key: Key) -> any Encoder { superEncoder() }
    }
}

/// Gives a type one SQL value under the key `rawValue`.
struct RawValueDecoder: Decoder {
    let scalar: ScalarDecoder

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>(scalar: scalar))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Self.other }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Self.other }

    fileprivate static let other = StoreError(
        .mismatch, "the type decodes the key rawValue first and something else later")

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let scalar: ScalarDecoder
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { Key(stringValue: "rawValue").map { [$0] } ?? [] }

        func contains(_ key: Key) -> Bool { key.stringValue == "rawValue" }
        func decodeNil(forKey key: Key) throws -> Bool { contains(key) && scalar.decodeNil() }

        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            guard contains(key) else { throw RawValueDecoder.other }
            return try scalar.decode(type)
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { throw RawValueDecoder.other }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw RawValueDecoder.other
        }

        func superDecoder() throws -> any Decoder { throw RawValueDecoder.other }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw RawValueDecoder.other }
    }
}
