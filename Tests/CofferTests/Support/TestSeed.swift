import Foundation
import Workload

/// The seed of one run of a test, printed so that the run can be repeated with `COFFER_SEED`. No
/// seed repeats what other threads and processes do at the same time.
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
