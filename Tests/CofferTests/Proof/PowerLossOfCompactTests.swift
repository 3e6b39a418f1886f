import Testing

@testable import Coffer

/// Power that goes while a store is compacted, at its syncs and anywhere: 48 times by default,
/// 2 000 times in a long run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfCompactTests {
    @Test(arguments: Keeping.all)
    func `a power loss during a compaction leaves the old pages or the new ones, and every row`(
        keeping: Keeping
    ) throws {
        try CompactLossHarness(keeping: keeping)
            .run(lossCount: tryCount(12, long: 500), seed: testSeed())
            .expectNothingLost("power losses of a compaction")
    }

    @Test(arguments: journalModes)
    func `the harness fails on a disk that does not sync`(mode: Configuration.JournalMode) throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        let tally = try CompactLossHarness(keeping: keeping, ignoresSyncs: true)
            .run(lossCount: 8, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
