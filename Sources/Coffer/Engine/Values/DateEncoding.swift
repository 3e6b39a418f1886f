#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a date is written as an SQL value, and read back.
///
/// ```swift
/// try connection.execute("INSERT INTO log VALUES (\(Date(), as: .iso8601))")
/// let when = try row.date("time", as: .iso8601)
/// ```
///
/// All text is UTC, whatever the user's settings. Reading depends on the storage class: a number is
/// seconds since 1970 even if the encoding writes text, unless it is `unixMilliseconds` or
/// `secondsSince2001`.
public struct DateEncoding: Sendable {
    private enum Form {
        case seconds
        case secondsSince2001
        case milliseconds
        /// Written by the pattern, read in any form of ISO 8601.
        case iso8601(DatePattern)
        case pattern(DatePattern)
        case unusable(StoreError)
    }

    private let form: Form

    /// Seconds since 1970 as a real, which SQL's own date functions read. Of three dates with
    /// fractions, about two come back changed in the last bit.
    public static let unixSeconds = DateEncoding(form: .seconds)

    /// Seconds since 1 January 2001 as a real, which is what a `Date` holds: every date comes back
    /// to the bit. Coffer uses it for new columns of records, with the declared type
    /// `REAL_SINCE_2001`. In SQL, `datetime(time + 978307200, 'unixepoch')` is the date.
    public static let secondsSince2001 = DateEncoding(form: .secondsSince2001)

    /// Milliseconds since 1970 as an integer, as JavaScript and Java count.
    public static let unixMilliseconds = DateEncoding(form: .milliseconds)

    /// Text such as `2013-02-20T12:00:00.000Z`, to the millisecond. Other forms of ISO 8601 are
    /// read as well: without milliseconds, with a UTC offset, the day only.
    public static let iso8601 = DateEncoding(isoPattern: "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")

    /// As FMDB without a formatter: `unixSeconds`. If it had one, use `format(_:)` of its pattern.
    public static let fmdb = unixSeconds

    /// As GRDB: text such as `2013-02-20 12:00:00.000`, to the millisecond. Other forms of ISO
    /// 8601 are read as well.
    public static let grdb = DateEncoding(isoPattern: "yyyy-MM-dd HH:mm:ss.SSS")

    /// Text by a pattern, like FMDB's `storeableDateFormat`, but always in UTC and in digits.
    ///
    /// The pattern may have `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, `S` to `SSSSSS`, `Z` (`+0000`),
    /// text in single quotes, and ASCII characters that are not letters. Fields that it leaves
    /// out, such as the milliseconds, are lost. Any other pattern is `.unsupported` when used.
    public static func format(_ pattern: String) -> DateEncoding {
        do throws(StoreError) {
            return DateEncoding(form: .pattern(try DatePattern(pattern)))
        } catch {
            return DateEncoding(form: .unusable(error))
        }
    }

    /// The storage class of the values that it writes.
    var storage: Storage {
        switch form {
        case .seconds, .secondsSince2001: .real
        case .milliseconds: .integer
        case .iso8601, .pattern, .unusable: .text
        }
    }

    /// Whether SQLite takes none of the values that it writes for a number. A text that begins with
    /// a year, a hyphen and a month is not one.
    var isNeverNumber: Bool {
        if case .iso8601 = form { true } else { false }
    }

    /// Whether the values that it writes sort in order of time.
    var isOrdered: Bool {
        switch form {
        case .seconds, .secondsSince2001, .milliseconds, .iso8601: true
        case .pattern, .unusable: false
        }
    }

    /// Whether it is `secondsSince2001`.
    var countsFrom2001: Bool {
        if case .secondsSince2001 = form { true } else { false }
    }

    /// Whether both write each date as the same value.
    func isSame(as other: DateEncoding) -> Bool {
        switch (form, other.form) {
        case (.seconds, .seconds), (.secondsSince2001, .secondsSince2001),
            (.milliseconds, .milliseconds):
            true
        case (.iso8601(let pattern), .iso8601(let others)),
            (.pattern(let pattern), .pattern(let others)):
            pattern == others
        default: false
        }
    }

    private init(form: Form) {
        self.form = form
    }

    private init(isoPattern: String) {
        do throws(StoreError) {
            form = .iso8601(try DatePattern(isoPattern))
        } catch {
            form = .unusable(error)
        }
    }

    /// The SQL value of a date.
    ///
    /// - Throws: `StoreError` `.mismatch` for a date that has no such form, such as a text of a
    ///   year outside 0 to 9999, or milliseconds beyond 64 bits. `.unsupported` for a pattern that
    ///   cannot be used.
    public func value(of date: Date) throws -> Value {
        try encode(date)
    }

    func encode(_ date: Date) throws(StoreError) -> Value {
        switch form {
        case .seconds: return try date.asValue()
        case .secondsSince2001: return try date.timeIntervalSinceReferenceDate.asValue()
        case .milliseconds:
            guard let count = Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded()) else {
                throw StoreError(.mismatch, "the date does not fit milliseconds in 64 bits")
            }
            return .integer(count)
        case .iso8601(let pattern), .pattern(let pattern):
            return .text(pattern.text(of: try CivilTime(date)))
        case .unusable(let error): throw error
        }
    }

    /// The date that an SQL value stands for.
    ///
    /// - Throws: `StoreError` `.mismatch` for NULL, a blob, or a text that is not a date in this
    ///   form; `.unsupported` for a pattern that cannot be used.
    public func date(of value: Value) throws -> Date {
        try decode(value)
    }

    func decode(_ value: Value) throws(StoreError) -> Date {
        if case .unusable(let error) = form { throw error }
        switch value {
        case .integer(let number): return date(ofNumber: Double(number))
        case .real(let number): return date(ofNumber: number)
        case .text(let text):
            guard let date = date(ofText: text) else {
                throw StoreError(.mismatch, "a text is not a date in the requested format")
            }
            return date
        case .null, .blob: throw .mismatch(value, Date.self)
        }
    }

    private func date(ofNumber number: Double) -> Date {
        switch form {
        case .milliseconds: Date(timeIntervalSince1970: number / 1000)
        case .secondsSince2001: Date(timeIntervalSinceReferenceDate: number)
        default: Date(timeIntervalSince1970: number)
        }
    }

    /// The date that a text stands for; `nil` if it has another form. For seconds and milliseconds
    /// the text is a number, because a column of type TEXT makes a text of a number.
    private func date(ofText text: String) -> Date? {
        switch form {
        case .seconds, .secondsSince2001, .milliseconds:
            return Double(text).flatMap { $0.isFinite ? date(ofNumber: $0) : nil }
        case .iso8601: return CivilTime(iso8601: text)?.date
        case .pattern(let pattern): return pattern.time(of: text)?.date
        case .unusable: return nil
        }
    }
}

extension Row {
    /// The date in a column by name, read by the given encoding; `nil` for NULL.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column, `.mismatch` for a value that
    ///   is not a date in this form, `.unsupported` for a pattern that cannot be used.
    public func date(_ name: String, as encoding: DateEncoding) throws -> Date? {
        let value = try read(name, as: Value.self)
        return value == .null ? nil : try encoding.decode(value)
    }

    /// The date in a column by position, counted from 0, read by the given encoding; `nil` for
    /// NULL.
    ///
    /// - Throws: As `date(_:as:)` by name.
    public func date(_ index: Int, as encoding: DateEncoding) throws -> Date? {
        let value = try get(index, as: Value.self)
        return value == .null ? nil : try encoding.decode(value)
    }
}
