import Testing

@testable import Coffer

/// Power that goes while a store changes more pages than its cache holds, grows or gives pages back
/// to the disk, at its syncs and anywhere: 192 times by default, 8 000 times in a long run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfLargeWriteTests {
    @Test(arguments: Keeping.all, LargeWriteLossHarness.Work.allCases)
    func `a power loss leaves all of a large transaction or nothing of it, and no damaged page`(
        keeping: Keeping, work: LargeWriteLossHarness.Work
    ) throws {
        try LargeWriteLossHarness(keeping: keeping, work: work)
            .run(lossCount: tryCount(24, long: 1000), seed: testSeed())
            .expectNothingLost("power losses of a large transaction")
    }

    @Test(arguments: journalModes)
    func `the harness fails on a disk that does not sync`(mode: Configuration.JournalMode) throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        let tally = try LargeWriteLossHarness(keeping: keeping, work: .growing, ignoresSyncs: true)
            .run(lossCount: 8, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
