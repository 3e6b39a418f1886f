/// The keyed container for writing only some columns of a record, and for records with `Lazy`
/// properties. It drops the values of the other columns unencoded, so they cost nothing and cannot
/// fail. It notes each key of a `Lazy` property, because `nil` and a key that is never encoded
/// differ for them.
///
/// Separate from `RowKeyedEncoding`, so that writing whole records needs no check per key.
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

    func encodeIfPresent(_ value: String?, forKey key: Key) throws {
        guard all.isChosen(key), let value else { return }
        try all.encode(value, forKey: key)
    }
    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
        guard all.isChosen(key), let value else { return }
        try all.encode(value, forKey: key)
    }

    // Nested containers need no check: `RowEncoder.tree` discards them for an unchosen column.

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
