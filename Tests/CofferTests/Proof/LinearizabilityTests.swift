import Testing

@testable import Coffer

/// Random histories: 200 by default, 20 000 in a long run.
@Suite(.againstHanging) struct LinearizabilityTests {
    @Test(arguments: journalModes)
    func `what eight clients in two processes see has an order that explains it`(
        mode: Configuration.JournalMode
    ) async throws {
        let tally = try await LinearizabilityHarness(journalMode: mode)
            .run(historyCount: tryCount(100, long: 10_000), seed: testSeed())
        try tally.expectNothingLost("histories")
    }

    @Test func `the harness fails when clients answer from what they remember`() async throws {
        let tally = try await LinearizabilityHarness(journalMode: .wal, isStale: true)
            .run(historyCount: 10, seed: 1)
        #expect(tally.problems.contains { $0.contains("register") })
    }
}
