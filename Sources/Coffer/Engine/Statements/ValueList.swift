import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Passes any number of values as one argument of a statement. SQLCipher 3 takes 999 arguments,
/// and a text would be compiled again for each number of them.
///
/// `coffer_value(list, index)` returns one of them. It checks the list at every access, because SQL
/// may call it with anything. So does `KeyTable`, which gives them as rows, in half the time. Where
/// an object of the file hides that table, a recursive query counts the index.
enum ValueList {
    /// A query of one column, with a row for each value, in order. There must be at least one
    /// value: otherwise the query fails when it runs.
    static func select(_ values: [Value]) -> SQL { select(values, isNumbered: false) }

    /// The same with two columns: `coffer_number`, counted from 0, and `coffer_value`.
    static func selectNumbered(_ values: [Value]) -> SQL { select(values, isNumbered: true) }

    private static func select(_ values: [Value], isNumbered: Bool) -> SQL {
        var sql = SQL(
            text: recursive(isNumbered),
            arguments: [.integer(Int64(values.count)), .blob(pack(values))])
        sql.lists = [ListPlace(offset: 0, isNumbered: isNumbered)]
        return sql
    }

    static let function = "coffer_value"

    private static func recursive(_ isNumbered: Bool) -> String {
        "WITH RECURSIVE coffer_list(i) AS "
            + "(SELECT 0 UNION ALL SELECT i + 1 FROM coffer_list WHERE i + 1 < ?) "
            + "SELECT \(isNumbered ? "i AS coffer_number, " : "")\(function)(?, i) AS coffer_value "
            + "FROM coffer_list"
    }

    /// The same rows. The sign takes the column's affinity away, as a function's result has none:
    /// <https://www.sqlite.org/datatype3.html#affinity_of_expressions>.
    private static func joined(_ isNumbered: Bool) -> String {
        "SELECT \(isNumbered ? "rowid AS coffer_number, " : "")+value AS coffer_value "
            + "FROM \(KeyTable.qualifiedName)(?, ?)"
    }

    /// The text of SQL with lists, as the connection reads them. Its arguments are the same.
    ///
    /// - Throws: Errors of reading the schema, and of registering `coffer_value`.
    fileprivate static func text(of sql: SQL, _ connection: Connection) throws(StoreError) -> String
    {
        guard try connection.readsKeyTable() else {
            try connection.current().knowLists()
            return sql.text
        }
        let bytes = sql.text.utf8
        var (text, rest) = ("", bytes.startIndex)
        for place in sql.lists {
            let start = bytes.index(bytes.startIndex, offsetBy: place.offset)
            let recursive = recursive(place.isNumbered).utf8
            assert(bytes[start...].starts(with: recursive))
            text += sql.text[rest..<start]
            text += joined(place.isNumbered)
            rest = bytes.index(start, offsetBy: recursive.count)
        }
        return text + sql.text[rest...]
    }

    /// The byte before the bytes of a value.
    fileprivate enum Kind: UInt8 {
        case null, integer, real, text, blob
    }

    /// The offsets of each value and of the end, as 64-bit integers; then the values, each as a
    /// byte of its `Kind` and its bytes.
    static func pack(_ values: [Value]) -> Data {
        var body = Data()
        var places = [Int64(values.count + 1) * 8]
        for value in values {
            append(value, to: &body)
            places.append(places[0] + Int64(body.count))
        }
        var packed = Data()
        packed.reserveCapacity(places.count * 8 + body.count)
        for place in places { append(place, to: &packed) }
        return packed + body
    }

    /// The most values that a packed list of so many bytes has: each has its place in 8 bytes, and
    /// so has the end.
    static func maximumCount(byteCount: Int64) -> Int64 { byteCount / 8 - 1 }

    private static func append(_ value: Value, to body: inout Data) {
        switch value {
        case .null: body.append(Kind.null.rawValue)
        case .integer(let integer):
            body.append(Kind.integer.rawValue)
            append(integer, to: &body)
        case .real(let real):
            body.append(Kind.real.rawValue)
            append(Int64(bitPattern: real.bitPattern), to: &body)
        case .text(let text):
            body.append(Kind.text.rawValue)
            body.append(contentsOf: text.utf8)
        case .blob(let bytes):
            body.append(Kind.blob.rawValue)
            body.append(bytes)
        }
    }

