import Foundation
import Testing
import Workload

@testable import Coffer

/// Eight clients in two processes on one store: an order must explain what all of them saw.
struct LinearizabilityHarness {
    let journalMode: Configuration.JournalMode
    var place = RegisterPlace.table
    /// Whether both processes keep decoded values of the bucket.
    var isCached = false
    /// For tests of tests: the clients of the other process answer reads from what they remember.
    var isStale = false

    private static let operationCount = 8

    func run(historyCount: Int, seed: UInt64) async throws -> Tally {
        let folder = try TemporaryFolder()
        let path = folder.path()
        var configuration = Configuration.testing(journalMode)
        // Power loss is not part of the question.
        configuration.durability = .process
        configuration.bucketCache = isCached ? BucketCache(maximumCount: 10) : nil
        let store = try await Store(path: path, key: .numbered(1), configuration: configuration)
        try await store.write { tx in try RegisterClients.create(tx, in: place) }
        let peer = try Peer([
            "registers", isStale ? "stale" : "fresh", place.rawValue,
            isCached ? "cached" : "uncached", path, "1", journalMode.description, "process",
        ])
        try #require(peer.line() == "ready")
        let clients = RegisterClients(store: store, firstClient: 0, place: place)
        var tally = Tally()
        for number in 0..<historyCount {
            try await store.write { tx in try RegisterClients.reset(tx, in: place) }
            let historySeed = seed &* 1_000_000 &+ UInt64(number)
            let history = try await history(clients, peer, seed: historySeed)
            let keys = HistoryChecker().inexplicableKeys(history)
            var problems = keys.map { key in
                let lines = history.filter { $0.key == key }.sorted { $0.start < $1.start }
                return "register \(key):\n" + lines.map(\.line).joined(separator: "\n")
            }
            // Too few calls would be explained by any order, and so would those of one process
            // alone.
            let theirs = history.count { $0.client >= RegisterClients.clientCount }
            let counts = [history.count - theirs, theirs]
            let countMin = Self.operationCount * RegisterClients.clientCount * 3 / 4
            if counts.contains(where: { $0 < countMin }) {
                problems.append("of the two processes only \(counts) calls returned")
            }
            tally.add(problems, "\(journalMode), history \(historySeed)")
        }
        _ = peer.finish()
        try await store.close()
        return tally
    }

    /// Both processes begin at the same time.
    private func history(
        _ clients: RegisterClients, _ peer: Peer, seed: UInt64
    ) async throws -> [RegisterCall] {
        let time = RegisterClients.now + 2_000_000
        peer.send("\(seed) \(Self.operationCount) \(time)")
        var operations = await clients.run(
            seed: seed, operationCount: Self.operationCount, from: time)
        while let line = peer.line(), line != "end" {
            let call = RegisterCall(line: line)
            operations.append(try #require(call, "\(line)"))
        }
        return operations
    }
}
