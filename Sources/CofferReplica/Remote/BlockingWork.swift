import Coffer

/// Does work that blocks its thread, on a thread that no task needs.
func blockingWork<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        beginBlockingWork { continuation.resume(with: Result(catching: work)) }
    }
}

/// Begins work that blocks its thread, on a thread that no task needs, and does not wait for it.
///
/// The threads are those of the stores. Outside of Darwin, a concurrent queue of Dispatch has one
/// for each core, and shares them with Swift's tasks.
func beginBlockingWork(_ work: @escaping @Sendable () -> Void) {
    WorkThreads.run(work)
}
