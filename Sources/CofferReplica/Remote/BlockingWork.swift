import Dispatch

private let queue = DispatchQueue(label: "coffer.remote.work", attributes: .concurrent)

/// Does work that blocks its thread, on a thread that no task needs.
func blockingWork<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        queue.async { continuation.resume(with: Result(catching: work)) }
    }
}
