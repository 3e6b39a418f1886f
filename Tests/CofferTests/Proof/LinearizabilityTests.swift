import Testing
import Workload

@testable import Coffer

/// Random histories: 200 of a table and 100 of a bucket by default, 20 000 each in a long run.
@Suite(.againstHanging, .onOwnThreads) struct LinearizabilityTests {
    @Test(arguments: journalModes)
    func `what eight clients in two processes see has an order that explains it`(
        mode: Configuration.JournalMode
    ) async throws {
        let tally = try await LinearizabilityHarness(journalMode: mode)
            .run(historyCount: tryCount(100, long: 10_000), seed: testSeed())
        try tally.expectNothingLost("histories")
    }

    @Test(arguments: journalModes, [false, true])
    func `get, set, increment, compareExchange and popFirst have an order, with a cache too`(
        mode: Configuration.JournalMode, isCached: Bool
    ) async throws {
        let harness = LinearizabilityHarness(
            journalMode: mode, place: .bucket, isCached: isCached)
        let tally = try await harness.run(
            historyCount: tryCount(25, long: 5_000), seed: testSeed())
        try tally.expectNothingLost("histories of a bucket")
    }

    @Test(arguments: RegisterPlace.allCases)
    func `the harness fails when clients answer from what they remember`(
        place: RegisterPlace
    ) async throws {
        let tally = try await LinearizabilityHarness(
            journalMode: .wal, place: place, isStale: true
        ).run(historyCount: 10, seed: 1)
        #expect(tally.problems.contains { $0.contains("register") })
    }
}
