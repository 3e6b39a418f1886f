/// The keyed container of a record of which some columns are wanted: drops the values of the
/// others, so that nothing is made of them and nothing can be wrong with them.
///
/// A container of its own, so that writing whole records asks for nothing.
struct ChosenKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let all: RowKeyedEncoding<Key>

    var codingPath: [any CodingKey] { [] }

    func encodeNil(forKey key: Key) throws {
        if all.isChosen(key) { try all.encodeNil(forKey: key) }
    }

    func encode(_ value: Bool, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: String, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Double, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Float, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Int, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Int8, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Int16, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Int32, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: Int64, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: UInt, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: UInt8, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: UInt16, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: UInt32, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode(_ value: UInt64, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        if all.isChosen(key) { try all.encode(value, forKey: key) }
    }

    // What is encoded piece by piece has nowhere to go if its column is not chosen.

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        all.nestedContainer(keyedBy: type, forKey: key)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        all.nestedUnkeyedContainer(forKey: key)
    }

    func superEncoder() -> any Encoder { all.superEncoder() }
    func superEncoder(forKey key: Key) -> any Encoder { all.superEncoder(forKey: key) }
}
