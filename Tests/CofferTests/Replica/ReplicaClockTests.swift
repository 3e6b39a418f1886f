import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// Clocks that are wrong for a while: that of an owner, and that of a remote.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaClockTests {
    private static let distantDate = Date(timeIntervalSince1970: 4_086_547_200)

    /// A commit, and when the remote got it.
    private struct Told {
        let position: ReplicaPosition
        let date: Date
        let numbers: [Int]
    }

    @Test(arguments: [true, false])
    func `commits of an owner whose clock shows 2099 have the time of the remote`(
        tellsTimeOfReads: Bool
    ) async throws {
        let fixture = try ReplicaFixture(tellsTimeOfReads: tellsTimeOfReads)
        let store = try fixture.makeStore()
        var told: [Told] = []
        // Owners with a right clock and those with a wrong one take turns.
        for term in 0..<6 {
            var options = fixture.options
            if term % 3 != 0 { options.currentDate = { Self.distantDate } }
            let replica = try await store.replicate(to: fixture.remote, options)
            for number in 0..<2 {
                fixture.advance(.seconds(3600))
                try await fixture.tellTime(to: replica)
                try fixture.insert([term * 10 + number], in: store)
                let position = try await replica.caughtUp()
                told.append(
                    Told(
                        position: position, date: fixture.date,
                        numbers: try fixture.numbers(in: store)))
            }
            try await replica.close()
        }
        try await store.close()
        let dates = try await fixture.history().commits.reduce(into: [:]) { dates, commit in
            dates[commit.position] = commit.date
        }
        for some in told {
            let date = try #require(dates[some.position])
            #expect(abs(date.timeIntervalSince(some.date)) < 60, "\(some.position)")
            let found = try await fixture.restoredNumbers(at: .time(some.date + 60))
            #expect(found == some.numbers, "at \(some.position)")
        }
    }

    @Test func `an owner whose clock shows 2099 makes snapshots each day, and keeps as many`()
        async throws
    {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        var told: [ReplicaPosition: [Int]] = [:]
        for term in 0..<3 {
            var options = fixture.options
            (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (4, 2)
            if term == 1 { options.currentDate = { Self.distantDate } }
            let replica = try await store.replicate(to: fixture.remote, options)
            for day in 0..<3 {
                try fixture.insert([term * 10 + day], in: store)
                told[try await replica.caughtUp()] = try fixture.numbers(in: store)
                #expect(try await fixture.nextDay(replica), "term \(term), day \(day)")
            }
            try await replica.close()
        }
        try await store.close()
        let commits = try await fixture.history().commits
        let kept = commits.filter { told[$0.position] != nil }
        // The last three commits, and those of the snapshots before.
        #expect(kept.count >= 4)
        for commit in kept {
            let found = try await fixture.restoredNumbers(at: .position(commit.position))
            #expect(found == told[commit.position])
        }
    }

    @Test func `a remote whose clock shows 2099 for a while loses nothing that is kept`()
        async throws
    {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        var options = fixture.options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (20, 20)
        var told: [ReplicaPosition: [Int]] = [:]
        let leap = Self.distantDate.timeIntervalSince(ReplicaFixture.start)
        for term in 0..<3 {
            // The clock leaps amid the term, and back amid the next one.
            let replica = try await store.replicate(to: fixture.remote, options)
            for number in 0..<4 {
                if number == 2, term < 2 { fixture.remote.advance(term == 0 ? leap : -leap) }
                try fixture.insert([term * 10 + number], in: store)
                told[try await replica.caughtUp()] = try fixture.numbers(in: store)
                try await fixture.nextDay(replica)
            }
            try await replica.close()
        }
        let newest = try fixture.numbers(in: store)
        try await store.close()
        let commits = Set(try await fixture.history().commits.map(\.position))
        #expect(commits.isSuperset(of: told.keys))
        for (position, numbers) in told {
            #expect(try await fixture.restoredNumbers(at: .position(position)) == numbers)
        }
        #expect(try await fixture.restoredNumbers(at: .newest) == newest)
    }
}
