import Testing

@testable import Coffer

/// Processes that are killed while they replicate: 20 by default, 40 for `make proof`, 10 000
/// in a long run.
@Suite(.againstHanging, .onOwnThreads) struct KillDuringReplicateTests {
    @Test(arguments: journalModes)
    func `kill -9 of the sender costs no row that it told of, and no position`(
        mode: Configuration.JournalMode
    ) async throws {
        let tally = try await ReplicaKillHarness(journalMode: mode)
            .run(killCount: tryCount(isProof ? 20 : 10, long: 5000), seed: testSeed())
        try tally.expectNothingLost("kills of a sender")
    }

    @Test func `the harness fails when rows are told before the remote has them`() async throws {
        var lostCount = 0
        let seed = testSeed()
        for number in 0..<20 as Range<UInt64> where lostCount == 0 {
            lostCount += try await ReplicaKillHarness(journalMode: .wal, tellsEarly: true)
                .run(killCount: 5, seed: seed + number).lostCount
        }
        #expect(lostCount > 0)
    }
}
