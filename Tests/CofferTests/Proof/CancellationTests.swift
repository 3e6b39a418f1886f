import Testing

@testable import Coffer

/// 10 000 cancellations in WAL, the mode with most ways to wait; 500 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct CancellationTests {
    @Test(arguments: journalModes)
    func `a cancelled task has written once and returns, or nothing and throws`(
        mode: Configuration.JournalMode
    ) async throws {
        let count = mode == .wal ? tryCount(10_000, long: 500_000) : tryCount(1000, long: 50_000)
        let tally = try await CancellationHarness(journalMode: mode)
            .run(cancellationCount: count, seed: testSeed())
        try tally.expectNothingLost("cancellations")
    }

    @Test func `the harness fails when a cancelled task is taken for one that wrote nothing`()
        async throws
    {
        // The run ends with the first problem, which needs a task that is cancelled while it
        // commits. On a busy machine that may come late.
        let tally = try await CancellationHarness(journalMode: .wal, misreports: true)
            .run(cancellationCount: 10_000, seed: testSeed())
        #expect(
            tally.problems.contains { $0.contains("thrown, and") },
            "\(tally.triedCount) tries: \(tally.problems)")
    }
}
