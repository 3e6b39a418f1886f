import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Runs each test of a suite on threads of its own, whatever other tests block.
///
/// Swift has one thread for each core for the tasks of a process. A synchronous test blocks one
/// while it waits, so a test with tasks would wait for the end of others at each `await`.
struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(TestThreads.all) { try await function() }
    }
}

extension Trait where Self == OwnThreads {
    static var onOwnThreads: Self { Self() }
}

/// Runs tasks on as many threads as there are tasks at work, blocked ones among them.
final class TestThreads: TaskExecutor {
    static let all = TestThreads()

    private struct State {
        var jobs: [UnownedJob] = []
        var idleThreadCount = 0
    }

    private let state = Mutex(State())
    private let added = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasIdleThread = state.withLock { state in
            state.jobs.append(job)
            return state.jobs.count <= state.idleThreadCount
        }
        if !hasIdleThread { Thread.detachNewThread { self.work() } }
        added.signal()
    }

    /// Runs jobs for as long as the process lives.
    private func work() {
        while true {
            state.withLock { $0.idleThreadCount += 1 }
            added.wait()
            let job = state.withLock { state in
                state.idleThreadCount -= 1
                return state.jobs.removeFirst()
            }
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

/// Runs tasks on one thread: a task that blocks it blocks all.
final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "one thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
