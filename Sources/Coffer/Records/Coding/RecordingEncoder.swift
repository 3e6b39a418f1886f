/// Notes the columns into which an example encodes itself.
final class RecordingEncoder: Encoder {
    private(set) var collector = ColumnCollector()
    /// The error for a container that the type asked for and a row cannot provide.
    private(set) var refusal: StoreError?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        refuse("an unkeyed container").unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        refuse("a single-value container").singleValueContainer()
    }

    private func refuse(_ container: String) -> InertEncoder {
        refusal = refusal ?? .noColumns(for: container)
        return InertEncoder()
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: RecordingEncoder
        var codingPath: [any CodingKey] { [] }

        mutating func encodeNil(forKey key: Key) {
            encoder.collector.mention(key.stringValue, isNullable: true)
        }

        // The generic method meets all requirements of the protocol: nothing here is hot.
        mutating func encode<T: Encodable>(_ value: T, forKey key: Key) {
            let shape = ScalarEncoder.shape(of: value)
            encoder.collector.note(key.stringValue, T.self, shape, isNullable: false)
        }

        mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) {
            noteOptional(value, key)
        }

        // The standard library implements these itself and would not report a `nil`.

        mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: String?, forKey key: Key) {
            noteOptional(value, key)
        }
        mutating func encodeIfPresent(_ value: Double?, forKey key: Key) {
            noteOptional(value, key)
        }
        mutating func encodeIfPresent(_ value: Float?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: Int?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) { noteOptional(value, key) }
        mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) {
            noteOptional(value, key)
        }
        mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) {
            noteOptional(value, key)
        }
        mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) {
            noteOptional(value, key)
        }

        private func noteOptional<T: Encodable>(_ value: T?, _ key: Key) {
            let shape = value.map { ScalarEncoder.shape(of: $0) } ?? ScalarEncoder.shape(of: T.self)
            encoder.collector.note(key.stringValue, T.self, shape, isNullable: true)
        }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            tree(key.stringValue).container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            tree(key.stringValue).unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder { tree("super") }
        mutating func superEncoder(forKey key: Key) -> any Encoder { tree(key.stringValue) }

        private func tree(_ name: String) -> InertEncoder {
            encoder.collector.note(name, EncodedTree.self, .tree, isNullable: false)
            return InertEncoder()
        }
    }
}
