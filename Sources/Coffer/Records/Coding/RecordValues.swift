/// The values of some of a record's columns, in the order of its plan.
///
/// They are exactly the values that a row would hold, but no table is needed. Dates without a
/// `ColumnEncoding` count from 2001.
enum RecordValues {
    /// - Parameter positions: Which columns; the others are NULL.
    static func of<R: Record>(_ record: R, at positions: [Int]) throws(StoreError) -> [Value] {
        let plan = try RecordPlan.of(R.self)
        let encoder = ColumnValueEncoder(plan, positions)
        do {
            try record.encode(to: encoder)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(
                .mismatch, "\(plan.typeName) could not be encoded", table: plan.table, cause: error)
        }
        return plan.columns.map { encoder.state.values[$0.name] ?? .null }
    }
}

/// Stores the values that a record encodes, by column.
private final class ColumnValueEncoder: Encoder {
    /// Shared by its containers.
    final class State {
        let table: String
        let columns: [String: RecordColumn]
        var values: [String: Value] = [:]

        init(_ plan: RecordPlan, _ positions: [Int]) {
            table = plan.table
            let columns = positions.map { plan.columns[$0] }
            self.columns = Dictionary(
                columns.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    let state: State
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ plan: RecordPlan, _ positions: [Int]) {
        state = State(plan, positions)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(state: state))
    }

    // Nothing is stored: a row has columns only, and `RowEncoder` refuses such a record.
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
            guard let column = state.columns[key.stringValue] else { return }
            do {
                state.values[column.name] = try column.stored(
                    value, by: ScalarEncoder(), countingFrom2001: true)
            } catch let error as StoreError {
                throw error.with(table: state.table, column: column.name)
            }
        }

        // Needs no value, because no query sorts by a column that is encoded piece by piece.
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