    private static func append(_ integer: Int64, to body: inout Data) {
        withUnsafeBytes(of: integer.littleEndian) { body.append(contentsOf: $0) }
    }
}

/// A query of `ValueList` in the text of SQL.
struct ListPlace: Sendable {
    /// Where it begins, in bytes of UTF-8.
    private(set) var offset: Int
    /// Whether it has the numbers of the values too.
    let isNumbered: Bool

    func moved(by byteCount: Int) -> ListPlace {
        var moved = self
        moved.offset += byteCount
        return moved
    }
}

extension SQL {
    /// The text to compile on a connection.
    ///
    /// - Throws: Errors of reading the schema, and of registering what the text calls.
    @inline(__always)
    func text(on connection: Connection) throws(StoreError) -> String {
        lists.isEmpty ? text : try ValueList.text(of: self, connection)
    }
}

extension Handle {
    /// Registers `coffer_value` at the first call. Throws the engine's error if that fails.
    func knowLists() throws(StoreError) {
        try registerOnce(ValueList.self) { () throws(StoreError) in
            let code = sqlite3_create_function_v2(
                db, ValueList.function, 2, FunctionOptions.deterministic.flags, nil, giveValue,
                nil, nil, nil)
            try requireRegistered(code)
        }
    }
}

private func giveValue(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let arguments, count == 2 else { return }
    ValueList.give(arguments[0], sqlite3_value_int64(arguments[1]), context)
}

extension ValueList {
    /// Returns a value of a packed list to SQLite. Bytes that are not such a list, or that end
    /// before the value, give SQLite an error.
    static func give(_ packed: OpaquePointer?, _ index: Int64, _ context: OpaquePointer) {
        let start = sqlite3_value_blob(packed)
        let byteCount = Int(sqlite3_value_bytes(packed))
        // "out of memory" has no other sign: <https://www.sqlite.org/c3ref/value_blob.html>
        guard start != nil || byteCount == 0 else { return sqlite3_result_error_nomem(context) }
        let list = UnsafeRawBufferPointer(start: start, count: byteCount)
        guard let bytes = value(in: list, at: index), let kind = Kind(rawValue: bytes[0])
        else { return sqlite3_result_error(context, "the argument is not a list of values", -1) }
        giveResult(UnsafeRawBufferPointer(rebasing: bytes[1...]), kind, context)
    }
}

/// The kind and the bytes of a value; `nil` unless the list holds all of it.
private func value(in list: UnsafeRawBufferPointer, at index: Int64) -> UnsafeRawBufferPointer? {
    func place(_ index: Int64) -> Int? {
        guard index >= 0, index < Int64(list.count / 8) else { return nil }
        let raw = list.loadUnaligned(fromByteOffset: Int(index) * 8, as: Int64.self)
        return Int(Int64(littleEndian: raw))
    }
    guard index >= 0, index < Int64(list.count), let start = place(index),
        let end = place(index + 1), start >= 0, start < end, end <= list.count
    else { return nil }
    return UnsafeRawBufferPointer(rebasing: list[start..<end])
}

private func giveResult(
    _ bytes: UnsafeRawBufferPointer, _ kind: ValueList.Kind, _ context: OpaquePointer
) {
    func number() -> Int64? {
        bytes.count == 8 ? Int64(littleEndian: bytes.loadUnaligned(as: Int64.self)) : nil
    }
    switch kind {
    case .null: sqlite3_result_null(context)
    case .integer:
        guard let integer = number() else { break }
        return sqlite3_result_int64(context, integer)
    case .real:
        guard let bits = number() else { break }
        return sqlite3_result_double(context, Double(bitPattern: UInt64(bitPattern: bits)))
    case .text:
        return sqlite3_result_text64(
            context, bytes.bindMemory(to: CChar.self).baseAddress, UInt64(bytes.count),
            coffer_transient(), UInt8(SQLITE_UTF8))
    case .blob:
        guard bytes.isEmpty else {
            return sqlite3_result_blob64(
                context, bytes.baseAddress, UInt64(bytes.count), coffer_transient())
        }
        return sqlite3_result_zeroblob(context, 0)
    }
    if kind != .null { sqlite3_result_error(context, "the argument is not a list of values", -1) }
}
