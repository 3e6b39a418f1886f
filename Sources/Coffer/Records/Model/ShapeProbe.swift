/// Decodes a property's type from placeholders, and notes which container it asks for.
final class ShapeProbe: Decoder {
    let variant: Placeholder.Variant
    private(set) var shape: ColumnShape?
    /// Whether the type looks for nil by itself, as `Optional` does.
    private(set) var askedForNil = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(variant: Placeholder.Variant) {
        self.variant = variant
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        note(.keyed)
        return KeyedDecodingContainer(PlaceholderKeyed<Key>(variant: variant))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer {
        note(.unkeyed)
        return PlaceholderUnkeyed(variant: variant)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(probe: self) }

    private func note(_ kind: ValueKind) {
        if shape == nil { shape = ColumnShape(kind) }
    }

    private struct Single: SingleValueDecodingContainer {
        let probe: ShapeProbe
        var codingPath: [any CodingKey] { [] }

        func decodeNil() -> Bool {
            probe.askedForNil = true
            return false
        }

        // One generic method meets all requirements of the protocol: nothing here is hot.
        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            // The wrapper's own init(from:) runs, so its coding is its own.
            if probe.shape == nil { probe.shape = ColumnShape.of(type)?.wrapped }
            return try Placeholder.make(type, probe.variant)
        }
    }
}

/// The keyed container of a nested value: every key is there for who insists, none for who asks.
private struct PlaceholderKeyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let variant: Placeholder.Variant
    var codingPath: [any CodingKey] { [] }
    /// A dictionary takes any key; an enum with payloads takes none that is not its own.
    var allKeys: [Key] { variant == .first ? [] : Key(stringValue: "1").map { [$0] } ?? [] }

    func contains(_ key: Key) -> Bool { false }
    func decodeNil(forKey key: Key) -> Bool { true }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        // An element of a dictionary is always the first variant, so that a type which holds a
        // dictionary of itself comes to an end.
        let variant = allKeys.isEmpty ? variant : .first
        // A nested enum may lack the variant asked for.
        if let value = try? Placeholder.make(type, variant) { return value }
        return try Placeholder.make(type, variant.other)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedDecodingContainer<Nested> {
        KeyedDecodingContainer(PlaceholderKeyed<Nested>(variant: variant))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer {
        PlaceholderUnkeyed(variant: variant)
    }

    func superDecoder() -> any Decoder { ShapeProbe(variant: variant) }
    func superDecoder(forKey key: Key) -> any Decoder { ShapeProbe(variant: variant) }
}

/// The unkeyed container of a nested value: empty, or of one element, which is of the first
/// variant, so that a type which holds an array of itself comes to an end.
private struct PlaceholderUnkeyed: UnkeyedDecodingContainer {
    let variant: Placeholder.Variant
    var currentIndex = 0

    init(variant: Placeholder.Variant) {
        self.variant = variant
    }

    var codingPath: [any CodingKey] { [] }
    var count: Int? { variant.rawValue }
    var isAtEnd: Bool { currentIndex >= variant.rawValue }

    mutating func decodeNil() -> Bool { false }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        currentIndex += 1
        return try Placeholder.makeAny(type).0
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedDecodingContainer<Nested> {
        currentIndex += 1
        return KeyedDecodingContainer(PlaceholderKeyed<Nested>(variant: .first))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return PlaceholderUnkeyed(variant: .first)
    }

    mutating func superDecoder() -> any Decoder {
        currentIndex += 1
        return ShapeProbe(variant: .first)
    }
}
