public import Benchmark

extension Benchmark.Configuration {
    /// Wall time to look at, and what repeats to compare with the thresholds.
    ///
    /// - Parameters:
    ///   - unit: What the figures are divided by: the rows or calls of an iteration.
    ///   - maxDuration: Of all iterations, with what they prepare and check.
    public static func room(
        per unit: BenchmarkScalingFactor = .one, maxDuration: Duration = .seconds(2)
    ) -> Self {
        let counts: [BenchmarkMetric] = [.readSyscalls, .writeSyscalls, .writeBytesLogical]
        // Absolute, not relative as by default: relative to a threshold of zero nothing is worse.
        let exactly = BenchmarkThresholds(absolute: [.p90: 0])
        return Self(
            metrics: [.wallClock] + counts, scalingFactor: unit, maxDuration: maxDuration,
            thresholds: Dictionary(uniqueKeysWithValues: counts.map { ($0, exactly) }))
    }
}
