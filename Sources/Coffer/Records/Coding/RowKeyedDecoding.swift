#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keyed container of a row: reads each value from the column of its key.
///
/// A column that is NULL, or that a SELECT leaves out, counts as a missing key.
struct RowKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// See `KeyMap` for how long this memory lives.
    let keys: UnsafeMutablePointer<KeyMap>

    var codingPath: [any CodingKey] { [] }

    /// The state that the map was made with: see `RowDecoder.makeContainer`.
    private var row: UnsafeMutablePointer<RowState> {
        @inline(__always) get { keys.pointee.state.assumingMemoryBound(to: RowState.self) }
    }

    var allKeys: [Key] {
        row.pointee.decoder.allNames().compactMap { Key(stringValue: $0) }.filter { contains($0) }
    }

    @inline(__always)
    private func columnOrAbsent(_ key: Key) -> Int32 {
        keys.pointee.entry(key) { row.pointee.decoder.column($0) }
    }

    @inline(__always)
    private func column(_ key: Key) throws -> Int32 {
        let column = columnOrAbsent(key)
        guard column >= 0 else { throw missing(key) }
        return column
    }

    /// The column of a key, if it holds a value other than NULL.
    @inline(__always)
    private func present(_ key: Key) -> Int32? {
        let column = columnOrAbsent(key)
        return column < 0 || row.pointee.isNull(column) ? nil : column
    }

    @inline(never)
    private func missing(_ key: Key) -> any Error {
        row.pointee.decoder.missing(key.stringValue)
    }

    @inline(__always)
    private func integer<T: FixedWidthInteger>(_ type: T.Type, _ column: Int32) throws -> T {
        try row.pointee.integer(row.pointee.raw(column), column, as: type)
    }

    func contains(_ key: Key) -> Bool { present(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { row.pointee.isNull(try column(key)) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        let column = try column(key)
        return try row.pointee.bool(row.pointee.raw(column), column)
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        let column = try column(key)
        return try row.pointee.text(row.pointee.raw(column), column)
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        let column = try column(key)
        return try row.pointee.real(row.pointee.raw(column), column, for: type)
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        let column = try column(key)
        return try row.pointee.float(row.pointee.raw(column), column)
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try integer(type, try column(key))
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try integer(type, try column(key))
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try integer(type, try column(key))
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try integer(type, try column(key))
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try integer(type, try column(key))
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try integer(type, try column(key))
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try integer(type, try column(key))
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try integer(type, try column(key))
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try integer(type, try column(key))
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try integer(type, try column(key))
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try value(type, try column(key))
    }

    // Only frequent types: the standard library's defaults look the column up three times.

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map { try row.pointee.bool(row.pointee.raw($0), $0) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try present(key).map { try row.pointee.text(row.pointee.raw($0), $0) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try present(key).map { try row.pointee.real(row.pointee.raw($0), $0, for: type) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try integer(type, $0) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try integer(type, $0) }
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try present(key).map { try value(type, $0) }
    }

    @inline(__always)
    private func value<T: Decodable>(_ type: T.Type, _ column: Int32) throws -> T {
        // Safe, because the types are compared first and equal types have the same bits.
        if type == Date.self, !row.pointee.hasEncodings {
            return unsafeBitCast(try row.pointee.date(row.pointee.raw(column), column), to: type)
        }
        if type == Data.self {
            return unsafeBitCast(try row.pointee.data(row.pointee.raw(column), column), to: type)
        }
        if type == UUID.self, !row.pointee.hasEncodings {
            return unsafeBitCast(try row.pointee.uuid(row.pointee.raw(column), column), to: type)
        }
        return try row.pointee.decoder.decode(other: type, column)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try opened(key, as: JSONObject.self) { try $0.container(keyedBy: type) }
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try opened(key, as: JSONArray.self) { try $0.unkeyedContainer() }
    }

    func superDecoder() throws -> any Decoder {
        let decoder = row.pointee.decoder
        let column = decoder.column("super")
        guard column >= 0 else { throw decoder.missing("super") }
        return try decoder.opened(column, as: JSON.self) { $0 }
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try opened(key, as: JSON.self) { $0 }
    }

    private func opened<T>(
        _ key: Key, as type: Any.Type, _ body: (any Decoder) throws -> T
    ) throws -> T {
        try row.pointee.decoder.opened(try column(key), as: type, body)
    }
}

// Names for errors in a column that its type decodes piece by piece.

private enum JSON {}
private enum JSONObject {}
private enum JSONArray {}
