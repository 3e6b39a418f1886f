import Testing

@testable import CofferTool

/// What a person sees of a long run.
@Suite struct ProgressLineTests {
    private func line(
        _ done: Int, of total: Int?, _ unit: String = "bytes", after seconds: Int = 10,
        width: Int = 80
    ) -> String {
        ProgressLine(
            verb: "rekey", unit: unit, done: done, total: total, elapsed: .seconds(seconds)
        ).text(width: width)
    }

    @Test(arguments: [0, 1, 2, 10, 20, 30, 40, 60, 79, 80, 81, 200])
    func `a line is never as wide as the terminal`(width: Int) {
        for done in [0, 1, 999, 123_456_789_012, 999_999_999_999] {
            for total in [nil, 1_000_000_000_000, 1] {
                #expect(line(done, of: total, width: width).count <= max(0, width - 1))
            }
        }
    }

    @Test func `bytes are told in their unit, with the speed and the time left`() {
        #expect(
            line(1_234_000_000, of: 2_468_000_000, width: 100)
                == "rekey: [\(bar(15, 30))] 50 %, 1.2 of 2.5 GB, 123.4 MB/s, 10 s left")
        #expect(!line(1_000_000, of: 2_000_000, after: 1).contains("/s"))
        #expect(line(0, of: 2_000_000, width: 30) == "rekey: 0 %, 0.0 of 2.0 MB")
        #expect(line(500, of: 999, width: 30) == "rekey: 50 %, 500 of 999 bytes")
        #expect(line(1_000, of: 2_000_000, after: 0, width: 36) == "rekey: 0 %, 0.0 of 2.0 MB")
        #expect(line(10, of: 100, after: 3_600, width: 60).hasSuffix("9 h 0 min left"))
        #expect(line(50, of: 100, "pages", after: 100).contains("50 of 100 pages, 1 min 40 s left"))
    }

    private func bar(_ filled: Int, _ width: Int) -> String {
        String(repeating: "#", count: filled) + String(repeating: "-", count: width - filled)
    }

    @Test func `a narrow terminal loses the bar first and the percentage last`() {
        #expect(
            line(50, of: 100, width: 53)
                == "rekey: 50 %, 50 of 100 bytes, 5 bytes/s, 10 s left")
        #expect(line(50, of: 100, width: 40) == "rekey: 50 %, 50 of 100 bytes, 10 s left")
        #expect(line(50, of: 100, width: 39) == "rekey: 50 %, 50 of 100 bytes")
        #expect(line(50, of: 100, width: 12) == "rekey: 50 %")
        #expect(line(50, of: 100, width: 8) == "rekey: ")
    }

    @Test func `the phase after the last page is shown, and an unknown total as a count`() {
        #expect(line(100, of: 100) == "rekey: 100 %, finishing")
        #expect(line(1_500, of: nil) == "rekey: 1.5 kB")
        #expect(line(1_500, of: nil, "rows") == "rekey: 1500 rows")
    }
}
