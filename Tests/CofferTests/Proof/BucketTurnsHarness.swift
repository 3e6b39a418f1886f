import Testing
import Workload

@testable import Coffer

/// Two processes take turns of random verbs on a bucket, and one model goes from hand to hand: each
/// has to find what the other one left.
struct BucketTurnsHarness<Key: BucketKey & Codable> {
    let keys: ModelKeys<Key>
    let keeping: Keeping
    let cache: BucketCache?
    /// For tests of tests: the other process does not commit what it says.
    var peerLies = false

    /// - Parameter turnCount: Each is one to five transactions of up to eight verbs.
    func run(turnCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let clock = HandClock()
        let store = try BucketFixture.open(folder, clock, keeping.journalMode, cache)
        defer { try? store.close() }
        let verbs = BucketVerbs(BucketModel(keys), store, clock)
        let peer = try Peer.ofVerbs(folder.path(), Key.self, keeping, cache, isLying: peerLies)
        try #require(peer.line() == "ready")
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for number in 0..<turnCount {
            let count = Int.random(in: 1...5, using: &random)
            let turnSeed = random.next()
            do {
                if number.isMultiple(of: 2) {
                    for _ in 0..<count { try verbs.transaction(&random) }
                } else {
                    peer.send("\(turnSeed) \(count) \(try verbs.model.line)")
                    for _ in 0..<count {
                        let line = peer.line() ?? "the other process ended"
                        guard line.hasPrefix("{") else { throw WorkloadError(line) }
                        verbs.model = try BucketModel(keys, line: line)
                    }
                }
                try verbs.read(&random)
                tally.add([], "")
            } catch {
                tally.add(["\(error)"], "\(keeping), turn \(number), seed \(seed)")
                return tally
            }
        }
        _ = peer.finish()
        do {
            try verbs.compareAll()
        } catch {
            tally.addLate("\(keeping), at the end, seed \(seed): \(error)")
        }
        return tally
    }
}

extension Peer {
    /// A process that takes turns of random verbs on the bucket of a store.
    static func ofVerbs<Key>(
        _ path: String, _ key: Key.Type, _ keeping: Keeping, _ cache: BucketCache?, isLying: Bool
    ) throws -> Peer {
        try Peer([
            "bucket-verbs", isLying ? "lying" : "truly", key == String.self ? "texts" : "integers",
            cache == nil ? "plain" : "cached", path, "1", keeping.journalMode.description,
            keeping.durability == .power ? "power" : "process",
        ])
    }
}
