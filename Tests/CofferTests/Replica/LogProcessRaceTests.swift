import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Owners in processes of their own that take over from each other in a folder, and are stopped
/// for a while at random moments.
@Suite(.againstHanging, .onOwnThreads) struct LogProcessRaceTests {
    private static let ownerCount = 4

    /// The records that the processes were told are there.
    private final class Told: Sendable {
        private let state = Mutex((numbers: [UInt32](), endCount: 0, problems: [String]()))

        var numbers: [UInt32] { state.withLock(\.numbers) }
        var endCount: Int { state.withLock(\.endCount) }
        var problems: [String] { state.withLock(\.problems) }

        func note(_ line: String) {
            state.withLock { state in
                if let number = UInt32(line) {
                    state.numbers.append(number)
                } else if line == "done" {
                    state.endCount += 1
                } else if line != "released" {
                    state.endCount += 1
                    state.problems.append(line)
                }
            }
        }
    }

    @Test func `of four processes that take over from each other, none loses a record`()
        async throws
    {
        try await run(count: tryCount(25, long: 5000), seed: testSeed())
            .expectNothingLost("records of racing processes")
    }

    @Test func `the harness fails on a folder that overwrites`() async throws {
        // The processes may take turns by chance in one run, and then nothing is overwritten.
        var lostCount = 0
        for _ in 0..<8 where lostCount == 0 {
            lostCount += try await run(count: 20, seed: testSeed(), isLying: true).lostCount
        }
        #expect(lostCount > 0)
    }

    /// - Parameter isLying: For tests of tests: the folder overwrites objects.
    private func run(count: Int, seed: UInt64, isLying: Bool = false) async throws -> Tally {
        let folder = try TemporaryFolder()
        var random = SeededGenerator(seed: seed)
        let told = Told()
        let peers = try (0..<Self.ownerCount).map { owner in
            try Peer([
                "own-log", isLying ? "lying" : "truly", folder.url.path, "\(owner)",
                "\(1 + owner * count)", "\(count)",
            ])
        }
        let readers = peers.map { peer in
            onThread { while let line = peer.line() { told.note(line) } }
        }
        while told.endCount < Self.ownerCount {
            // Nobody hears of it. The others take over meanwhile, if they have not ended.
            guard let peer = peers.randomElement(using: &random) else { break }
            kill(peer.processID, SIGSTOP)
            let target = told.numbers.count + Int.random(in: 1...20, using: &random)
            let hasMore = await comesBriefly { told.numbers.count >= target }
            kill(peer.processID, SIGCONT)
            if !hasMore { _ = await comesBriefly { told.endCount == Self.ownerCount } }
        }
        for peer in peers { peer.goOn() }
        for reader in readers { try await reader.value }
        #expect(told.problems == [])
        return try await check(told.numbers, in: folder, count, isLying: isLying)
    }

    /// Whether a condition comes true before the processes have had some time.
    private func comesBriefly(_ condition: () -> Bool) async -> Bool {
        for _ in 0..<200 where !condition() { try? await Task.sleep(for: .milliseconds(1)) }
        return condition()
    }

    /// Follows the chain of records, in which each that was told has to be once, in its order.
    private func check(
        _ told: [UInt32], in folder: TemporaryFolder, _ count: Int, isLying: Bool
    ) async throws -> Tally {
        let keys = ReplicaKeys.testing()
        let reader = LogReader(access: .testing(try FolderRemote(folder.url.path)), keys: keys)
        let end = try #require(try await reader.end())
        let found = Shared<[UInt32]>([])
        do {
            let chain = RecordChain(reader: reader, end: end.last.slot)
            try await chain.follow(from: .first) { record in
                if record.header.kind == .segment {
                    found.update { $0 += record.record.pages.map(\.number) }
                }
                return true
            }
        } catch let error as StoreError where isLying && error.code == .remoteDamaged {
            // The chain is torn.
        }
        let places = Dictionary(grouping: found.value.enumerated(), by: \.element)
        var tally = Tally()
        for number in told {
            let times = places[number]?.count ?? 0
            tally.add(times == 1 ? [] : ["\(times) times in the log"], "record \(number)")
        }
        #expect(end.last.slot.term > UInt64(Self.ownerCount))
        for owner in 0..<Self.ownerCount {
            let own = found.value.filter { (Int($0) - 1) / count == owner }
            if own != own.sorted() { tally.addLate("records of owner \(owner) are out of order") }
        }
        return tally
    }
}
