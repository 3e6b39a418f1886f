import CWorkload
import Coffer
import Foundation
import Workloads

/// Commits of one row each, on a thread of its own: an update of a row far from the one before.
///
/// `Driver/twin.py` changes the same rows of the twin.
struct RowWriter: Sendable {
    let store: Store
    let rowCount: Int
    private static let stride = 7919

    func write(_ index: Int) throws {
        let id = 1 + index * Self.stride % rowCount
        // Always another value: SQLite writes no page whose bytes stay as they are.
        try store.write { tx in try tx.execute("UPDATE item SET x = x + 1 WHERE id = \(id)") }
    }

    /// Commits as fast as it goes. Returns how long each commit took, in µs.
    func write(from first: Int, until end: Double) async throws -> [Double] {
        try await Self.onThread {
            var latencies: [Double] = []
            while bench_now() < end {
                let start = bench_now()
                try write(first + latencies.count)
                latencies.append(bench_now() - start)
            }
            return latencies
        }
    }

    func write(_ indices: Range<Int>) async throws {
        try await Self.onThread { for index in indices { try write(index) } }
    }

    private static func onThread<T: Sendable>(
        _ body: @escaping @Sendable () throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}
