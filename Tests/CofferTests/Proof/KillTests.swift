import Testing

@testable import Coffer

/// Processes that are killed while they write: 100 by default, 5 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct KillTests {
    @Test(arguments: Keeping.all)
    func `kill -9 costs no write that returned and leaves none half done`(keeping: Keeping) throws {
        let tally = try KillHarness(keeping: keeping)
            .run(killCount: tryCount(25, long: 1250), seed: testSeed())
        try tally.expectNothingLost("kill -9")
    }

    @Test(arguments: journalModes)
    func `the harness fails when a write is reported before its commit`(
        mode: Configuration.JournalMode
    ) throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        var problems: [String] = []
        // A kill may come while no uncommitted write is reported, so a few kills prove little.
        let seed = testSeed()
        for number in 0..<20 where !problems.contains(where: { $0.contains("told of") }) {
            problems += try KillHarness(keeping: keeping, tellsEarly: true)
                .run(killCount: 8, seed: seed + UInt64(number)).problems
        }
        #expect(problems.contains { $0.contains("told of") })
    }
}
