import Foundation
import Workload

@testable import Coffer

extension BucketProcessHarness {
    /// Kills the process amid its verbs, again and again.
    ///
    /// Each time the bucket has to be as the last reported transaction left it, or as the next one
    /// does, which the process had no time to report.
    func kill(times killCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let clock = HandClock()
        try BucketFixture.open(folder, clock, keeping.journalMode).close()
        var model = BucketModel(keys)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for number in 0..<killCount {
            let turnSeed = random.next()
            let lines = try linesUntilKilled(folder.path(), model, turnSeed, using: &random)
            do {
                if let last = lines.last { model = try BucketModel(keys, line: last) }
                let next = try modelAfter(model, seed: turnSeed &+ UInt64(lines.count))
                model = try found(folder, clock, reported: model, unreported: next)
                tally.add([], "")
            } catch {
                tally.add(["\(error)"], "\(keeping), kill \(number), seed \(seed)")
                return tally
            }
        }
        return tally
    }

    /// Kills the process amid its verbs, and returns the models that it reported.
    private func linesUntilKilled(
        _ path: String, _ model: BucketModel<Key>, _ seed: UInt64,
        using random: inout SeededGenerator
    ) throws -> [String] {
        let peer = try startPeer(path)
        peer.send("\(seed) 1000000 \(try model.line)")
        var lines: [String] = []
        for _ in 0..<Int.random(in: 0...20, using: &random) {
            guard let line = peer.line() else { break }
            lines.append(line)
        }
        usleep(UInt32.random(in: 0...2000, using: &random))
        peer.kill()
        while let line = peer.line() { lines.append(line) }
        // The kill may have cut the last one off; then its transaction was not reported.
        if let last = lines.last, !last.hasSuffix("}") { lines.removeLast() }
        return lines
    }

    /// The model after the transaction with this seed, which is run on a store of its own.
    private func modelAfter(
        _ model: BucketModel<Key>, seed: UInt64
    ) throws -> BucketModel<Key> {
        let folder = try TemporaryFolder()
        let clock = HandClock()
        let store = try BucketFixture.open(folder, clock)
        defer { try? store.close() }
        let verbs = BucketVerbs(model, store, clock)
        try verbs.fill()
        var random = SeededGenerator(seed: seed)
        try verbs.transaction(&random)
        return verbs.model
    }

    /// Returns the one of the two models that the bucket agrees with.
    private func found(
        _ folder: TemporaryFolder, _ clock: HandClock, reported: BucketModel<Key>,
        unreported: BucketModel<Key>
    ) throws -> BucketModel<Key> {
        let store = try BucketFixture.open(folder, clock, keeping.journalMode)
        defer { try? store.close() }
        let problems = try store.read { tx in try tx.integrityProblems() }
        guard problems.isEmpty else { throw WorkloadError("\(problems)") }
        let verbs = BucketVerbs(reported, store, clock)
        do {
            try verbs.compareAll()
            return reported
        } catch is WorkloadError {
            verbs.model = unreported
            try verbs.compareAll()
            return unreported
        }
    }
}
