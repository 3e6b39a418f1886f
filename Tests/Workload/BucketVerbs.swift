import Coffer

/// A bucket of a store and the model that it has to agree with, under random verbs.
public final class BucketVerbs<Key: BucketKey> {
    public let bucket = Bucket<Key, Int8>("model", lifetime: .seconds(5))
    public var store: Store
    /// Its time is that of the clock.
    public var model: BucketModel<Key> {
        didSet { clock.set(to: model.now) }
    }
    /// The number of verbs that agreed.
    public private(set) var count = 0
    /// For tests of tests: nothing is committed, and the model says that it is.
    public var lies = false
    private let clock: HandClock

    /// - Parameters:
    ///   - store: Has this clock, and what the model says.
    public init(_ model: BucketModel<Key>, _ store: Store, _ clock: HandClock) {
        (self.model, self.store, self.clock) = (model, store, clock)
        clock.set(to: model.now)
    }

    private struct Undo: Error {}

    /// One transaction of random verbs, which commits or not.
    ///
    /// - Throws: `WorkloadError` if bucket and model disagree; errors of the store.
    public func transaction(_ random: inout SeededGenerator) throws {
        let before = model
        let isUndone = Int.random(in: 0..<6, using: &random) == 0
        do {
            try store.write { tx in
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    try savepointOrVerb(&tx, &random)
                }
                if isUndone || lies { throw Undo() }
            }
        } catch is Undo {
            if isUndone { undo(to: before) }
        }
    }

    /// Reads in a transaction of its own, and asks the store for single keys.
    public func read(_ random: inout SeededGenerator) throws {
        if Bool.random(using: &random) {
            try store.read { tx in try read(tx, &random) }
        }
        for _ in 0..<Int.random(in: 0..<3, using: &random) {
            let key = model.keys.random(&random)
            try agree(try store.get(key, in: bucket), model.entry(key)?.value, "the store's get")
        }
    }

    /// Removes an entry over another connection, as another program would.
    ///
    /// - Parameter remove: Removes it from the file.
    public func removeOutside(
        _ random: inout SeededGenerator, _ remove: (Key) throws -> Void
    ) throws {
        let key = model.keys.random(&random)
        try remove(key)
        model.remove(key)
        count += 1
    }

    /// Makes the bucket what the model says, whatever it was.
    public func fill() throws {
        try store.write { tx in
            try tx.removeAll(in: bucket)
            for entry in model.entries {
                let left = entry.end.map { Expiration.after(.seconds($0 - model.now)) }
                try tx.set(entry.value, for: entry.key, in: bucket, expiring: left ?? .never)
            }
        }
    }

    /// Requires each entry that has not expired, with its lifetime, and no other.
    public func compareAll() throws {
        try store.read { tx in
            let live = model.live
            try agree(try tx.keys(in: bucket), live.map(\.key), "keys")
            try agree(try tx.values(in: bucket), live.map(\.value), "values")
            for entry in live { try compareLifetime(entry.key, tx) }
        }
    }

    /// The clock does not go back.
    private func undo(to before: BucketModel<Key>) {
        let now = model.now
        model = before
        model.now = now
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
            undo(to: before)
        }
    }

    private func agree<T: Equatable>(_ found: T, _ expected: T, _ verb: String) throws {
        guard found == expected else {
            throw WorkloadError(
                "\(verb) gave \(found), not \(expected), after \(count) verbs")
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
        try compareLifetime(key, tx)

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

    private func compareLifetime(
        _ key: Key, _ tx: borrowing some Reading & ~Copyable
    ) throws {
        let expected = model.entry(key).map { entry in
            entry.end.map { RemainingLifetime.limited(.seconds($0 - model.now)) } ?? .unlimited
        }
        try agree(
            try tx.remainingLifetime(of: key, in: bucket), expected, "remainingLifetime")
    }
}
