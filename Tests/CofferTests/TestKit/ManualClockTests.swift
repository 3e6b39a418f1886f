import Coffer
import CofferTestKit
import Foundation
import Synchronization
import Testing

/// The clock that a test moves.
@Suite(.againstHanging, .onOwnThreads) struct ManualClockTests {
    @Test func `entries expire by the clock's date`() throws {
        let clock = ManualClock()
        let codes = Bucket<String, Int>("codes", lifetime: .seconds(60))
        var configuration = Configuration()
        configuration.currentDate = { clock.date }
        configuration.expirySweepInterval = nil
        let store = try Store(.memory, configuration: configuration)
        try store.set(7, for: "ada", in: codes)
        clock.advance(by: .milliseconds(59_999))
        #expect(try store.get("ada", in: codes) == 7)
        clock.advance(by: .milliseconds(1))
        #expect(try store.get("ada", in: codes) == nil)
        #expect(clock.now.offset == .seconds(60))
    }

    @Test func `sleepers wake when their time has come, and a cancelled one at once`() async throws
    {
        let clock = ManualClock()
        let sleepers = (1...3).map { seconds in
            Task { try await clock.sleep(for: .seconds(seconds)) }
        }
        while clock.sleeperCount < 3 { await Task.yield() }
        clock.advance(by: .seconds(2))
        try await sleepers[0].value
        try await sleepers[1].value
        #expect(clock.sleeperCount == 1)
        sleepers[2].cancel()
        await #expect(throws: CancellationError.self) { try await sleepers[2].value }
        #expect(clock.sleeperCount == 0)
    }
}
