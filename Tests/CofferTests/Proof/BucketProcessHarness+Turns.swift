import Workload

@testable import Coffer

extension BucketProcessHarness {
    /// Lets this process and the other one do verbs by turns, and hands one model from one to the
    /// other: each has to find what the other one left.
    ///
    /// - Parameter turnCount: Each is one to five transactions of up to eight verbs.
    func takeTurns(_ turnCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let clock = HandClock()
        let store = try BucketFixture.open(folder, clock, keeping.journalMode, cache)
        defer { try? store.close() }
        let verbs = BucketVerbs(BucketModel(keys), store, clock)
        let peer = try startPeer(folder.path())
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
