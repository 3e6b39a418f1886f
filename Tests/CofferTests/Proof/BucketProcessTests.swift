import Testing
import Workload

@testable import Coffer

/// Random verbs on a bucket in two processes, and in one that is killed: 160 turns and 48 kills by
/// default, 16 000 and 4 000 in a long run. The cache is on in half of them.
@Suite(.againstHanging) struct BucketProcessTests {
    private static let caches = [nil, BucketCache(maximumCount: 12)]

    @Test(arguments: Keeping.all, caches)
    func `two processes find each other's verbs on a bucket`(
        keeping: Keeping, cache: BucketCache?
    ) throws {
        let count = tryCount(10, long: 1000)
        try BucketTurnsHarness(keys: .integers, keeping: keeping, cache: cache)
            .run(turnCount: count, seed: testSeed())
            .expectNothingLost("turns at a bucket")
        try BucketTurnsHarness(keys: .texts, keeping: keeping, cache: cache)
            .run(turnCount: count, seed: testSeed())
            .expectNothingLost("turns at a bucket")
    }

    @Test(arguments: Keeping.all, caches)
    func `a killed process leaves each transaction on a bucket whole or not at all`(
        keeping: Keeping, cache: BucketCache?
    ) throws {
        let count = tryCount(3, long: 250)
        try BucketKillHarness(keys: .integers, keeping: keeping, cache: cache)
            .run(killCount: count, seed: testSeed())
            .expectNothingLost("kills during verbs of a bucket")
        try BucketKillHarness(keys: .texts, keeping: keeping, cache: cache)
            .run(killCount: count, seed: testSeed())
            .expectNothingLost("kills during verbs of a bucket")
    }

    @Test func `both find a process that does not commit what it says`() throws {
        let keeping = Keeping(journalMode: .wal, durability: .power)
        let turns = try BucketTurnsHarness(
            keys: .integers, keeping: keeping, cache: nil, peerLies: true
        ).run(turnCount: 100, seed: testSeed())
        #expect(turns.lostCount > 0)
        let kills = try BucketKillHarness(
            keys: .integers, keeping: keeping, cache: nil, peerLies: true
        ).run(killCount: 100, seed: testSeed())
        #expect(kills.lostCount > 0)
    }
}
