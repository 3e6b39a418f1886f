#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Row {
    /// Decodes a `Decodable` value from the row, each property from the column of its name.
    ///
    /// ```swift
    /// struct Total: Decodable { let author: String; let count: Int }
    /// let totals = try connection.rows("SELECT author, count(*) AS count …", as: Total.self)
    /// ```
    ///
    /// Values are exact, as with `get(_:as:)`. A NULL or missing column counts as a missing key.
    /// A property that needs more than one value (a list, another struct) is read from JSON text.
    /// A type of a single value, such as `Int`, is read from the first column.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - dates: How dates are written. `nil` for `unixSeconds`, or `secondsSince2001` where the
    ///     column's declared type says so.
    /// - Throws: `StoreError` `.mismatch` naming the column that is missing or does not fit. An
    ///   error of the type's `init(from:)` becomes the `cause`.
    /// - Complexity: O(*columns*) for each property.
    public func decode<T: Decodable>(
        _ type: T.Type = T.self, dates: DateEncoding? = nil
    ) throws -> T {
        do {
            return try RowValueDecoder(row: self, dates: dates).decode(type)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.mismatch, "a row could not be decoded", cause: error)
        }
    }
}

/// The whole row, for types that ask for values by name.
private struct RowValueDecoder: Decoder {
    let row: Row
    let dates: DateEncoding?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The row as a value of a type. A `ValueConvertible` type is read from the first column; every
    /// other type chooses its container. Throws `.mismatch` without columns, and as the type does.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        type is any ValueConvertible.Type ? try first().decode(type) : try T(from: self)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(KeyedRow(row: row, dates: dates))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw StoreError(.mismatch, "a row has named columns and cannot be decoded as a list")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { try first() }

    private func first() throws(StoreError) -> ColumnDecoder {
        guard let value = row[0] else { throw StoreError(.mismatch, "the row has no columns") }
        return ColumnDecoder(row: row, index: 0, value: value, dates: dates)
    }
}

private struct KeyedRow<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let row: Row
    let dates: DateEncoding?

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { row.columnNames.compactMap { Key(stringValue: $0) }.filter(contains) }

    private func value(_ key: Key) -> Value { row[key.stringValue] ?? .null }

    func contains(_ key: Key) -> Bool { value(key) != .null }
    func decodeNil(forKey key: Key) -> Bool { value(key) == .null }

    // The generic method meets the requirements for all types.
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        guard let index = row.columnIndex(of: key.stringValue), let value = row[index] else {
            throw StoreError(
                .mismatch, "the result has no column for a property that is not optional",
                hint: "Select the column, or make the property optional.", column: key.stringValue)
        }
        do {
            return try ColumnDecoder(row: row, index: index, value: value, dates: dates)
                .decode(type)
        } catch let error as StoreError {
            throw StoreError(
                error.code, error.message, hint: error.hint, column: key.stringValue,
                cause: error.cause)
        } catch {
            throw StoreError(
                .mismatch, "the stored value could not be decoded", column: key.stringValue,
                cause: error)
        }
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw refuse(key) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw refuse(key)
    }

    func superDecoder() throws -> any Decoder {
        throw StoreError(.mismatch, "a class and its superclass cannot be read from one row")
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { throw refuse(key) }

    private func refuse(_ key: Key) -> StoreError {
        StoreError(
            .mismatch, "a nested container cannot be read from a column",
            hint: "Make it a Decodable type of its own, which is read from JSON text.",
            column: key.stringValue)
    }
}

/// One value.
private struct ColumnDecoder: Decoder, SingleValueDecodingContainer {
    let row: Row
    let index: Int
    let value: Value
    let dates: DateEncoding?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw WantsContainer()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw WantsContainer() }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value == .null }

    // The generic method meets the requirements for all types.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if type == Date.self, let date = try date() as? T { return date }
        if let known = type as? any ValueConvertible.Type {
            guard let made = try known.init(value) as? T else {
                throw StoreError.mismatch(value, type)
            }
            return made
        }
        do {
            return try T(from: self)
        } catch is WantsContainer {
            guard case .text(let json) = value else { throw StoreError.mismatch(value, type) }
            return try JSONText.decode(type, from: Data(json.utf8))
        }
    }

    /// Thrown and caught in this type: a single value is not enough for the type to decode.
    private func date() throws(StoreError) -> Date {
        if let dates { return try dates.decode(value) }
        guard let seconds = value.seconds, let origin = row.columns.dates?[index] else {
            return try DateEncoding.unixSeconds.decode(value)
        }
        return try origin.date(seconds, column: row.columnNames[index])
    }

    private struct WantsContainer: Error {}
}
