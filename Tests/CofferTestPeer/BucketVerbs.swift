import Coffer
import Foundation
import Workload

/// Takes turns of random verbs: for each line of input, with a seed, a number of transactions and
/// the model before them, prints the model after each transaction.
func runVerbs<Key: BucketKey & Codable>(_ verbs: BucketVerbs<Key>, isLying: Bool) throws {
    verbs.lies = isLying
    say("ready")
    while let line = readLine() {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count == 3, let seed = UInt64(words[0]), let count = UInt64(words[1]) else {
            throw WorkloadError("not a turn: \(line)")
        }
        verbs.model = try BucketModel(verbs.model.keys, line: String(words[2]))
        for number in 0..<count {
            var random = SeededGenerator(seed: seed &+ number)
            try verbs.transaction(&random)
            say(try verbs.model.line)
        }
    }
}
