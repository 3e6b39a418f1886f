import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// Machines that take themselves for another one: a clone that wakes up after days, and a server
/// that was set up like another.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaCloneTests {
    /// How many snapshots are kept: as many as are needed to keep the last record of the clone, or
    /// so few that it is deleted.
    enum Kept: Int, CaseIterable {
        case few = 2
        case many = 20
    }

    @Test(arguments: [true, false], Kept.allCases)
    func `a clone that wakes up after its records were deleted writes and deletes nothing`(
        tellsTimeOfReads: Bool, kept: Kept
    ) async throws {
        let fixture = try ReplicaFixture(tellsTimeOfReads: tellsTimeOfReads)
        var options = fixture.options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (kept.rawValue, 2)
        let store = try fixture.makeStore()
        let clone = try await store.replicate(to: fixture.remote, options)
        for day in 1...3 {
            try fixture.insert(day * 10..<day * 10 + 3, in: store)
            try await fixture.nextDay(clone)
        }
        // The machine is cloned while it deletes.
        try fixture.insert(40..<43, in: store)
        fixture.remote.deniesDeletion = true
        let isDenied = await isDenied { try await fixture.nextDay(clone) }
        fixture.remote.deniesDeletion = false
        #expect(isDenied == (kept == .few))
        // The other machine goes on in the same term.
        let reader = try await fixture.reader(of: store)
        let end = try #require(try await reader.end())
        let next = end.last.slot.next
        fixture.remote.objects.merge(try records(1100, after: end.last, by: reader.keys)) { $1 }
        // The original machine restarts, and deletes the records that it no longer has to keep.
        let original = try fixture.copy(store, as: "original.db")
        options.takesOverFrom = "tests"
        let later = try await original.replicate(to: fixture.remote, options)
        for day in 5...7 {
            try fixture.insert(day * 10..<day * 10 + 3, in: original)
            try await fixture.nextDay(later)
        }
        #expect(fixture.remote.objects[next.name] == nil)
        #expect((fixture.remote.objects[end.last.slot.name] != nil) == (kept == .many))

        let before = fixture.remote.objects
        let commits = try await fixture.history().commits
        let code = StoreError.Code.fenced
        _ = try? await clone.maintain()
        try fixture.insert(1000..<1003, in: store)
        for _ in 0..<2 { await expect(code) { _ = try await clone.caughtUp() } }
        await expect(code) { _ = try await clone.maintain() }
        await expect(code) { try await clone.close() }

        #expect(before.allSatisfy { fixture.remote.objects[$0.key] == $0.value })
        // The clone may have filled a free slot in the past.
        let new = Set(fixture.remote.objects.keys).subtracting(before.keys)
        #expect(new.isSubset(of: [next.name]))
        #expect(try await fixture.history().commits == commits)
        for commit in commits {
            #expect(try await fixture.restoredNumbers(at: .position(commit.position)).count > 0)
        }
        // The other one goes on, and so does the store of the clone.
        try fixture.insert([100], in: original)
        try await later.caughtUp()
        try fixture.insert([1003], in: store)
        #expect(
            try await fixture.restoredNumbers(at: .newest) == fixture.numbers(in: original))
        try await later.close()
        for store in [store, original] { try await store.close() }
    }

    private func isDenied(_ work: () async throws -> Bool) async -> Bool {
        do { _ = try await work() } catch { return (error as? StoreError)?.code == .remoteDenied }
        return false
    }

    /// Records of the owner of a term that follow its last one.
    private func records(
        _ count: Int, after last: LogReader.Found, by keys: ReplicaKeys
    ) throws -> [String: [UInt8]] {
        var objects: [String: [UInt8]] = [:]
        var (slot, hash, record) = (last.slot, last.sealed.hash, last.record)
        record.pages = []
        record.note = .init(snapshot: last.snapshot, wholeTerm: last.wholeTerm)
        for _ in 0..<count {
            slot = slot.next
            let sealed = try SealedRecord(
                slot.isForMark ? .mark : .segment, record, at: slot, after: hash, by: keys)
            (hash, objects[slot.name]) = (sealed.hash, sealed.bytes)
        }
        return objects
    }

    @Test func `of two servers set up alike one is fenced, and the other is not disturbed again`()
        async throws
    {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        let first = try await store.replicate(to: fixture.remote, fixture.options)
        try fixture.insert(1..<4, in: store)
        try await first.caughtUp()
        let other = try fixture.copy(store, as: "other.db")
        // Both have the same name. The first one has had nothing to send for long.
        fixture.advance(.seconds(100_000))
        try fixture.insert(10..<13, in: other)
        let second = try await other.replicate(to: fixture.remote, fixture.options)
        try fixture.insert(20..<23, in: store)
        for _ in 0..<2 { await expect(.fenced) { _ = try await first.caughtUp() } }
        #expect(await first.status.end?.code == .fenced)

        // A supervisor starts the first one again, while the second one writes.
        for round in 1...2 {
            var options = fixture.options
            options.sleep = { _ in
                try fixture.insert([100 + round], in: other)
                try await second.caughtUp()
            }
            await expect(.ownedElsewhere) {
                _ = try await store.replicate(to: fixture.remote, options)
            }
        }
        try fixture.insert([4], in: store)
        try await second.caughtUp()
        #expect(try await fixture.restoredNumbers(at: .newest) == fixture.numbers(in: other))
        try await second.close()
        for store in [store, other] { try await store.close() }
    }
}
