/// Accepts everything and stores nothing.
///
/// Some requirements of `Encoder` cannot throw. If a row cannot provide what they ask for, the
/// caller notes the failure, returns this encoder, and throws when the type has finished.
struct InertEncoder: Encoder {
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>())
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Unkeyed() }
    func singleValueContainer() -> any SingleValueEncodingContainer { Single() }

    // One generic method in each meets all requirements of its protocol.

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        var codingPath: [any CodingKey] { [] }
        func encodeNil(forKey key: Key) {}
        func encode<T: Encodable>(_ value: T, forKey key: Key) {}

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            InertEncoder().container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { Unkeyed() }
        func superEncoder() -> any Encoder { InertEncoder() }
        func superEncoder(forKey key: Key) -> any Encoder { InertEncoder() }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        var codingPath: [any CodingKey] { [] }
        private(set) var count = 0
        mutating func encodeNil() { count += 1 }
        mutating func encode<T: Encodable>(_ value: T) { count += 1 }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) -> KeyedEncodingContainer<Nested> {
            count += 1
            return InertEncoder().container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            count += 1
            return Unkeyed()
        }

        mutating func superEncoder() -> any Encoder {
            count += 1
            return InertEncoder()
        }
    }

    private struct Single: SingleValueEncodingContainer {
        var codingPath: [any CodingKey] { [] }
        func encodeNil() {}
        func encode<T: Encodable>(_ value: T) {}
    }
}
