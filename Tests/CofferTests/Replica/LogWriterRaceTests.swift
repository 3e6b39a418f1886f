import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Owners that take over from each other at random, over a remote whose answers are lost.
@Suite(.againstHanging, .onOwnThreads) struct LogWriterRaceTests {
    private let keys = ReplicaKeys.testing()

    @Test func `of four owners that race, none loses an acknowledged record`() async throws {
        let seed = testSeed()
        let tally = try await run(
            on: { MemoryRemote($0, seed: seed) }, .init(failurePercentage: 10))
        try tally.expectNothingLost("records of racing owners")
    }

    @Test func `the harness fails on a service that overwrites`() async throws {
        let seed = testSeed()
        let tally = try await run(
            on: { MemoryRemote($0, seed: seed) },
            .init(failurePercentage: 10, overwritePercentage: 30))
        #expect(tally.lostCount > 0)
    }

    private final class Numbers: Sendable {
        private let number = Atomic<UInt32>(0)

        var last: UInt32 { number.load(ordering: .relaxed) }

        func take() -> UInt32 { number.add(1, ordering: .relaxed).newValue }
    }

    private func run(
        on make: (MemoryRemote.Defects) -> MemoryRemote, _ defects: MemoryRemote.Defects
    ) async throws -> Tally {
        let remote = make(defects)
        let next = Numbers()
        let total = UInt32(tryCount(600, long: 60_000))
        let acknowledged = try await withThrowingTaskGroup(of: [UInt32].self) { group in
            for owner in 0..<4 {
                group.addTask {
                    try await write(as: "\(owner)", to: remote, next: next, total)
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let found = Dictionary(grouping: try await read(remote), by: \.self).mapValues(\.count)
        var tally = Tally()
        for number in acknowledged {
            let count = found[number] ?? 0
            tally.add(count == 1 ? [] : ["\(count) times in the log"], "record \(number)")
        }
        if acknowledged.count < total / 2 {
            tally.addLate("only \(acknowledged.count) were acknowledged")
        }
        return tally
    }

    /// Takes over and writes some records, until all numbers are used.
    private func write(
        as name: String, to remote: MemoryRemote, next: Numbers, _ total: UInt32
    ) async throws -> [UInt32] {
        let access = RemoteAccess.testing(remote)
        let owner = LogWriter.Owner(name: name, interval: .seconds(1))
        var acknowledged: [UInt32] = []
        while next.last < total {
            let end: LogReader.End?
            let writer: LogWriter?
            do {
                end = try await LogReader(access: access, keys: keys).end()
                writer = try await LogWriter.begin(
                    after: end, .numbered(0), as: owner, access, keys)
            } catch let error as StoreError
                where [.remoteUnfit, .remoteDamaged].contains(error.code)
            {
                // A service that overwrites is told at a takeover: this client does not listen.
                _ = next.take()
                continue
            }
            for _ in 0..<Int.random(in: 1...30) {
                guard let writer else { break }
                let number = next.take()
                guard (try? await writer.append(.segment, .numbered(number))) != nil else { break }
                acknowledged.append(number)
            }
        }
        return acknowledged
    }

    /// The numbers of all records, along the chain.
    private func read(_ remote: MemoryRemote) async throws -> [UInt32] {
        let reader = LogReader(access: .testing(remote), keys: keys)
        guard let end = try await reader.end()?.last.slot else { return [] }
        var numbers: [UInt32] = []
        do {
            try await RecordChain(reader: reader, end: end).follow(from: .first) { found in
                if found.header.kind == .segment { numbers += found.record.pages.map(\.number) }
                return true
            }
        } catch let error as StoreError where error.code == .remoteDamaged {
            // The chain is torn.
        }
        return numbers
    }
}
