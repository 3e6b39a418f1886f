#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Converts between microseconds since 1970 and ISO 8601, without a loss in either direction.
///
/// A `Date` far from 2001 does not keep its microseconds: it counts seconds as a `Double`.
package enum ExactTime {
    /// The last microsecond of the year 9999, the last one that has a text.
    package static let last: Int64 = 253_402_300_799_999_999

    /// A text such as `2026-12-24T18:00:00Z`; with six digits for a fraction of a second.
    ///
    /// - Parameter microseconds: Microseconds since 1970 in UTC.
    /// - Returns: `nil` outside the years 0 to 9999.
    package static func text(of microseconds: Int64) -> String? {
        var seconds = microseconds / 1_000_000
        var rest = Int(microseconds % 1_000_000)
        if rest < 0 { (seconds, rest) = (seconds - 1, rest + 1_000_000) }
        // A Double counts whole seconds of all these years.
        guard var time = try? CivilTime(Date(timeIntervalSince1970: Double(seconds))),
            let pattern = try? DatePattern(
                rest == 0 ? "yyyy-MM-dd'T'HH:mm:ss'Z'" : "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
        else { return nil }
        time.microsecond = rest
        return pattern.text(of: time)
    }

    /// Microseconds since 1970 of a text with a date, a time, and `Z` or a UTC offset.
    ///
    /// - Returns: `nil` for a text without one of them, with more than six digits of a fraction, or
    ///   with a day or time that does not exist.
    package static func microseconds(of text: String) -> Int64? {
        var rest = text.utf8[...]
        // The common form may lack the offset, which would leave the time zone open.
        guard rest.takeDateAndTime() else { return nil }
        if rest.take(0x2e) {
            let digits = rest.prefix { 0x30...0x39 ~= $0 }
            guard 1...6 ~= digits.count else { return nil }
            rest = rest.dropFirst(digits.count)
        }
        guard rest.takeOffset() != nil, rest.isEmpty, var time = CivilTime(iso8601: text) else {
            return nil
        }
        let fraction = time.microsecond
        time.microsecond = 0
        guard let seconds = time.date.flatMap({ Int64(exactly: $0.timeIntervalSince1970) }) else {
            return nil
        }
        return seconds * 1_000_000 + Int64(fraction)
    }
}

extension Substring.UTF8View {
    /// Removes a text such as `2026-12-24T18:00:00` from the beginning, and returns whether it was
    /// there. Part of another text may then be removed.
    fileprivate mutating func takeDateAndTime() -> Bool {
        guard takeNumber(4) != nil, take(0x2d), takeNumber(2) != nil, take(0x2d),
            takeNumber(2) != nil, take(0x54, 0x20)
        else { return false }
        guard takeNumber(2) != nil, take(0x3a), takeNumber(2) != nil, take(0x3a) else {
            return false
        }
        return takeNumber(2) != nil
    }
}
