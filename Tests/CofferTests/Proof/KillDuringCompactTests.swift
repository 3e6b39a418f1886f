import Testing

@testable import Coffer

/// Processes that are killed while they compact a store: some 40 by default, 1 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct KillDuringCompactTests {
    @Test(arguments: journalModes)
    func `kill -9 during a compaction loses no row`(mode: Configuration.JournalMode) throws {
        let tally = try CompactKillHarness(journalMode: mode)
            .run(killCount: tryCount(4, long: 250), seed: testSeed())
        try tally.expectNothingLost("kills during a compaction")
    }

    @Test(arguments: journalModes)
    func `kill -9 at each step of a compaction, and after its commit, loses no row`(
        mode: Configuration.JournalMode
    ) throws {
        let tally = try CompactKillHarness(journalMode: mode)
            .runAtSteps(killCountMax: tryCount(8, long: 100))
        try tally.expectNothingLost("kills during a compaction")
    }

    @Test(arguments: journalModes)
    func `kill -9 before an operation of the disk loses no row`(
        mode: Configuration.JournalMode
    ) throws {
        let tally = try CompactKillHarness(journalMode: mode)
            .runAtOperations(killCount: tryCount(8, long: 250), seed: testSeed())
        try tally.expectNothingLost("kills during a compaction")
    }

    @Test func `the harness fails on a store without a journal on the disk`() throws {
        let tally = try CompactKillHarness(journalMode: .delete, lacksJournal: true)
            .runAtOperations(killCount: 10, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
