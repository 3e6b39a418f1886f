import CWorkload
import Dispatch
import Foundation
import Synchronization

// W6 with many tasks: the caller passes in what a system does with one record.
extension Run {
    /// Runs 64 tasks, each of which waits for its write before it begins the next. Returns how long
    /// each write took.
    @discardableResult
    public static func writeAtOnce<Row: Sendable>(
        _ items: ArraySlice<Row>, _ write: @escaping @Sendable (Row) async throws -> Void
    ) async throws -> [Double] {
        try await together(bench_writers) { writer in
            var latencies: [Double] = []
            let first = items.startIndex + writer
            for index in stride(from: first, to: items.endIndex, by: bench_writers) {
                let start = bench_now()
                try await write(items[index])
                latencies.append(bench_now() - start)
            }
            return latencies
        }
    }

    /// W6-latency: such writes of the second half of `items`, while four tasks look up the first
    /// half, which is there, until the writers are done.
    public func sampleLatencies(
        _ items: [Item],
        write: @escaping @Sendable (Item) async throws -> Void,
        find: @escaping @Sendable (Int64) async throws -> Item?,
        all: () async throws -> [Item]
    ) async throws {
        let isWritten = Atomic(false)
        async let finding = Self.together(bench_readers) { reader in
            var latencies: [Double] = []
            var index = reader
            while !isWritten.load(ordering: .relaxed) {
                let start = bench_now()
                guard try await find(Int64(shuffled(index) + 1)) != nil else { throw Missing() }
                latencies.append(bench_now() - start)
                index += bench_readers
                try await Task.sleep(for: .microseconds(bench_pause_us))
            }
            return latencies
        }
        // If a write fails, the readers are cancelled, and the next pause ends them.
        let writes = try await Self.writeAtOnce(items.suffix(rows), write)
        isWritten.store(true, ordering: .relaxed)
        let reads = try await finding
        let (written, read) = (Check(items), Check(try await all()))
        latencies("W6-latency", writes, written: written, read: read)
        latencies("W6-latency-read", reads, written: written, read: read)
    }

    /// Runs `body` in this many threads, each of which waits in `meet` for the others. So each of
    /// their reads has a separate connection.
    public static func meet(
        _ count: Int,
        _ body: @escaping @Sendable (_ meet: @escaping @Sendable () -> Void) throws -> Void
    ) throws {
        let arrived = DispatchGroup()
        let done = DispatchGroup()
        for _ in 0..<count { arrived.enter() }
        for _ in 0..<count {
            done.enter()
            ThreadBody {
                // If one fails before that, the others wait in vain, and the wait below times out.
                try? body {
                    arrived.leave()
                    arrived.wait()
                }
                done.leave()
            }.run()
        }
        guard done.wait(timeout: .now() + 30) == .success else { throw Missing() }
    }

    private static func together(
        _ count: Int, _ body: @escaping @Sendable (Int) async throws -> [Double]
    ) async throws -> [Double] {
        try await withThrowingTaskGroup(of: [Double].self) { group in
            for number in 0..<count { group.addTask { try await body(number) } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }
}

/// Runs a closure in a thread of the system, as the plain C does.
private final class ThreadBody {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func run() {
        bench_thread(
            { context in
                guard let context else { return }
                Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().body()
            }, Unmanaged.passRetained(self).toOpaque())
    }
}

/// A value that should exist and does not.
public struct Missing: Error {
    public init() {}
}
