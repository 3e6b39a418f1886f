#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keyed container of a record: binds each value to the column of its key.
///
/// `encodeIfPresent` is the standard library's and encodes nothing for `nil`. `RowEncoder` binds
/// NULL to a column without a value.
struct RowKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    /// See `KeyMap` for how long this memory lives.
    let keys: UnsafeMutablePointer<KeyMap>

    var codingPath: [any CodingKey] { [] }

    /// The state that the map was made with: see `RowEncoder.makeContainer`.
    private var state: UnsafeMutablePointer<BindingState> {
        @inline(__always) get { keys.pointee.state.assumingMemoryBound(to: BindingState.self) }
    }

    @inline(__always)
    private func entry(_ key: Key) throws -> Int32 {
        let entry = keys.pointee.entry(key) { state.pointee.encoder.entry($0) }
        guard entry >= 0 else { throw unknown(key) }
        return entry
    }

    /// Whether the encoder writes the column of this key: `false` in an update of other properties.
    /// Notes that the record encodes it. An unknown key counts as chosen, so that encoding it
    /// throws.
    func isChosen(_ key: Key) -> Bool {
        let entry = keys.pointee.entry(key) { state.pointee.encoder.entry($0) }
        guard entry != KeyMap.unchosen else { return false }
        state.pointee.encoder.note(entry)
        return true
    }

    @inline(never)
    private func unknown(_ key: Key) -> any Error {
        state.pointee.encoder.unknownKey(key.stringValue)
    }

    @inline(__always)
    private func encode(unsigned value: some UnsignedInteger & FixedWidthInteger, _ key: Key) throws
    {
        let entry = try entry(key)
        guard let integer = Int64(exactly: value) else {
            throw state.pointee.encoder.failure(StoreError.outOfRange(Int64.self), entry >> 2)
        }
        try state.pointee.bind(integer, entry)
    }

    func encodeNil(forKey key: Key) throws { try state.pointee.bindNull(try entry(key)) }

    func encode(_ value: Bool, forKey key: Key) throws {
        try state.pointee.bind(value ? 1 : 0 as Int64, try entry(key))
    }
    func encode(_ value: String, forKey key: Key) throws {
        try state.pointee.bind(value, try entry(key))
    }
    func encode(_ value: Double, forKey key: Key) throws {
        try state.pointee.bind(value, try entry(key))
    }
    func encode(_ value: Float, forKey key: Key) throws {
        try state.pointee.bind(Double(value), try entry(key))
    }
    func encode(_ value: Int, forKey key: Key) throws {
        try state.pointee.bind(Int64(value), try entry(key))
    }
    func encode(_ value: Int8, forKey key: Key) throws {
        try state.pointee.bind(Int64(value), try entry(key))
    }
    func encode(_ value: Int16, forKey key: Key) throws {
        try state.pointee.bind(Int64(value), try entry(key))
    }
    func encode(_ value: Int32, forKey key: Key) throws {
        try state.pointee.bind(Int64(value), try entry(key))
    }
    func encode(_ value: Int64, forKey key: Key) throws {
        try state.pointee.bind(value, try entry(key))
    }
    func encode(_ value: UInt, forKey key: Key) throws { try encode(unsigned: value, key) }
    func encode(_ value: UInt8, forKey key: Key) throws { try encode(unsigned: value, key) }
    func encode(_ value: UInt16, forKey key: Key) throws { try encode(unsigned: value, key) }
    func encode(_ value: UInt32, forKey key: Key) throws { try encode(unsigned: value, key) }
    func encode(_ value: UInt64, forKey key: Key) throws { try encode(unsigned: value, key) }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        let entry = try entry(key)
        // Safe, because the types are compared first and equal types have the same bits. A column
        // with another storage has a `ColumnEncoding`.
        if T.self == Date.self, entry & 3 == Storage.real.rawValue {
            try state.pointee.bind(unsafeBitCast(value, to: Date.self), entry)
        } else if T.self == Data.self {
            try state.pointee.bind(unsafeBitCast(value, to: Data.self), entry)
        } else if T.self == UUID.self, entry & 3 == Storage.blob.rawValue {
            try withUnsafeBytes(of: unsafeBitCast(value, to: UUID.self).uuid) {
                try state.pointee.bindBlob($0, entry: entry)
            }
        } else {
            try state.pointee.encoder.encode(other: value, entry)
        }
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        tree(key.stringValue).keyed(by: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        tree(key.stringValue).unkeyed()
    }

    func superEncoder() -> any Encoder { tree("super").encoder }
    func superEncoder(forKey key: Key) -> any Encoder { tree(key.stringValue).encoder }

    private func tree(_ name: String) -> EncodedTree { state.pointee.encoder.tree(name) }
}

extension RowEncoder {
    /// Binds a value of a type that has no faster path.
    @inline(never)
    func encode<T: Encodable>(other value: T, _ entry: Int32) throws {
        let column = plan.columns[Int(entry >> 2)]
        do {
            if T.self == [UInt8].self {
                // Equal types have the same bits; a cast would convert other arrays too.
                try unsafeBitCast(value, to: [UInt8].self).withUnsafeBytes {
                    try state.pointee.bindBlob($0, entry: entry)
                }
            } else if column.coding == .json, column.type == T.self {
                try state.pointee.bindText(try JSONText.data(value), entry)
            } else {
                let isFrom2001 = state.pointee.countsFrom2001(entry >> 2)
                let stored = try column.stored(value, by: scalar, countingFrom2001: isFrom2001)
                try state.pointee.bind(stored, entry)
            }
        } catch {
            if refuseUnloaded(value, entry) { return }
            throw failure(error, entry >> 2)
        }
    }
}
