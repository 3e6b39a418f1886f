import Testing

@testable import Coffer

/// Power that goes while a store of some thousand pages gets another key, whose pages reach the
/// disk before the end: at 24 operations by default, at 500 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfLargeRekeyTests {
    @Test(arguments: Keeping.all)
    func `a power loss while a large store gets another key leaves one of the two, and every row`(
        keeping: Keeping
    ) throws {
        try LargeRekeyLossHarness(keeping: keeping)
            .run(lossCount: tryCount(24, long: 500), seed: testSeed())
            .expectNothingLost("power losses of a large rekey")
    }

    @Test(arguments: journalModes)
    func `the harness fails on a disk that does not sync`(mode: Configuration.JournalMode) throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        let tally = try LargeRekeyLossHarness(keeping: keeping, ignoresSyncs: true)
            .run(lossCount: 8, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
