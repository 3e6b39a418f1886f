import Testing

@testable import Coffer

/// Power losses of a machine that replicates: 64 by default, 400 for `make proof`, 8 000 in a long
/// run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfReplicaTests {
    @Test(arguments: Keeping.all)
    func `a power loss of the sender leaves nothing in the remote that its file has not`(
        keeping: Keeping
    ) async throws {
        let tally = try await ReplicaLossHarness(keeping: keeping)
            .run(lossCount: tryCount(isProof ? 100 : 16, long: 2000), seed: testSeed())
        try tally.expectNothingLost("power losses of a sender")
    }

    @Test(arguments: journalModes)
    func `the harness fails on a disk that does not sync`(
        mode: Configuration.JournalMode
    ) async throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        let tally = try await ReplicaLossHarness(keeping: keeping, ignoresSyncs: true)
            .run(lossCount: 10, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
