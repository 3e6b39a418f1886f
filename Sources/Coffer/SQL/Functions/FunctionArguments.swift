import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The arguments of one call of a registered function.
public struct FunctionArguments: Sendable {
    /// The arguments, in order, each with its own copy of the value.
    public let values: [Value]

    init(_ count: Int32, _ raw: UnsafeMutablePointer<OpaquePointer?>?) throws(StoreError) {
        var values: [Value] = []
        values.reserveCapacity(Int(count))
        for index in 0..<Int(count) { values.append(try Self.value(raw?[index])) }
        self.values = values
    }

    /// Number of arguments.
    public var count: Int { values.count }

    /// The argument by position; `nil` if there is none.
    public subscript(index: Int) -> Value? {
        values.indices.contains(index) ? values[index] : nil
    }

    /// The argument by position, as a Swift type; an optional type takes NULL.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such argument; `.mismatch` if it does not
    ///   fit the type, or if `T` is `Date` and the argument a number, for which there is
    ///   `date(_:as:)`. If the function's body does not catch it, it becomes the statement's error.
    public func get<T: ValueConvertible>(_ index: Int, as type: T.Type = T.self) throws -> T {
        let value = try argument(index)
        if T.self == Date.self || T.self == Date?.self, value.seconds != nil {
            throw StoreError(
                .mismatch, "a number given to a function does not tell from when it counts",
                hint: "Say it: arguments.date(\(index), as: .secondsSince2001), or .unixSeconds.")
        }
        return try T(value)
    }

    /// The argument as a date in the given encoding; `nil` for NULL.
    ///
    /// An argument comes without its column, so that only the function can say how its dates are
    /// stored:
    ///
    /// ```swift
    /// try connection.register(function: "year", argumentCount: 1) { arguments in
    ///     let date = try arguments.date(0, as: .secondsSince2001)
    ///     return date.map { .integer(Int64(calendar.component(.year, from: $0))) } ?? .null
    /// }
    /// ```
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such argument, `.mismatch` if it is not a
    ///   date in that encoding.
    public func date(_ index: Int, as encoding: DateEncoding) throws -> Date? {
        let value = try argument(index)
        return value == .null ? nil : try encoding.decode(value)
    }

    private func argument(_ index: Int) throws(StoreError) -> Value {
        guard let value = self[index] else {
            throw StoreError(.notFound, "the function was called without argument \(index)")
        }
        return value
    }

    private static func value(_ raw: OpaquePointer?) throws(StoreError) -> Value {
        switch sqlite3_value_type(raw) {
        case SQLITE_INTEGER: return .integer(sqlite3_value_int64(raw))
        case SQLITE_FLOAT: return .real(sqlite3_value_double(raw))
        case SQLITE_TEXT:
            guard let start = sqlite3_value_text(raw) else { throw outOfMemory }
            let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(raw)))
            guard let text = String(exactly: bytes) else {
                throw StoreError(.mismatch, "a text given to a function is not UTF-8")
            }
            return .text(text)
        case SQLITE_BLOB:
            guard let start = sqlite3_value_blob(raw) else {
                guard sqlite3_value_bytes(raw) == 0 else { throw outOfMemory }
                return .blob(.init())
            }
            return .blob(.init(bytes: start, count: Int(sqlite3_value_bytes(raw))))
        default: return .null
        }
    }

    private static let outOfMemory = StoreError(.io, "out of memory")
}

/// An error that lets a function choose the message and result code of the statement's error.
///
/// Any other error becomes the statement's `cause`; only a `StoreError` passes on its message.
public struct FunctionError: Error, Sendable {
    /// The statement's message.
    public let message: String
    /// SQLite's result code; `SQLITE_ERROR` (1) by default.
    public let resultCode: Int32

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - message: What went wrong. It may be logged: put no secret into it.
    ///   - resultCode: A primary result code of SQLite.
    public init(_ message: String, resultCode: Int32 = SQLITE_ERROR) {
        self.message = message
        self.resultCode = resultCode
    }

    /// The result is longer than the engine allows: `SQLITE_TOOBIG`.
    public static let tooBig = FunctionError("string or blob too big", resultCode: SQLITE_TOOBIG)
    /// There is no memory for the result: `SQLITE_NOMEM`.
    public static let noMemory = FunctionError("out of memory", resultCode: SQLITE_NOMEM)
}
