import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// A changed byte of any object.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaDamageTests {
    /// Every byte in a long run, and of the others each 499th by default.
    @Test func `each flipped byte of each object is told, and no wrong file is made`() async throws
    {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        var told: [ReplicaPosition: [Int]] = [:]
        let replica = try await store.replicate(to: fixture.remote, fixture.options)
        told[try await replica.caughtUp()] = []
        for number in 0..<2 {
            try fixture.insert([number], 100, in: store)
            told[try await replica.caughtUp()] = try fixture.numbers(in: store)
            try await fixture.nextDay(replica)
        }
        try await replica.close()
        try await store.close()
        let remote = fixture.remote
        let objects = remote.objects.filter { $0.key != "clock" }
        #expect(objects.keys.contains { $0.hasPrefix(SnapshotPartName.folder) })
        let step = tryCount(499, long: 1)
        let first = Int(testSeed()) % step
        var tally = Tally()
        for (name, bytes) in objects.sorted(by: { $0.key < $1.key }) {
            for index in stride(from: first, to: bytes.count, by: step) {
                var changed = bytes
                changed[index] ^= 1 << UInt8(index % 8)
                remote.objects[name] = changed
                let isTold = try await isTold(fixture, told)
                tally.add(isTold ? [] : ["nobody told"], "\(name), byte \(index)")
            }
            remote.objects[name] = bytes
        }
        #expect(try await !isTold(fixture, told))
        try tally.expectNothingLost("flipped bytes of a replica")
    }

    /// Whether a restore of some commit fails, or tells of damage. A restore that succeeds must be
    /// right.
    private func isTold(
        _ fixture: ReplicaFixture, _ told: [ReplicaPosition: [Int]]
    ) async throws -> Bool {
        var isTold = false
        let path = fixture.folder.path("copy.db")
        for (position, numbers) in told.sorted(by: { $0.key > $1.key }) where !isTold {
            do {
                let report = try await Store.restore(
                    from: fixture.remote, to: path, key: .numbered(1), at: .position(position),
                    configuration: .testing())
                defer { removeStore(path) }
                isTold = report.damage != nil
                let copy = try fixture.open("copy.db")
                defer { try? copy.close() }
                #expect(try fixture.numbers(in: copy) == numbers)
            } catch is StoreError {
                isTold = true
                #expect(!FileManager.default.fileExists(atPath: path))
            }
        }
        return isTold
    }
}
