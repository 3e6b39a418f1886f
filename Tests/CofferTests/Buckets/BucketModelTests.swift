import Foundation
import Testing
import Workload

@testable import Coffer

/// Random verbs on a bucket and on a list in memory, which have to agree after each of them.
@Suite(.againstHanging, .onOwnThreads) struct BucketModelTests {
    private static let operationCount = isLongRun ? 2_500_000 : 7_000

    @Test(arguments: journalModes, [nil, BucketCache(maximumCount: 12)])
    func `a bucket under random verbs is what a list in memory is`(
        mode: Configuration.JournalMode, cache: BucketCache?
    ) throws {
        let seed = testSeed()
        try run(ModelKeys.integers, mode, cache, seed)
        try run(ModelKeys.texts, mode, cache, seed)
        try run(ModelKeys.pairs, mode, cache, seed)
    }

    @Test func `the comparison notices an entry that a scan leaves out`() throws {
        var random = SeededGenerator(seed: 1)
        let comparison = try Comparison(ModelKeys.integers, .wal, nil)
        try comparison.verbs.store.set(1, for: 1, in: comparison.verbs.bucket)
        #expect(throws: WorkloadError.self) {
            for _ in 0..<100 { try comparison.step(&random) }
        }
    }

    private func run<K>(
        _ keys: ModelKeys<K>, _ mode: Configuration.JournalMode, _ cache: BucketCache?,
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        let comparison = try Comparison(keys, mode, cache)
        while comparison.verbs.count < Self.operationCount / 2 { try comparison.step(&random) }
    }
}

/// A store and the model that it must agree with.
private final class Comparison<Key: BucketKey> {
    let verbs: BucketVerbs<Key>
    private let folder: TemporaryFolder
    private let clock = HandClock()
    private let mode: Configuration.JournalMode
    private let cache: BucketCache?

    init(
        _ keys: ModelKeys<Key>, _ mode: Configuration.JournalMode, _ cache: BucketCache?
    ) throws {
        (self.mode, self.cache) = (mode, cache)
        folder = try TemporaryFolder()
        let store = try BucketFixture.open(folder, clock, mode, cache)
        verbs = BucketVerbs(BucketModel(keys), store, clock)
    }

    /// One transaction of random verbs, and sometimes another opening or another connection.
    func step(_ random: inout SeededGenerator) throws {
        try verbs.transaction(&random)
        if Int.random(in: 0..<200, using: &random) == 0 {
            try verbs.store.close()
            verbs.store = try BucketFixture.open(folder, clock, mode, cache)
        }
        if Int.random(in: 0..<20, using: &random) == 0 {
            try verbs.removeOutside(&random) { key in try removeOutside(key) }
        }
        try verbs.read(&random)
    }

    private func removeOutside(_ key: Key) throws {
        let connection = try Connection(path: folder.path(), key: .numbered(1))
        defer { connection.close() }
        guard try connection.tableExists("bucket:model") else { return }
        try connection.execute(
            "DELETE FROM \"bucket:model\" WHERE key = \(try key.storedKey())")
    }
}
