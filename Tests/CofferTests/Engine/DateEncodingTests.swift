import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct DateEncodingTests {
    private static let noon = Date(timeIntervalSince1970: 1_361_361_600.125)

    @Test func `each form is written as it says`() throws {
        let forms: [(DateEncoding, Value)] = [
            (.unixSeconds, 1_361_361_600.125), (.fmdb, 1_361_361_600.125),
            (.unixMilliseconds, 1_361_361_600_125),
            (.iso8601, "2013-02-20T12:00:00.125Z"), (.grdb, "2013-02-20 12:00:00.125"),
            (.format("yyyy-MM-dd HH:mm:ss"), "2013-02-20 12:00:00"),
            (.format("dd.MM.yyyy 'um' HH''mm SSSSSS"), "20.02.2013 um 12'00 125000"),
            (.format("yyyyMMdd'T'HHmmssZ"), "20130220T120000+0000"),
            (.format("yyyy-MM-dd HH 'o''clock' mm"), "2013-02-20 12 o'clock 00"),
        ]
        for (encoding, value) in forms {
            #expect(try encoding.value(of: Self.noon) == value)
            let read = try encoding.date(of: value)
            #expect(abs(read.timeIntervalSince(Self.noon)) < 0.2)
        }
    }

    @Test func `P26 text is UTC and digits, whatever the settings of the user`() throws {
        let program = """
            2013-02-20 23:30:00
            """
        let date = Date(timeIntervalSince1970: 1_361_403_000)
        let pattern = DateEncoding.format("yyyy-MM-dd HH:mm:ss")
        #expect(try pattern.value(of: date) == .text(program))
        #expect(try pattern.date(of: .text(program)) == date)
        #expect(try DateEncoding.iso8601.date(of: "2013-02-21T00:30:00+01:00") == date)
        #expect(try DateEncoding.iso8601.date(of: "2013-02-20 18:30-05:00") == date)
    }

    @Test
    func `P26 an encoding as text reads numbers too, and an encoding as a number reads its text`()
        throws
    {
        let date = Date(timeIntervalSince1970: 1_361_361_600)
        for encoding: DateEncoding in [.iso8601, .grdb, .format("yyyy"), .unixSeconds] {
            #expect(try encoding.date(of: 1_361_361_600) == date)
            #expect(try encoding.date(of: 1_361_361_600.0) == date)
        }
        #expect(try DateEncoding.unixSeconds.date(of: "1361361600.0") == date)
        #expect(try DateEncoding.unixMilliseconds.date(of: "1361361600000") == date)
    }

    @Test func `days are those of Foundation's calendar, over 10 000 years`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        let pattern = DateEncoding.format("yyyy-MM-dd HH:mm:ss.SSS")
        for number in 0..<2000 {
            // From 1583, since Foundation's calendar is Julian before that.
            let seconds = -12_212_553_600 + Double(number) * 132_816_127.5
            let date = Date(timeIntervalSince1970: seconds)
            let parts = calendar.dateComponents(
                [.year, .month, .day, .hour, .minute, .second], from: date)
            let time = try CivilTime(date)
            #expect(time.year == parts.year && time.month == parts.month && time.day == parts.day)
            #expect(time.hour == parts.hour && time.minute == parts.minute)
            #expect(time.second == parts.second)
            #expect(try pattern.date(of: try pattern.value(of: date)) == date)
        }
    }

    @Test(arguments: [
        "", "2013", "2013-2-20", "2013-02-30", "2013-13-01", "2013-02-20T25:00", "2013-02-20T12",
        "2013-02-20 12:00:60", "2013-02-20 12:00:00.", "2013-02-20T12:00:00Zx", "2013-02-20x",
        "2013-02-20T12:00:00+1", "20.02.2013", "1361361600", "２０１３-02-20", "1900-02-29",
    ])
    func `a text that is not a date is .mismatch`(text: String) throws {
        expect(.mismatch) { try DateEncoding.iso8601.date(of: .text(text)) }
        expect(.mismatch) { try DateEncoding.grdb.date(of: .text(text)) }
        expect(.mismatch) {
            try DateEncoding.format("yyyy-MM-dd HH:mm").date(of: .text(text))
        }
    }

    @Test func `a value that cannot be a date is .mismatch`() throws {
        expect(.mismatch) { try DateEncoding.unixSeconds.date(of: "nan") }
        expect(.mismatch) { try DateEncoding.unixSeconds.date(of: .null) }
        expect(.mismatch) { try DateEncoding.iso8601.date(of: .blob(Data())) }
        expect(.mismatch) { try DateEncoding.iso8601.value(of: .distantFuture + 1e15) }
        expect(.mismatch) { try DateEncoding.grdb.value(of: .distantPast - 1e9) }
        expect(.mismatch) {
            try DateEncoding.unixMilliseconds.value(of: Date(timeIntervalSince1970: 1e300))
        }
        #expect(
            try DateEncoding.iso8601.date(of: "2000-02-29").timeIntervalSince1970 == 951_782_400)
    }

    @Test(arguments: ["yy", "MMM", "EEEE", "h:mm a", "yyyy 'open", "QQ", "SSSSSSS", "ä"])
    func `a pattern that depends on settings is .unsupported when it is used`(
        pattern: String
    )
        throws
    {
        let encoding = DateEncoding.format(pattern)
        expect(.unsupported) { try encoding.value(of: Self.noon) }
        expect(.unsupported) { try encoding.date(of: 0) }
        let sql: SQL = "SELECT \(Self.noon, as: encoding)"
        expect(.unsupported) { _ = try sql.checked() }
    }

    @Test func `SQLite's own functions read what the presets write`() throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        for (encoding, modifier) in [
            (DateEncoding.unixSeconds, "unixepoch"), (.iso8601, "+0 days"), (.grdb, "+0 days"),
        ] {
            let text = try connection.scalar(
                "SELECT strftime('%Y-%m-%d %H:%M:%S', \(Self.noon, as: encoding), \(modifier))",
                as: String.self)
            #expect(text == "2013-02-20 12:00:00")
        }
        #expect(try connection.scalar("SELECT \(Date?.none, as: .iso8601)", as: Date.self) == nil)
    }
}
