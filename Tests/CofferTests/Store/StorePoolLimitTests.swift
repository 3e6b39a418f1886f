import Foundation
import Testing

@testable import Coffer

/// Many stores in a process with few descriptors: a second process with its own limit.
@Suite(.againstHanging, .onOwnThreads) struct StorePoolLimitTests {
    private func limited(_ count: Int) -> [String] {
        ["sh", "-c", #"ulimit -n \#(count); exec "$@""#, "sh"]
    }

    @Test func `200 users at once are served with 1024 descriptors and 64 MiB of page cache`()
        throws
    {
        let folder = try TemporaryFolder()
        let lines = try Peer.run(
            ["tenants", folder.url.path, "200", "3", "64"], under: limited(1024))
        #expect(lines.last == "lost 0", "\(lines)")
        #expect(lines.first?.contains("places 109, refused 0") == true, "\(lines)")
    }

    @Test func `10 000 stores of which 500 are in use take little`() throws {
        let (count, usedCount) = isLongRun ? (10_000, 500) : (200, 50)
        let folder = try TemporaryFolder()
        let lines = try Peer.run(
            ["measure-tenants", folder.url.path, "\(count)", "\(usedCount)"],
            under: limited(4_096))
        #expect(lines.last == "measured", "\(lines)")
        #if os(Linux)
        let line = try #require(lines.first { $0.hasPrefix("in use: ") })
        let numbers = line.matches(of: #/\d+/#).compactMap { Int($0.output) }
        try #require(numbers.count == 4, "\(line)")
        #expect(numbers[0] < 1_000)
        // The threads that openings leave end after 5 seconds. 64 open at a time.
        #expect(numbers[1] < 300)
        #expect(numbers[2] < 4_000)
        #expect(numbers[3] == usedCount)
        #endif
        if isLongRun { print(lines.joined(separator: "\n")) }
    }
}
