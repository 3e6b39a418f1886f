/// Makes a value of a record type out of placeholders, and notes the columns that it asks for.
final class RecordingDecoder: Decoder {
    private(set) var collector = ColumnCollector()
    /// The column that gets its other placeholder, to find its property.
    private let alternate: String?
    /// The error for a container that the type asked for and a row cannot provide.
    private(set) var refusal: StoreError?
    /// Whether the alternate placeholder was handed out.
    private(set) var isAlternated = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(alternate: String? = nil) {
        self.alternate = alternate
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw refuse("an unkeyed container")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw refuse("a single-value container")
    }

    private func refuse(_ container: String) -> StoreError {
        let error = StoreError.noColumns(for: container)
        refusal = refusal ?? error
        return error
    }

    private func placeholder<T: Decodable>(_ type: T.Type, for name: String) throws -> T {
        let (value, variant) = try Placeholder.makeAny(type)
        guard name == alternate, let other = try? Placeholder.make(type, variant.other) else {
            return value
        }
        isAlternated = true
        return other
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let decoder: RecordingDecoder
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        func contains(_ key: Key) -> Bool {
            decoder.collector.mention(key.stringValue, isNullable: true)
            return true
        }

        func decodeNil(forKey key: Key) -> Bool {
            decoder.collector.mention(key.stringValue, isNullable: true)
            return false
        }

        // One generic method meets all requirements of the protocol: nothing here is hot.
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            let name = key.stringValue
            decoder.collector.note(name, type, ColumnShape.of(type), isNullable: false)
            return try decoder.placeholder(type, for: name)
        }

        func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
            let name = key.stringValue
            decoder.collector.note(name, type, ColumnShape.of(type), isNullable: true)
            guard name == decoder.alternate, let value = try? Placeholder.makeAny(type).0 else {
                return nil
            }
            decoder.isAlternated = true
            return value
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            opened(key.stringValue).container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            opened(key.stringValue).unkeyedContainer()
        }

        func superDecoder() throws -> any Decoder { opened("super") }
        func superDecoder(forKey key: Key) throws -> any Decoder { opened(key.stringValue) }

        private func opened(_ name: String) -> ShapeProbe {
            decoder.collector.note(name, EncodedTree.self, .tree, isNullable: false)
            return ShapeProbe(variant: .first)
        }
    }
}

extension StoreError {
    /// The error for a record type that decodes or encodes itself through a container without
    /// columns.
    static func noColumns(for container: String) -> StoreError {
        StoreError(
            .unsupported, "the type asks for \(container), and a row has only columns",
            hint: "Wrap it in a property of a type of its own, which is stored as JSON.")
    }
}
