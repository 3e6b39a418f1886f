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
        /// The processes that wait for a store.
        var idle: [WorkerProcess] = []
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
        let (idle, error) = state.withLock { ($0.idle, $0.error) }
        for worker in idle { worker.close() }
        for worker in idle { worker.wait(atMost: Self.idleWait) }
        if let error { throw error }
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

    /// Runs the tool for one store, in a process that has done with the one before.
    ///
    /// - Throws: `ToolError` `.interrupted` if the list was cancelled before the run; `.io` if it
    ///   cannot begin.
    func run(_ arguments: [String], _ secret: ListSecret) throws -> StoreRun {
        Signals.workBegins()
        while true {
            var worker = try takeWorker()
            var hasEnded = false
            let run: StoreRun?
            do {
                run = try StoreRun(arguments, secret, in: worker) {
                    hasEnded = true
                    return end(worker)
                }
            } catch {
                end(worker, atMost: Self.idleWait)
                throw error
            }
            if run?.leavesWorker == true {
                worker.isUsed = true
                putBack(worker)
            } else if !hasEnded {
                end(worker, atMost: Self.idleWait)
            }
            if let run { return run }
            // One that ended while it had nothing to do has begun nothing.
            guard worker.isUsed else {
                if state.withLock({ $0.isCancelled }) { throw Self.interrupted }
                throw ToolError(
                    .io, "a run of coffer ended before it began",
                    hint: "Nothing was done for this store. Run the same command again for it.")
            }
        }
    }

    /// Starts a process if none is idle.
    private func takeWorker() throws -> WorkerProcess {
        let idle = state.withLock { $0.idle.popLast() }
        let worker: WorkerProcess
        do {
            worker = try idle ?? WorkerProcess()
        } catch {
            throw StoreRun.cannotStart(error)
        }
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.running.insert(worker.id) }
            return state.isCancelled
        }
        guard !isCancelled else {
            end(worker, atMost: Self.idleWait)
            throw Self.interrupted
        }
        return worker
    }

    private func putBack(_ worker: WorkerProcess) {
        state.withLock { state in
            state.running.remove(worker.id)
            state.idle.append(worker)
        }
    }

    private static let interrupted = ToolError(.interrupted, "interrupted before this store")

    /// How long a process that has nothing to do may take to end, in milliseconds: a stopped one
    /// must not keep the results of the list.
    private static let idleWait: Int32 = 5000

    /// Waits for the end of a process, which gets no further store.
    ///
    /// - Parameter milliseconds: How long to wait before it is killed; -1 for one that may be at
    ///   work.
    @discardableResult
    private func end(_ worker: WorkerProcess, atMost milliseconds: Int32 = -1) -> Int32 {
        // Before its number is free for another process.
        state.withLock { _ = $0.running.remove(worker.id) }
        worker.close()
        return worker.wait(atMost: milliseconds)
    }

    /// Begins no further store, and interrupts the runs as Ctrl-C does.
    private func cancel() {
        state.withLock { state in
            state.isCancelled = true
            for process in state.running { coffer_signal_command(process, 0, SIGTERM) }
        }
    }
}
