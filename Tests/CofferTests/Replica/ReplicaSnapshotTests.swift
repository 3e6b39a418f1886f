import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Snapshots of a replica, what is kept, and what is deleted.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaSnapshotTests {
    private let folder: TemporaryFolder
    private let remote = MemoryRemote()
    /// How far the clocks were put forward.
    private let days = Days()

    private final class Days: Sendable {
        let count = Mutex(0)
    }

    init() throws {
        folder = try TemporaryFolder()
    }

    private var options: ReplicaOptions {
        var options = ReplicaOptions.testing
        options.sleep = { _ in throw CancellationError() }
        let start = ContinuousClock.now
        options.currentInstant = { [days] in
            start + .seconds(86_500) * days.count.withLock(\.self)
        }
        return options
    }

    private func open(_ name: String = "store.db") throws -> Store {
        try Store(path: folder.path(name), key: .numbered(1), configuration: .testing())
    }

    private func makeStore() throws -> Store {
        let store = try open()
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v INTEGER PRIMARY KEY, filler)")
        }
        return store
    }

    private func insert(_ numbers: some Sequence<Int>, _ byteCount: Int, in store: Store) throws {
        try store.write { tx in
            for number in numbers {
                try tx.execute("INSERT INTO t VALUES (\(number), randomblob(\(byteCount)))")
            }
        }
    }

    private func numbers(in store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) } }
    }

    @discardableResult
    private func restore(
        _ name: String, at moment: ReplicaMoment = .newest, atLeast: ReplicaPosition? = nil
    ) async throws -> ReplicaRestoreReport {
        try await Store.restore(
            from: remote, to: folder.path(name), key: .numbered(1), at: moment, atLeast: atLeast,
            configuration: .testing())
    }

    private func restoredNumbers(_ name: String, at moment: ReplicaMoment) async throws -> [Int] {
        try await restore(name, at: moment)
        let copy = try open(name)
        let numbers = try numbers(in: copy)
        try await copy.close()
        removeStore(folder.path(name))
        return numbers
    }

    private func history() async throws -> ReplicaHistory {
        try await ReplicaHistory(of: remote, key: .numbered(1))
    }

    /// Lets a day go by, and makes a snapshot.
    private func nextDay(_ replica: Replica) async throws -> Bool {
        remote.advance(86_500)
        days.count.withLock { $0 += 1 }
        // Nobody else would ask an idle replica's remote for the time.
        _ = try await replica.reader.access.exists(ReplicaDescription.name)
        try await replica.caughtUp()
        return try await replica.maintain()
    }

    private func names(_ folder: String) -> [String] {
        remote.objects.keys.filter { $0.hasPrefix(folder) }.sorted()
    }

    // MARK: Histories

    @Test func `each commit that is kept restores as the store was, whatever came between`()
        async throws
    {
        var random = SeededGenerator(seed: testSeed())
        let store = try makeStore()
        var options = options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (5, 3)
        var model: [ReplicaPosition: [Int]] = [:]
        var next = 0
        var snapshotCount = 0
        for day in 1...16 {
            var taking = options
            // On some days the owner of before was killed.
            taking.takesOverFrom = "tests"
            let replica = try await store.replicate(to: remote, taking)
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                try change(store, &next, &random)
                model[try await replica.caughtUp()] = try numbers(in: store)
            }
            if try await nextDay(replica) { snapshotCount += 1 }
            if day.isMultiple(of: 3) { try await replica.close() }
        }
        try await store.close()
        #expect(snapshotCount > 7)
        let kept = Set(try await history().commits.map(\.position))
        #expect(kept.intersection(model.keys).count > 3)
        #expect(Set(model.keys).subtracting(kept).count > 3)
        for (position, expected) in model {
            if kept.contains(position) {
                let found = try await restoredNumbers("copy", at: .position(position))
                #expect(found == expected, "\(position)")
            } else {
                await expect(.notFound) { try await restore("copy", at: .position(position)) }
            }
        }
        for position in kept.subtracting(model.keys) {
            try await restore("copy", at: .position(position))
            removeStore(folder.path("copy"))
        }
        let commits = try await history().commits
        for commit in commits {
            let report = try await restore("copy", at: .time(commit.date))
            // The estimates of the remote's time differ by some milliseconds within a day.
            let before = commits.last { $0.date < commit.date - 3600 }
            #expect(report.time <= commit.date)
            if let before { #expect(report.position >= before.position) }
            removeStore(folder.path("copy"))
        }
        let newest = try #require(model.keys.max())
        #expect(try await restoredNumbers("copy", at: .newest) == model[newest])
        // A position that was kept elsewhere, and is not kept here any more, is in the past.
        let oldest = try #require(model.keys.min())
        #expect(!kept.contains(oldest))
        try await restore("old", atLeast: oldest)
    }

    private func change(
        _ store: Store, _ next: inout Int, _ random: inout SeededGenerator
    ) throws {
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            try store.write { tx in try tx.execute("DELETE FROM t WHERE v % 3 = 1") }
        case 1: try store.compact()
        case 2:
            try store.write { tx in try tx.execute("UPDATE t SET filler = randomblob(50)") }
        default:
            let count = Int.random(in: 1...40, using: &random)
            try insert(next..<next + count, 3000, in: store)
            next += count
        }
    }

    @Test(arguments: [false, true])
    func `a snapshot beside commits has the store of its last commit`(
        hasPasses: Bool
    ) async throws {
        let store = try makeStore()
        try insert(0..<17, 1_000_000, in: store)
        let isOver = Mutex(false)
        let replica = try await store.replicate(to: remote, options)
        let writer = Task.detached {
            var number = 100
            while !isOver.withLock(\.self) {
                let some = number
                try await store.write { tx in
                    try tx.execute(
                        "UPDATE t SET filler = randomblob(900000) WHERE v = \(some % 17)")
                    try tx.execute("INSERT INTO t VALUES (\(some), randomblob(3000))")
                    if some % 10 == 0 { try tx.execute("DELETE FROM t WHERE v % 17 = 7") }
                }
                number += 1
                if hasPasses { try await replica.caughtUp() }
            }
        }
        for number in [1_000_000, 1_000_001] {
            try insert([number], 10, in: store)
            #expect(try await nextDay(replica))
        }
        isOver.withLock { $0 = true }
        try await writer.value
        let expected = try numbers(in: store)
        try await replica.close()
        let index = try #require(try await lastIndex(store))
        try await store.close()
        // The records before the snapshot are not needed.
        for name in names("log/") {
            guard let slot = Slot(name: name), slot.number > 0, slot <= index.begin else {
                continue
            }
            remote.objects[name] = [0]
        }
        #expect(try await restoredNumbers("copy", at: .newest) == expected)
    }

    private func lastIndex(_ store: Store) async throws -> SnapshotIndex? {
        let access = RemoteAccess.testing(remote)
        let description = try await ReplicaDescription.existing(access)
        let keys = ReplicaKeys(
            try store.replicaSource().secret(), replica: description.replicaNumber)
        let reader = LogReader(access: access, keys: keys)
        let end = try #require(try await reader.end())
        return try await reader.index(upTo: end.last)
    }

    // MARK: Parts

    @Test func `a snapshot sends only the parts that have changed, and none of an idle store`()
        async throws
    {
        let store = try makeStore()
        try insert(0..<17, 1_000_000, in: store)
        let replica = try await store.replicate(to: remote, options)
        #expect(try await replica.maintain() == false)
        #expect(try await nextDay(replica))
        let all = names("snap/")
        #expect(all.count == 3)
        try insert([17], 10, in: store)
        #expect(try await nextDay(replica))
        #expect((1...2).contains(names("snap/").count - all.count))
        let count = remote.objects.count
        #expect(try await nextDay(replica) == false)
        #expect(remote.objects.count == count)
        try await replica.close()
        // The next run knows of the snapshot.
        let again = try await store.replicate(to: remote, options)
        #expect(try await nextDay(again) == false)
        try await again.close()
        try await store.close()
        #expect(try await restoredNumbers("copy", at: .newest) == Array(0...17))
    }

    @Test
    func `for a damaged part an earlier snapshot gives the same commit, and the damage is told`()
        async throws
    {
        let store = try makeStore()
        try insert(0..<5, 3000, in: store)
        let replica = try await store.replicate(to: remote, options)
        try insert(5..<8, 3000, in: store)
        #expect(try await nextDay(replica))
        let first = names("snap/")
        try insert(8..<10, 3000, in: store)
        #expect(try await nextDay(replica))
        try await replica.close()
        try await store.close()
        #expect(try await restore("whole").damage == nil)
        let part = try #require(names("snap/").first { !first.contains($0) })
        let bytes = try #require(remote.objects[part])
        for damage in [nil, Array(bytes.dropLast()), remote.objects[first[0]]] {
            remote.objects[part] = damage
            let report = try await restore("copy")
            #expect(report.damage?.code == .remoteDamaged)
            #expect(report.copy.rowCount == 10)
            removeStore(folder.path("copy"))
        }
        // Nothing is left to begin with.
        remote.objects = remote.objects.filter { name, _ in
            name.hasPrefix("snap/") || Slot(name: name).map { $0.number != 1 } ?? true
        }
        remote.objects[first[0]] = nil
        await expect(.remoteDamaged) { try await restore("copy") }
    }

    @Test func `a snapshot that fails is told, and the next one sends only what is missing`()
        async throws
    {
        let store = try makeStore()
        try insert(0..<17, 1_000_000, in: store)
        let replica = try await store.replicate(to: remote, options)
        remote.denyAfterCreate { $0.hasSuffix("/00000001") }
        await expect(.remoteDenied) { _ = try await nextDay(replica) }
        #expect(try await replica.maintain() == false)
        #expect((await replica.status.snapshotFailure?.error as? StoreError)?.code == .remoteDenied)
        #expect(await replica.status.failure == nil)
        let sent = names("snap/")
        #expect(sent.count == 2)
        #expect(try await nextDay(replica))
        #expect(await replica.status.snapshotFailure == nil)
        // The first is taken, and nobody knew that the second was there.
        #expect(names("snap/").count == 4 && names("snap/").contains(sent[0]))
        try await replica.close()
        try await store.close()
        let report = try await restore("copy")
        #expect(report.damage == nil && report.copy.rowCount == 17)
    }

    @Test
    func `damage after a snapshot is an error, and no snapshot of weeks ago stands in for it`()
        async throws
    {
        let store = try makeStore()
        var options = options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (4, 2)
        let replica = try await store.replicate(to: remote, options)
        for day in 1...5 {
            try insert([day], 3000, in: store)
            #expect(try await nextDay(replica))
        }
        try insert([6], 3000, in: store)
        let last = try await replica.caughtUp()
        try await replica.close()
        try await store.close()
        // A moment before the damage does not need what is damaged.
        let before = try #require(try await history().commits.last { $0.position < last })
        let record = try #require(remote.objects[last.slot.name])
        remote.objects[last.slot.name] = Array(record.dropLast())
        await expect(.remoteDamaged) { try await restore("copy") }
        await expect(.remoteDamaged) { try await restore("copy", at: .time(.distantFuture)) }
        let earlier = try await restoredNumbers("copy", at: .position(before.position))
        #expect(earlier == Array(1...5))
        remote.objects[last.slot.name] = record
        #expect(try await restoredNumbers("copy", at: .newest) == Array(1...6))
        // One that is kept without the commits around it, and is put back, is an old copy.
        let old = try #require(try await history().commits.first)
        try await restore("store2.db", at: .position(old.position))
        let copy = try open("store2.db")
        await expect(.remoteAhead) { _ = try await copy.replicate(to: remote, options) }
        var keeping = options
        keeping.keepsFileAt = old.position
        try await copy.replicate(to: remote, keeping).close()
        try await copy.close()
    }

    @Test
    func `a record that is lost before a snapshot does not keep what came later from a restore`()
        async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        var positions: [ReplicaPosition] = []
        for number in 1...4 {
            try insert([number], 3000, in: store)
            positions.append(try await replica.caughtUp())
        }
        let before = remote.objects
        try insert([5], 3000, in: store)
        #expect(try await nextDay(replica))
        try insert([6], 3000, in: store)
        let last = try await replica.caughtUp()
        try await replica.close()
        var foundCount = 0
        // The first record names the owner.
        for lost in before.keys.sorted() where lost.hasPrefix(Slot.folder) {
            let record = remote.objects[lost]
            remote.objects[lost] = nil
            let report = try await restore("copy", atLeast: last)
            if let damage = report.damage {
                #expect(damage.code == .remoteDamaged && damage.message.contains("missing"))
                foundCount += 1
            }
            let copy = try open("copy")
            #expect(try numbers(in: copy) == Array(1...6))
            try await copy.close()
            removeStore(folder.path("copy"))
            if report.damage != nil {
                // Nobody goes on behind a hole.
                await expect(.remoteDamaged) { _ = try await store.replicate(to: remote, options) }
                try await expectMoments(positions, before: lost)
            }
            remote.objects[lost] = record
        }
        #expect(foundCount > 1)
        // The record of a snapshot is lost, which every later record names.
        let end = try #require(try await replica.reader.end()).last
        let snapshot = try #require(end.snapshot).name
        let record = remote.objects[snapshot]
        remote.objects[snapshot] = nil
        let earlier = try await restoredNumbers("copy", at: .position(positions[1]))
        #expect(earlier == [1, 2])
        remote.objects[snapshot] = record
        // Behind the snapshot nothing stands in for a record.
        let lost = Slot(term: last.slot.term, number: last.slot.number - 1).name
        remote.objects[lost] = nil
        await expect(.remoteDamaged) { try await restore("copy") }
        try await store.close()
    }

    @Test func `a time before a record that is lost in a later run is restored, and listed`()
        async throws
    {
        let store = try makeStore()
        // As from cron: a term for each commit.
        for number in 1...4 {
            try insert([number], 3000, in: store)
            try await store.replicate(to: remote, options).close()
            remote.advance(3600)
        }
        try await store.close()
        let commits = try await history().commits
        for term in 2...4 as ClosedRange<UInt64> {
            let lost = Slot(term: term, number: 1).name
            let record = try #require(remote.objects[lost])
            for damaged in [nil, Array(record.dropLast())] {
                remote.objects[lost] = damaged
                for commit in commits where commit.position.slot.term < term {
                    let numbers = try await restoredNumbers("copy", at: .time(commit.date + 60))
                    #expect(numbers == Array(1...Int(commit.position.slot.term)))
                }
            }
            remote.objects[lost] = nil
            let found = try await history()
            #expect(found.damage?.code == .remoteDamaged)
            #expect(found.commits == commits.filter { $0.position.slot.name < lost })
            remote.objects[lost] = record
        }
    }

    /// Moments before a record that is lost can be listed and restored.
    private func expectMoments(_ positions: [ReplicaPosition], before lost: String) async throws {
        let found = try await history()
        #expect(found.damage?.code == .remoteDamaged)
        for (index, position) in positions.enumerated() where position.slot.name < lost {
            #expect(found.commits.contains { $0.position == position })
            let numbers = try await restoredNumbers("copy", at: .position(position))
            #expect(numbers == Array(1...index + 1))
        }
    }

    // MARK: Deleting

    @Test func `what is not kept is deleted a day later, and no mark, takeover or beginning is`()
        async throws
    {
        let store = try makeStore()
        var options = options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (2, 2)
        options.deletes = false
        var takeovers: [String] = []
        for term in 1...5 {
            let replica = try await store.replicate(to: remote, options)
            try insert(term * 10..<term * 10 + 3, 3000, in: store)
            #expect(try await nextDay(replica))
            try await replica.close()
            takeovers.append(try #require(names("log/").last))
        }
        try await store.close()
        let before = remote.objects
        // A record that a remote denies for a moment costs no snapshot its parts.
        let record = try #require(
            before.keys.sorted().last { name in
                guard let slot = Slot(name: name), let bytes = before[name] else { return false }
                return (try? RecordHeader(bytes, at: slot))?.kind == .snapshot
            })
        remote.objects[record] = nil
        await expect(.remoteDamaged) { _ = try await remote.purge(key: .numbered(1)) }
        #expect(remote.objects.count == before.count - 1)
        remote.objects[record] = before[record]
        // The snapshot of the last day has left out some. That is not a day ago.
        let first = try await remote.purge(key: .numbered(1))
        remote.advance(86_400)
        let second = try await remote.purge(key: .numbered(1))
        #expect(first > 0 && second > 0)
        #expect(try await remote.purge(key: .numbered(1)) == 0)
        let deleted = before.keys.filter { remote.objects[$0] == nil }
        #expect(deleted.count == first + second)
        for name in deleted {
            guard let slot = Slot(name: name) else { continue }
            #expect(slot.number > 0 && slot.term < 5)
            let header = try RecordHeader(try #require(before[name]), at: slot)
            #expect([.segment, .snapshot, .closed].contains(header.kind), "\(name)")
        }
        #expect(names("snap/").count == 2)
        #expect(try await LogEnd(access: .testing(remote)).last()?.term == 5)
        for commit in try await history().commits {
            try await restore("copy", at: .position(commit.position))
            removeStore(folder.path("copy"))
        }
        #expect(try await restoredNumbers("copy", at: .newest).count == 15)
    }

    @Test func `an owner that was taken over deletes nothing, and makes no snapshot`() async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        try insert(0..<3, 3000, in: store)
        #expect(try await nextDay(replica))
        var taking = options
        taking.takesOverFrom = "tests"
        let other = try await store.replicate(to: remote, taking)
        try insert(3..<6, 3000, in: store)
        await expect(.fenced) { _ = try await nextDay(replica) }
        #expect(try await nextDay(other))
        try await other.close()
        try await store.close()
        #expect(try await restoredNumbers("copy", at: .newest) == Array(0..<6))
    }
}
