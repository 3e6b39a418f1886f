import Testing
import Workload

@testable import Coffer

/// Random verbs on a bucket in two processes, and in one that is killed: 160 turns and 48 kills by
/// default, 16 000 and 4 000 in a long run. The cache is on in half of them.
@Suite(.againstHanging, .onOwnThreads) struct BucketProcessTests {
    private static let caches = [nil, BucketCache(maximumCount: 12)]

    @Test(arguments: Keeping.all, caches)
    func `two processes find each other's verbs on a bucket`(
        keeping: Keeping, cache: BucketCache?
    ) throws {
        try takeTurns(.integers, keeping, cache)
        try takeTurns(.texts, keeping, cache)
    }

    @Test(arguments: Keeping.all, caches)
    func `a killed process leaves each transaction on a bucket whole or not at all`(
        keeping: Keeping, cache: BucketCache?
    ) throws {
        try kill(.integers, keeping, cache)
        try kill(.texts, keeping, cache)
    }

    @Test func `both find a process that does not commit what it says`() throws {
        let keeping = Keeping(journalMode: .wal, durability: .power)
        let harness = BucketProcessHarness(
            keys: .integers, keeping: keeping, cache: nil, peerLies: true)
        #expect(try harness.takeTurns(100, seed: testSeed()).lostCount > 0)
        #expect(try harness.kill(times: 100, seed: testSeed()).lostCount > 0)
    }

    private func takeTurns(
        _ keys: ModelKeys<some BucketKey & Codable>, _ keeping: Keeping, _ cache: BucketCache?
    ) throws {
        try BucketProcessHarness(keys: keys, keeping: keeping, cache: cache)
            .takeTurns(tryCount(10, long: 1000), seed: testSeed())
            .expectNothingLost("turns at a bucket")
    }

    private func kill(
        _ keys: ModelKeys<some BucketKey & Codable>, _ keeping: Keeping, _ cache: BucketCache?
    ) throws {
        try BucketProcessHarness(keys: keys, keeping: keeping, cache: cache)
            .kill(times: tryCount(3, long: 250), seed: testSeed())
            .expectNothingLost("kills during verbs of a bucket")
    }
}
