import Foundation
import Workload

/// The seed of one run of a test, printed so that the same run can be had again: `COFFER_SEED` sets
/// it. What other threads and processes do meanwhile no seed brings back.
func testSeed(_ test: String = #function) -> UInt64 {
    let given = ProcessInfo.processInfo.environment["COFFER_SEED"].flatMap { UInt64($0) }
    let seed = given ?? .random(in: 0..<1_000_000)
    print("seed \(seed): \(test)")
    return seed
}

extension SeededGenerator {
    /// Numbers from a seed that is printed.
    init(for test: String) {
        self.init(seed: testSeed(test))
    }
}
