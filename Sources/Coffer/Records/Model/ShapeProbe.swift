/// Decodes a property's type from placeholders, and notes which container it asks for.
final class ShapeProbe: Decoder {
    let variant: Placeholder.Variant
    private let choice: CaseChoice
    private(set) var shape: ColumnShape?
    /// Whether the type itself calls `decodeNil()`, as `Optional` does.
    private(set) var askedForNil = false
    private var requestedKeys: RequestedKeys?

    /// The shape of the value under the key `rawValue`, if the type asks for that key alone.
    var rawValueShape: ColumnShape? {
        requestedKeys?.names == ["rawValue"] ? requestedKeys?.shape : nil
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(variant: Placeholder.Variant, choice: CaseChoice? = nil) {
        self.variant = variant
        self.choice = choice ?? CaseChoice(number: variant.rawValue, depth: 0)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        note(.keyed)
        let keys = RequestedKeys()
        if requestedKeys == nil { requestedKeys = keys }
        return KeyedDecodingContainer(
            PlaceholderKeyed<Key>(variant: variant, choice: choice, requested: keys))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer {
        note(.unkeyed)
        return PlaceholderUnkeyed(variant: variant, depth: choice.depthInside)
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
            // The wrapper's coding is `single`, because its own init(from:) must run.
            if probe.shape == nil { probe.shape = ColumnShape.of(type)?.wrapped }
            return try Placeholder.make(type, probe.variant, depth: probe.choice.depthInside)
        }
    }
}

/// The keys that a type asks its own container for.
private final class RequestedKeys {
    private(set) var names: Set<String> = []
    /// The shape of the value under the key `rawValue`.
    private(set) var shape: ColumnShape?

    func note(_ name: String, _ shape: ColumnShape? = nil) {
        names.insert(name)
        if self.shape == nil { self.shape = shape }
    }
}

/// The keyed container of a nested value: `contains` is false for every key, yet decoding any key
/// succeeds.
private struct PlaceholderKeyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let variant: Placeholder.Variant
    let choice: CaseChoice
    var requested: RequestedKeys?
    var codingPath: [any CodingKey] { [] }
    /// An enum with payloads gets the name of one of its cases. Otherwise the second variant has
    /// the key "1", which a dictionary accepts.
    var allKeys: [Key] {
        if let key = choice.key(Key.self) { return [key] }
        return variant == .first ? [] : Key(stringValue: "1").map { [$0] } ?? []
    }

    func contains(_ key: Key) -> Bool {
        requested?.note(key.stringValue)
        return false
    }

    func decodeNil(forKey key: Key) -> Bool {
        requested?.note(key.stringValue)
        return true
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        // Only of this key: a type may hold itself under others.
        requested?.note(
            key.stringValue, key.stringValue == "rawValue" ? ColumnShape.of(type) : nil)
        // Dictionary elements start with the first variant, which is an empty container, so that
        // the recursion ends for a type that holds a dictionary of itself.
        let variant = allKeys.isEmpty || choice.isMade ? variant : .first
        let depth = choice.depthInside
        // A nested enum may lack the variant asked for.
        if let value = try? Placeholder.make(type, variant, depth: depth) { return value }
        return try Placeholder.make(type, variant.other, depth: depth)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedDecodingContainer<Nested> {
        requested?.note(key.stringValue)
        return KeyedDecodingContainer(PlaceholderKeyed<Nested>(variant: variant, choice: inside))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer {
        requested?.note(key.stringValue)
        return PlaceholderUnkeyed(variant: variant, depth: choice.depthInside)
    }

    func superDecoder() -> any Decoder {
        requested?.note("super")
        return ShapeProbe(variant: variant, choice: inside)
    }

    func superDecoder(forKey key: Key) -> any Decoder {
        requested?.note(key.stringValue)
        return ShapeProbe(variant: variant, choice: inside)
    }

    /// The choice of a container inside.
    private var inside: CaseChoice {
        CaseChoice(number: variant.rawValue, depth: choice.depthInside)
    }
}

/// The unkeyed container of a nested value. It is empty, or has one element of the first variant
/// that can be made, so that the recursion ends for a type that holds an array of itself.
private struct PlaceholderUnkeyed: UnkeyedDecodingContainer {
    let variant: Placeholder.Variant
    let depth: Int
    var currentIndex = 0

    init(variant: Placeholder.Variant, depth: Int) {
        (self.variant, self.depth) = (variant, depth)
    }

    var codingPath: [any CodingKey] { [] }
    var count: Int? { variant.rawValue }
    var isAtEnd: Bool { currentIndex >= variant.rawValue }

    mutating func decodeNil() -> Bool { false }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        currentIndex += 1
        return try Placeholder.makeAny(type, depth: depth).0
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedDecodingContainer<Nested> {
        currentIndex += 1
        let choice = CaseChoice(number: 0, depth: depth)
        return KeyedDecodingContainer(PlaceholderKeyed<Nested>(variant: .first, choice: choice))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return PlaceholderUnkeyed(variant: .first, depth: depth)
    }

    mutating func superDecoder() -> any Decoder {
        currentIndex += 1
        return ShapeProbe(variant: .first, choice: CaseChoice(number: 0, depth: depth))
    }
}
