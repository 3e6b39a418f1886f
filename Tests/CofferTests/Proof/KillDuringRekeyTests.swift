import Testing

@testable import Coffer

/// Processes that are killed while they change the key: 50 in the middle of it by default, 500 in
/// a long run.
@Suite(.againstHanging, .onOwnThreads) struct KillDuringRekeyTests {
    @Test(arguments: journalModes)
    func `kill -9 while the key changes leaves exactly one key, and every row`(
        mode: Configuration.JournalMode
    ) throws {
        let tally = try RekeyKillHarness(journalMode: mode)
            .run(killCount: tryCount(25, long: 250), seed: testSeed())
        try tally.expectNothingLost("kills during a rekey")
    }

    /// Killed during a change of key and salt without a WAL, most files open with neither key.
    @Test func `the harness fails when the salt changes as well`() throws {
        var lostCount = 0
        let seed = testSeed()
        for number in 0..<10 where lostCount == 0 {
            lostCount = try RekeyKillHarness(journalMode: .delete, changesSalt: true)
                .run(killCount: 3, seed: seed + UInt64(number)).lostCount
        }
        #expect(lostCount > 0)
    }
}
