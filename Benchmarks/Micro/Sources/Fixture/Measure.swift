public import Benchmark

/// What was read is not what was written: it ends the benchmark, and the run fails.
public struct WrongResult: Error {}

extension Benchmark {
    /// Measures `body`, which reads, and checks every time what it returns.
    ///
    /// It runs once before, so that pages are decrypted and statements compiled.
    public func measure<R: Equatable>(expecting expected: R, _ body: () throws -> R) throws {
        _ = try body()
        try measure(expecting: expected, body, thenReading: { $0 })
    }

    /// Measures `body`, which writes, and checks every time what is there afterwards.
    public func measure<T, R: Equatable>(
        expecting expected: R, _ body: () throws -> T, thenReading read: (T) throws -> R
    ) throws {
        startMeasurement()
        let result = try body()
        stopMeasurement()
        guard try read(result) == expected else { throw WrongResult() }
    }
}
