import Testing
import Workload

@testable import Coffer

/// Processes that are killed while they replicate: 6 of each kind by default, 100 for `make proof`,
/// 5 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct KillDuringReplicateTests {
    @Test(arguments: journalModes, ReplicatorWork.allCases)
    func `kill -9 of the sender costs no row that it told of, and no position`(
        mode: Configuration.JournalMode, work: ReplicatorWork
    ) async throws {
        let tally = try await ReplicaKillHarness(journalMode: mode, work: work)
            .run(killCount: tryCount(isProof ? 100 : 6, long: 5000), seed: testSeed())
        switch work {
        case .plain: try tally.expectNothingLost("kills of a sender")
        case .maintained: try tally.expectNothingLost("kills of a sender that makes snapshots")
        case .keyring: try tally.expectNothingLost("kills of a sender that rotates")
        }
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
