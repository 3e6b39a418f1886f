import Testing

@testable import Coffer

/// Processes that are killed while they compact a store: 40 by default, 500 in a long run.
@Suite(.againstHanging) struct KillDuringCompactTests {
    @Test(arguments: journalModes)
    func `kill -9 during a compaction loses no row`(mode: Configuration.JournalMode) throws {
        let tally = try CompactKillHarness(journalMode: mode)
            .run(killCount: tryCount(20, long: 250), seed: testSeed())
        try tally.expectNothingLost("kills during a compaction")
    }
}
