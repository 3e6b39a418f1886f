import Foundation

/// The date in a header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7>
enum HTTPDate {
    /// The user's language and calendar do not matter.
    private static let formatter: DateFormatter = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.calendar = Calendar(identifier: .gregorian)
        formatter.timeZone = .gmt
        formatter.isLenient = false
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter
    }()

    static func date(_ text: String?) -> Date? {
        text.flatMap(formatter.date(from:))
    }
}
