import Testing

@testable import Coffer

/// Power losses: 400 by default, 40 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossTests {
    @Test(arguments: Keeping.all)
    func `a power loss costs no acknowledged write with FULL, and leaves none half there`(
        keeping: Keeping
    ) async throws {
        let tally = try await PowerLossHarness(keeping: keeping)
            .run(lossCount: tryCount(100, long: 10_000), seed: 1)
        try tally.expectNothingLost("power losses")
    }

    @Test(arguments: journalModes)
    func `the harness fails on a disk that does not sync`(
        mode: Configuration.JournalMode
    )
        async throws
    {
        let keeping = Keeping(journalMode: mode, durability: .power)
        let tally = try await PowerLossHarness(keeping: keeping, ignoresSyncs: true)
            .run(lossCount: 20, seed: 1)
        #expect(tally.problems.contains { $0.contains("acknowledged and lost") })
    }
}
