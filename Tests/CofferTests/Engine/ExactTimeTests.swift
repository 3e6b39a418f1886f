import Testing
import Workload

@testable import Coffer

@Suite struct ExactTimeTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (1, "1970-01-01T00:00:00.000001Z"),
            (-1, "1969-12-31T23:59:59.999999Z"), (-1_000_000, "1969-12-31T23:59:59Z"),
            (1_000_000_000_250_000, "2001-09-09T01:46:40.250000Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
            (-62_167_219_200_000_000, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)])
    func `a time has a text that gives the same microsecond back`(time: Int64, text: String) {
        #expect(ExactTime.text(of: time) == text)
        #expect(ExactTime.microseconds(of: text) == time)
    }

    @Test func `microseconds of random times survive, in all years that have a text`() {
        var generator = SeededGenerator(for: #function)
        for _ in 0..<2000 {
            let time = Int64.random(in: -62_167_219_200_000_000...ExactTime.last, using: &generator)
            #expect(ExactTime.text(of: time).flatMap(ExactTime.microseconds) == time)
        }
    }

    @Test func `a time before year 0 or after 9999 has no text`() {
        for time in [.min, .max, ExactTime.last + 1, -62_167_219_200_000_001] {
            #expect(ExactTime.text(of: time) == nil)
        }
    }

    @Test func `an offset counts, and a text without one is refused`() {
        let noon = ExactTime.microseconds(of: "2026-12-24T12:00:00Z")
        #expect(noon != nil)
        for text in [
            "2026-12-24T13:00:00+01:00", "2026-12-24T13:00:00+0100", "2026-12-24 12:00:00Z",
            "2026-12-24T06:30:00-05:30", "2026-12-24T12:00:00.0Z",
        ] { #expect(ExactTime.microseconds(of: text) == noon, "\(text)") }
        for text in [
            "", "2026", "2026-12-24", "2026-12-24T12:00:00", "2026-12-24T12:00Z",
            "2026-13-24T12:00:00Z", "2026-12-24T12:00:60Z", "2026-12-24T12:00:00.0000001Z",
            "2026-12-24T12:00:00.Z", "2026-12-24T12:00:00+1:00", "2026-12-24T12:00:00Z.",
        ] { #expect(ExactTime.microseconds(of: text) == nil, "\(text)") }
    }
}
