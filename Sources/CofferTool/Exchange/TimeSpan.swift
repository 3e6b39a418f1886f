import ArgumentParser

/// A length of time as the command line says it: `90s`, `15m`, `2h`, `7d`.
struct TimeSpan: Equatable, CustomStringConvertible {
    let description: String
    let microseconds: Int64

    /// - Throws: `ValidationError` for any other text, and beyond 64 bits.
    init(_ text: String) throws {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let digits = text.dropLast()
        guard let unit = text.last.flatMap({ units[$0] }), !digits.isEmpty,
            digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 })
        else {
            throw ValidationError("Write a whole number and a unit, such as 90s, 15m, 2h or 7d.")
        }
        guard let number = Int64(digits),
            case let (count, isBeyond) =
                number.multipliedReportingOverflow(by: unit * 1_000_000), !isBeyond
        else { throw ValidationError("That is more than 292,000 years.") }
        description = text
        microseconds = count
    }

    var seconds: Double { Double(microseconds) / 1_000_000 }
}
