import Foundation
import Testing
import Workload

@testable import Coffer

/// Random verbs on a bucket and on a list in memory, which have to agree after each of them.
@Suite(.againstHanging) struct BucketModelTests {
    private static let operationCount = isLongRun ? 2_000_000 : 7_000

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
        try comparison.store.set(1, for: 1, in: comparison.bucket)
        #expect(throws: Disagreement.self) {
            for _ in 0..<100 { try comparison.step(&random) }
        }
    }

    private func run<K>(
        _ keys: ModelKeys<K>, _ mode: Configuration.JournalMode, _ cache: BucketCache?,
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        let comparison = try Comparison(keys, mode, cache)
        while comparison.count < Self.operationCount / 2 { try comparison.step(&random) }
    }

    struct Disagreement: Error, CustomStringConvertible {
        let description: String
    }
}

/// A store and the model that it must agree with.
private final class Comparison<Key: BucketKey> {
    let bucket = Bucket<Key, Int8>("model", lifetime: .seconds(5))
    private(set) var store: Store
    /// The number of verbs that agreed.
    private(set) var count = 0
    private let folder: TemporaryFolder
    private let clock = HandClock()
    private let mode: Configuration.JournalMode
    private let cache: BucketCache?
    private var model: BucketModel<Key>

    init(
        _ keys: ModelKeys<Key>, _ mode: Configuration.JournalMode, _ cache: BucketCache?
    ) throws {
        (self.mode, self.cache) = (mode, cache)
        model = BucketModel(keys)
        folder = try TemporaryFolder()
        store = try BucketFixture.open(folder, clock, mode, cache)
    }

    private struct Undo: Error {}

