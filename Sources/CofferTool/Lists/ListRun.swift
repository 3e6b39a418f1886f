import CTool
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Works on the stores of a list, several at the same time if that is wanted.
final class ListRun: Sendable {
    private struct State {
        var next = 0
        var failureCount = 0
        /// The first error that ends the whole list.
        var error: (any Error)?
        var isCancelled = false
        /// The processes that work on a store.
        var running: Set<Int32> = []
    }

    private let jobs: Int
    private let failureMax: Int
    private let state = Mutex(State())

    /// - Parameter failureMax: How many stores may fail before no further one is begun.
    init(jobs: Int, failureMax: Int?) {
        self.jobs = jobs
        self.failureMax = failureMax ?? .max
    }

    /// Calls `work` for each index, on threads of its own, in order.
    ///
    /// - Parameter work: Returns whether it succeeded. An error ends the list.
    /// - Throws: The first error of `work`. Whoever works by then comes to an end.
    func forEach(
        _ count: Int, _ work: @escaping @Sendable (Int) throws -> Bool
    ) async throws {
        await withTaskCancellationHandler {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<min(jobs, count) {
                    group.addTask { await self.onThread { self.workAll(count, work) } }
                }
            }
        } onCancel: {
            cancel()
        }
        if let error = state.withLock({ $0.error }) { throw error }
    }

    private func onThread(_ work: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                work()
                continuation.resume()
            }
        }
    }

    private func workAll(_ count: Int, _ work: (Int) throws -> Bool) {
        while let index = next(count) {
            do {
                if try !work(index) { state.withLock { $0.failureCount += 1 } }
            } catch {
                state.withLock { $0.error = $0.error ?? error }
            }
        }
    }

    /// The index of the next store; `nil` if no further one is to be begun.
    private func next(_ count: Int) -> Int? {
        state.withLock { state in
            guard state.next < count, state.error == nil, !state.isCancelled,
                state.failureCount < failureMax
            else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Runs the tool for one store.
    func run(_ arguments: [String], _ secret: ListSecret) throws -> StoreRun {
        Signals.workBegins()
        return try StoreRun(arguments, secret) { process in
            state.withLock { state in
                state.running.insert(process)
                if state.isCancelled { coffer_signal_command(process, 0, SIGTERM) }
            }
        } ends: { process in
            state.withLock { _ = $0.running.remove(process) }
        }
    }

    /// Begins no further store, and interrupts the runs as Ctrl-C does.
    private func cancel() {
        state.withLock { state in
            state.isCancelled = true
            for process in state.running { coffer_signal_command(process, 0, SIGTERM) }
        }
    }
}
