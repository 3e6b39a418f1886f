import Testing

@testable import Coffer

/// Power that goes while slots of a keyring are changed, and steps that fail: 400 times by default,
/// 800 for `make proof`, 40 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfKeyringTests {
    @Test func `a power loss amid a change of slots leaves the old credentials or the new ones`()
        throws
    {
        let seed = testSeed()
        try KeyringLossHarness(seed: seed)
            .run(tryCount(isProof ? 800 : 400, long: 40_000), seed: seed)
            .expectNothingLost("power losses of a keyring")
    }

    @Test func `the harness fails on a disk that does not sync`() throws {
        let seed = testSeed()
        let tally = try KeyringLossHarness(seed: seed, ignoresSyncs: true).run(200, seed: seed)
        #expect(tally.lostCount > 0)
    }
}