    /// One transaction of random verbs, which commits or not, and sometimes another opening.
    func step(_ random: inout SeededGenerator) throws {
        let before = model
        let isUndone = Int.random(in: 0..<6, using: &random) == 0
        do {
            try store.write { tx in
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    try savepointOrVerb(&tx, &random)
                }
                if isUndone { throw Undo() }
            }
        } catch is Undo {
            let now = model.now
            model = before
            model.now = now
        }
        if Bool.random(using: &random) {
            try store.read { tx in try read(tx, &random) }
        }
        if Int.random(in: 0..<200, using: &random) == 0 {
            try store.close()
            store = try BucketFixture.open(folder, clock, mode, cache)
        }
        if Int.random(in: 0..<20, using: &random) == 0 { try changeFromOutside(&random) }
        for _ in 0..<Int.random(in: 0..<3, using: &random) {
            let key = model.keys.random(&random)
            try agree(try store.get(key, in: bucket), model.entry(key)?.value, "the store's get")
        }
    }

    /// Removes an entry over another connection, as another program would.
    private func changeFromOutside(_ random: inout SeededGenerator) throws {
        let key = model.keys.random(&random)
        let connection = try Connection(path: folder.path(), key: .numbered(1))
        defer { connection.close() }
        guard try connection.tableExists("bucket:model") else { return }
        try connection.execute(
            "DELETE FROM \"bucket:model\" WHERE key = \(try key.storedKey())")
        model.remove(key)
        count += 1
    }

    private func savepointOrVerb(
        _ tx: inout WriteTransaction, _ random: inout SeededGenerator
    ) throws {
        guard Int.random(in: 0..<8, using: &random) == 0 else { return try verb(tx, &random) }
        let before = model
        do {
            try tx.savepoint { part in
                for _ in 0..<3 { try verb(part, &random) }
                if Bool.random(using: &random) { throw Undo() }
            }
        } catch is Undo {
            let now = model.now
            model = before
            model.now = now
        }
    }

    private func agree<T: Equatable>(_ found: T, _ expected: T, _ verb: String) throws {
        guard found == expected else {
            throw BucketModelTests.Disagreement(
                description: "\(verb) gave \(found), not \(expected), after \(count) verbs")
        }
        count += 1
    }

    private func expiration(_ random: inout SeededGenerator) -> (Expiration, Int?) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return (.standard, model.now + 5)
        case 1: return (.never, nil)
        default:
            let length = Int.random(in: -1...4, using: &random)
            return (.after(.seconds(length)), model.now + length)
        }
    }

    private func verb(
        _ tx: borrowing WriteTransaction, _ random: inout SeededGenerator
    ) throws {
        let key = model.keys.random(&random)
        let value = Int8.random(in: -128...127, using: &random)
        let (expiring, end) = expiration(&random)
        let old = model.entry(key)
        switch Int.random(in: 0..<17, using: &random) {
        case 0, 1, 2:
            try tx.set(value, for: key, in: bucket, expiring: expiring)
            model.set(value, key, until: end)
            count += 1
        case 3:
            let isSet = try tx.setIfAbsent(value, for: key, in: bucket, expiring: expiring)
            try agree(isSet, old == nil, "setIfAbsent")
            if isSet { model.set(value, key, until: end) }
        case 4:
            let isKept = Bool.random(using: &random)
            try tx.update(key, in: bucket) { stored in
                try agree(stored, old?.value, "update")
                stored = isKept ? value : nil
            }
            if isKept {
                model.set(value, key, until: old == nil ? model.now + 5 : old?.end)
            } else {
                model.remove(key)
            }
        case 5:
            let expected = Bool.random(using: &random) ? old?.value : value
            let desired = Bool.random(using: &random) ? value : nil
            let result = try tx.compareExchange(
                key, expected: expected, desired: desired, in: bucket, expiring: expiring)
            try agree(result.original, old?.value, "compareExchange")
            try agree(result.exchanged, old?.value == expected, "compareExchange")
            guard result.exchanged else { break }
            if let desired {
                model.set(desired, key, until: end)
            } else if old != nil {
                model.remove(key)
            }
        case 6, 7:
            try add(value, key, old, tx)
        case 8:
            let isTouched = try tx.touch(key, in: bucket, expiring: expiring)
            try agree(isTouched, old != nil, "touch")
            if let old { model.set(old.value, key, until: end) }
        case 9:
            try agree(try tx.remove(key, in: bucket), old != nil, "remove")
            model.remove(key)
        case 10:
            try agree(try tx.take(key, in: bucket), old?.value, "take")
            if old != nil { model.remove(key) }
        case 11, 12:
            let place = model.keys.randomRange(&random)
            let isFirst = Bool.random(using: &random)
            let expected =
                isFirst ? model.live(place.contains).first : model.live(place.contains).last
            let found =
                isFirst
                ? try tx.popFirst(in: bucket, place.range) : try tx.popLast(in: bucket, place.range)
            try agree(found?.key, expected?.key, "pop")
            try agree(found?.value, expected?.value, "pop")
            if let expected { model.remove(expected.key) }
        case 13:
            guard Int.random(in: 0..<4, using: &random) == 0 else { break }
            let place = model.keys.randomRange(&random)
            let removed = try tx.removeAll(in: bucket, place.range)
            try agree(removed, model.live(place.contains).count, "removeAll")
            model.removeAll(place.contains)
        case 14:
            try agree(try tx.sweepExpiredEntries(maximumCount: .max), model.sweep(), "sweep")
        case 15:
            clock.advance(by: 1)
            model.now += 1
        default: try read(tx, &random)
        }
    }

    private func add(
        _ amount: Int8, _ key: Key, _ old: BucketModel<Key>.Entry?,
        _ tx: borrowing WriteTransaction
    ) throws {
        let (sum, isTooLarge) = (old?.value ?? 0).addingReportingOverflow(amount)
        do {
            let found = try tx.increment(key, by: amount, in: bucket)
            try agree(isTooLarge, false, "increment")
            try agree(found, sum, "increment")
            model.set(sum, key, until: old == nil ? model.now + 5 : old?.end)
        } catch let error as StoreError where error.code == .mismatch {
            try agree(isTooLarge, true, "increment")
        }
    }

    private func read(
        _ tx: borrowing some Reading & ~Copyable, _ random: inout SeededGenerator
    ) throws {
        let key = model.keys.random(&random)
        let entry = model.entry(key)
        try agree(try tx.get(key, in: bucket), entry?.value, "get")
        try agree(try tx.contains(key, in: bucket), entry != nil, "contains")
        let life = try tx.remainingLifetime(of: key, in: bucket)
        let expectedLife = entry.map { entry in
            entry.end.map { RemainingLifetime.limited(.seconds($0 - model.now)) } ?? .unlimited
        }
        try agree(life, expectedLife, "remainingLifetime")

        let place = model.keys.randomRange(&random)
        let all = model.live(place.contains)
        try agree(try tx.count(in: bucket, place.range), all.count, "count")
        try agree(try tx.first(in: bucket, place.range)?.key, all.first?.key, "first")
        try agree(try tx.last(in: bucket, place.range)?.key, all.last?.key, "last")
        let order: ScanOrder = Bool.random(using: &random) ? .ascending : .descending
        let after = Bool.random(using: &random) ? model.keys.random(&random) : nil
        let limit = Bool.random(using: &random) ? Int.random(in: 0..<5, using: &random) : nil
        var expected = order == .ascending ? all : all.reversed()
        if let after {
            expected = expected.filter {
                order == .ascending
                    ? model.keys.precedes(after, $0.key) : model.keys.precedes($0.key, after)
            }
        }
        if let limit { expected = Array(expected.prefix(limit)) }
        let keys = try tx.keys(
            in: bucket, place.range, order: order, after: after, maximumCount: limit)
        try agree(keys, expected.map(\.key), "keys")
        let values = try tx.values(
            in: bucket, place.range, order: order, after: after, maximumCount: limit)
        try agree(values, expected.map(\.value), "values")
    }
}
