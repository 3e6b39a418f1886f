import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferReplica

/// A sender that ends at some call of its remote, before or after the call has had its effect.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaStepTests {
    /// The positions that the sender was told, and the rows at each.
    private final class Told: Sendable {
        private let state = Mutex([(position: ReplicaPosition, numbers: [Int])]())

        var all: [(position: ReplicaPosition, numbers: [Int])] { state.withLock(\.self) }

        func note(_ position: ReplicaPosition, _ numbers: [Int]) {
            state.withLock { $0.append((position, numbers)) }
        }
    }

    @Test(arguments: [false, true])
    func `a sender that ends at any call of its remote loses nothing that it was told`(
        hasEffect: Bool
    ) async throws {
        // The first run proves the remote, which is not proven again.
        _ = try await problems(endingAt: nil, hasEffect)
        let whole = try await problems(endingAt: nil, hasEffect)
        #expect(whole.problems.isEmpty)
        #expect(whole.callCount > 80)
        var tally = Tally()
        let step = tryCount(isProof ? 3 : 23, long: 1)
        let first = 1 + Int(testSeed()) % step
        for call in stride(from: first, through: whole.callCount, by: step) {
            let found = try await problems(endingAt: call, hasEffect)
            tally.add(found.problems, "ended at call \(call), with its effect: \(hasEffect)")
        }
        try tally.expectNothingLost("ends of a sender")
    }

    @Test func `the harness fails when rows are told before the remote has them`() async throws {
        let callCount = try await problems(endingAt: nil, true).callCount
        var lostCount = 0
        for call in stride(from: callCount / 2, to: callCount, by: 11) where lostCount == 0 {
            lostCount += try await problems(endingAt: call, true, tellsEarly: true).problems.count
        }
        #expect(lostCount > 0)
    }

    /// - Parameter tellsEarly: For tests of tests: the sender takes rows for sent before they are.
    private func problems(
        endingAt call: Int?, _ hasEffect: Bool, tellsEarly: Bool = false
    ) async throws -> (callCount: Int, problems: [String]) {
        let fixture = try ReplicaFixture()
        let remote = EndingRemote(fixture.remote, at: call, hasEffect)
        let told = Told()
        let store = try fixture.makeStore()
        do {
            try await work(fixture, store, remote, told, tellsEarly)
        } catch let error as StoreError where error.code == .remoteDenied {
            // It says nothing more.
        }
        var problems: [String] = []
        let last = told.all.last
        if let last {
            let newest = try await fixture.restoredNumbers(at: .newest)
            if newest.count < last.numbers.count {
                problems.append("told of \(last.numbers.count) rows, and \(newest.count) are there")
            }
            let kept = Set(try await fixture.history().commits.map(\.position))
            for (position, numbers) in told.all where kept.contains(position) {
                let found = try await fixture.restoredNumbers(at: .position(position))
                if found != numbers { problems.append("\(found) at \(position)") }
            }
            if !kept.contains(last.position) { problems.append("the last position is not kept") }
        }
        // The next owner goes on.
        var options = fixture.options
        options.takesOverFrom = "tests"
        let next = try await store.replicate(to: fixture.remote, options)
        try fixture.insert([1000], in: store)
        try await fixture.nextDay(next)
        try await next.close()
        let newest = try await fixture.restoredNumbers(at: .newest)
        if newest != (try fixture.numbers(in: store)) { problems.append("\(newest) afterwards") }
        try await store.close()
        return (remote.callCount, problems)
    }

    /// Commits, snapshots, and what they delete.
    private func work(
        _ fixture: ReplicaFixture, _ store: Store, _ remote: EndingRemote, _ told: Told,
        _ tellsEarly: Bool
    ) async throws {
        var options = fixture.options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (2, 2)
        var next = 0
        for _ in 0..<2 {
            let replica = try await store.replicate(to: remote, options)
            for _ in 0..<2 {
                try fixture.insert(next..<next + 2, in: store)
                next += 2
                let numbers = try fixture.numbers(in: store)
                if tellsEarly { told.note(try #require(await replica.status.position), numbers) }
                let position = try await replica.caughtUp()
                if !tellsEarly { told.note(position, numbers) }
                try await fixture.nextDay(replica)
            }
            try await replica.close()
        }
    }
}

/// A remote whose user ends at some call: all later ones fail.
private final class EndingRemote: Remote {
    private let remote: MemoryRemote
    private let last: Int?
    private let hasEffect: Bool
    private let calls = Mutex(0)

    /// - Parameters:
    ///   - last: The call at which the user ends, counted from 1; `nil` if it does not.
    ///   - hasEffect: Whether that call is done.
    init(_ remote: MemoryRemote, at last: Int?, _ hasEffect: Bool) {
        (self.remote, self.last, self.hasEffect) = (remote, last, hasEffect)
    }

    var place: String { "ending memory" }
    var callCount: Int { calls.withLock(\.self) }

    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation> {
        try await call { try await remote.create(name, bytes) }
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        try await call { try await remote.read(name, range) }
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await call { try await remote.names(withPrefix: prefix, after: name) }
    }

    func delete(_ name: String) async throws {
        try await call { try await remote.delete(name) }
    }

    private func call<T>(_ work: () async throws -> T) async throws -> T {
        let number = calls.withLock { calls in
            calls += 1
            return calls
        }
        guard let last, number >= last else { return try await work() }
        if number == last, hasEffect { _ = try await work() }
        throw StoreError(.remoteDenied, "the caller has ended")
    }
}
