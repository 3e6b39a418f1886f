import Testing

@testable import Coffer

/// Processes that write, read and rotate the key of one store, one of which is killed again and
/// again.
@Suite(.againstHanging, .onOwnThreads) struct RotationRaceTests {
    @Test(arguments: journalModes)
    func `writers, a reader and two rotators go on while one of them is killed`(
        mode: Configuration.JournalMode
    ) throws {
        let tally = try RotationRaceHarness(mode, seed: testSeed())
            .run(killCount: tryCount(isProof ? 20 : 10, long: 5000))
        try tally.expectNothingLost("races of a rotation")
    }
}
