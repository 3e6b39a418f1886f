public import Benchmark
import Foundation

/// The rows read are not the rows written.
public struct WrongResult: Error {}

extension Benchmark {
    /// Adds a benchmark of a room. A failure ends the process and so the run: if a benchmark only
    /// reports its error, the package prints it and exits as if nothing had happened.
    public static func add(
        _ name: String, configuration: Configuration = defaultConfiguration,
        _ body: @escaping (Benchmark) throws -> Void
    ) {
        Benchmark(name, configuration: configuration) { (benchmark: Benchmark) in
            do {
                try body(benchmark)
            } catch {
                FileHandle.standardError.write(Data("\n\(name) failed: \(error)\n".utf8))
                exit(EXIT_FAILURE)
            }
        }
    }

    /// Measures `body`, which reads, and checks each result.
    ///
    /// It runs once before, so that pages are decrypted and statements compiled.
    public func measure<R: Equatable>(expecting expected: R, _ body: () throws -> R) throws {
        _ = try body()
        try measure(expecting: expected, body, thenReading: { $0 })
    }

    /// Measures `body`, which writes, and checks the content each time.
    public func measure<T, R: Equatable>(
        expecting expected: R, _ body: () throws -> T, thenReading read: (T) throws -> R
    ) throws {
        startMeasurement()
        let result = try body()
        stopMeasurement()
        guard try read(result) == expected else { throw WrongResult() }
    }
}
