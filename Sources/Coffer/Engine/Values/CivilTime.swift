#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A date's parts in the Gregorian calendar and UTC, exact to the microsecond.
///
/// Computed here, because `DateFormatter` uses the user's settings unless they are overridden, is
/// slow to make, and brings all of ICU with it.
struct CivilTime {
    var year = 1970
    var month = 1
    var day = 1
    var hour = 0
    var minute = 0
    var second = 0
    var microsecond = 0
    /// East of UTC, in minutes; 0 unless a text that was read gave one.
    var offset = 0

    init() {}

    /// Makes the parts of a date in UTC, rounded to the microsecond.
    ///
    /// - Throws: `.mismatch` for a year outside 0 to 9999, which does not have four digits.
    init(_ date: Date) throws(StoreError) {
        guard let total = Int(exactly: (date.timeIntervalSince1970 * 1e6).rounded()) else {
            throw Self.outOfRange
        }
        let days = Self.quotient(total, 86_400_000_000)
        var rest = total - days * 86_400_000_000
        func take(_ unit: Int) -> Int {
            defer { rest %= unit }
            return rest / unit
        }
        hour = take(3_600_000_000)
        minute = take(60_000_000)
        second = take(1_000_000)
        microsecond = rest
        // See https://howardhinnant.github.io/date_algorithms.html#civil_from_days: a year that
        // begins in March ends with its leap day.
        let shifted = days + 719_468
        let era = Self.quotient(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        guard 0...9999 ~= year else { throw Self.outOfRange }
    }

    /// The date; `nil` if there is no such day or time.
    var date: Date? {
        guard 1...12 ~= month, 1...dayCount ~= day, 0..<24 ~= hour, 0..<60 ~= minute,
            0..<60 ~= second
        else { return nil }
        // See https://howardhinnant.github.io/date_algorithms.html#days_from_civil.
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = Self.quotient(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        let seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second
        return Date(timeIntervalSince1970: Double(seconds) + Double(microsecond) / 1e6)
    }

    private var dayCount: Int {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let counts: [Int] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return counts[month - 1]
    }

    private static func quotient(_ number: Int, _ divisor: Int) -> Int {
        (number >= 0 ? number : number - divisor + 1) / divisor
    }

    private static let outOfRange = StoreError(
        .mismatch, "a date outside the years 0 to 9999 cannot be written as text")
}
