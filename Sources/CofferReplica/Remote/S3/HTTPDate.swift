#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The date in a header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7>
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// - Returns: `nil` for another form, and for a date that there is not. The name of the day is
    ///   not compared.
    static func date(_ text: String?) -> Date? {
        let form =
            #/
            [A-Z][a-z]{2}, \x20 ([0-9]{2}) \x20 ([A-Z][a-z]{2}) \x20 ([0-9]{4}) \x20
            ([0-9]{2}):([0-9]{2}):([0-9]{2}) \x20 GMT
            /#
        guard let match = text?.wholeMatch(of: form),
            let month = months.firstIndex(of: String(match.2)),
            let hour = Int(match.4), hour < 24, let minute = Int(match.5), minute < 60,
            let second = Int(match.6), second < 60
        else { return nil }
        // The user's calendar and time zone do not matter.
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let day = Int(match.1)
        let date = calendar.date(
            from: DateComponents(
                year: Int(match.3), month: month + 1, day: day, hour: hour, minute: minute,
                second: second))
        // A 31st of February would be a day of March.
        return date.flatMap { calendar.component(.day, from: $0) == day ? $0 : nil }
    }
}
