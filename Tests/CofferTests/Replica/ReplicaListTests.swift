import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// Lists of a remote that are empty, old or short. A list is a hint: the end of the log is found by
/// reads, and what is deleted is decided by records.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaListTests {
    enum List: CaseIterable {
        case empty
        /// As it was before anything was deleted.
        case old
        /// The first names only.
        case short
        /// Without the newest names.
        case late
    }

    @Test(arguments: List.allCases)
    func `with a list that is not right a replica goes on, also after retention`(
        list: List
    ) async throws {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        var options = fixture.options
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (3, 2)
        var told: [ReplicaPosition: [Int]] = [:]
        var next = 0
        /// Commits, lets a day go by, and ends.
        func runDay() async throws {
            let replica = try await store.replicate(to: fixture.remote, options)
            for _ in 0..<3 {
                try fixture.insert([next], in: store)
                next += 1
                told[try await replica.caughtUp()] = try fixture.numbers(in: store)
            }
            #expect(try await fixture.nextDay(replica))
            try await replica.close()
        }
        try await runDay()
        let old = fixture.remote.objects.keys.sorted()
        for _ in 0..<4 { try await runDay() }
        // Some are deleted.
        let deleted = old.filter { fixture.remote.objects[$0] == nil }
        #expect(deleted.contains { $0.hasPrefix("log/") } && deleted.contains(where: isPart))
        let count = try await fixture.history().commits.count

        fixture.remote.list(answer(list, old))
        for _ in 0..<3 { try await runDay() }
        let commits = try await fixture.history().commits
        #expect(commits.count >= count)
        for commit in commits {
            let found = try await fixture.restoredNumbers(at: .position(commit.position))
            if let expected = told[commit.position] { #expect(found == expected) }
        }
        #expect(try await fixture.restoredNumbers(at: .newest) == Array(0..<next))
        // Once the list is right, what was left is deleted too.
        fixture.remote.list(nil)
        try await runDay()
        #expect(try await fixture.history().commits.count >= count)
        #expect(try await fixture.restoredNumbers(at: .newest) == Array(0..<next))
        try await store.close()
    }

    private func isPart(_ name: String) -> Bool { name.hasPrefix(SnapshotPartName.folder) }

    private func answer(_ list: List, _ old: [String]) -> @Sendable ([String]) -> [String] {
        switch list {
        case .empty: { _ in [] }
        case .old:
            { names in
                guard let first = names.first else { return [] }
                // Names of another folder would not be in the list.
                return old.filter { $0 >= first && $0.prefix(4) == first.prefix(4) }
            }
        case .short: { Array($0.prefix(2)) }
        case .late: { $0.dropLast(3) }
        }
    }
}
