import CFileRecorder
import Testing
import Workload

@testable import Coffer

/// Verbs that write a keyring, ended at changes of a file: by a kill, by power losses, or by an
/// error of the disk. Every eighth change by default, and every 32nd of a verb that changes every
/// page; each one for `make proof`, with 20 losses in a long run.
@Suite(.againstHanging, .onOwnThreads, .enabled(if: recorder_is_available()))
struct KeyringVerbTests {
    /// Only the verbs of the second list write the database.
    private static let cases: [(KeyringVerb, Configuration.JournalMode)] =
        KeyringVerb.allCases.map { ($0, .wal) }
        + [.initialize, .restoreStore, .enable, .rotate, .replaceRoot].map { ($0, .delete) }

    private func step(_ step: Int, of verb: KeyringVerb) -> Int {
        if isProof || isLongRun { return 1 }
        return verb.changesPages ? step * 4 : step
    }

    @Test(arguments: cases)
    func `a kill or a power loss at any change leaves what the verb began with, or what it makes`(
        verb: KeyringVerb, mode: Configuration.JournalMode
    ) throws {
        try KeyringVerbHarness(verb: verb, journalMode: mode)
            .run(
                step: step(8, of: verb), lossCount: tryCount(1, long: 20),
                seed: testSeed()
            )
            .expectNothingLost("kills and power losses of a keyring's verbs")
    }

    @Test(arguments: cases)
    func `a change that fails is an error, or the verb is done without it`(
        verb: KeyringVerb, mode: Configuration.JournalMode
    ) throws {
        try KeyringVerbHarness(verb: verb, journalMode: mode)
            .runFailures(step: step(24, of: verb), seed: testSeed())
            .expectNothingLost("errors of the disk at a keyring's verbs")
    }

    @Test(arguments: [KeyringVerb.initialize, .change, .restore])
    func `the harness fails on a disk that does not sync`(verb: KeyringVerb) throws {
        let harness = KeyringVerbHarness(verb: verb, journalMode: .wal, ignoresSyncs: true)
        let tally = try harness.run(
            step: 1, lossCount: 5, endsWithLoss: true, seed: testSeed())
        #expect(tally.lostCount > 0)
    }
}
