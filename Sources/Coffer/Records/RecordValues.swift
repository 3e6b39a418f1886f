/// The columns' values of one record, in the order of its plan.
///
/// A statement without a table takes them, so that they are exactly what a row would hold.
enum RecordValues {
    static func of<R: Record>(_ record: R) throws(StoreError) -> [Value] {
        let plan = try RecordPlan.of(R.self)
        let encoder = ColumnValueEncoder()
        do {
            try record.encode(to: encoder)
        } catch {
            throw StoreError(
                .mismatch, "\(plan.typeName) could not be encoded", table: plan.table, cause: error)
        }
        var values: [Value] = []
        for column in plan.columns {
            values.append(try column.stored(encoder.state.values[column.name] ?? .null))
        }
        return values
    }
}

/// Keeps what a record encodes, by column.
private final class ColumnValueEncoder: Encoder {
    /// Shared by its containers.
    final class State {
        var values: [String: Value] = [:]
    }

    let state = State()
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(state: state))
    }

    // A record is not coded so, or its plan was not made.
    func unkeyedContainer() -> any UnkeyedEncodingContainer { InertEncoder().unkeyedContainer() }
    func singleValueContainer() -> any SingleValueEncodingContainer {
        InertEncoder().singleValueContainer()
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let state: State
        var codingPath: [any CodingKey] { [] }

        func encodeNil(forKey key: Key) { state.values[key.stringValue] = .null }

        // The generic method meets all requirements of the protocol: nothing here is hot.
        func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
            state.values[key.stringValue] = try ScalarEncoder().encode(value: value)
        }

        // Nothing orders by a column that is encoded piece by piece.
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            InertEncoder().container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            InertEncoder().unkeyedContainer()
        }
        func superEncoder() -> any Encoder { InertEncoder() }
        func superEncoder(forKey key: Key) -> any Encoder { InertEncoder() }
    }
}
