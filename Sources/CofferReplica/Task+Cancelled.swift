import Synchronization

extension Task where Failure == any Error {
    /// The value of a task, which goes on if the caller's own task is cancelled.
    ///
    /// - Throws: `CancellationError` as soon as the caller is cancelled; what the task throws.
    func valueUnlessCancelled() async throws -> Success {
        let waiter = Waiter<Success>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                waiter.begin(continuation)
                Task<Void, Never> { waiter.end(await self.result) }
            }
        } onCancel: {
            waiter.end(.failure(Swift.CancellationError()))
        }
    }
}

/// Resumes one continuation once, by what comes first.
private final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Value, any Error>)
        case ended(Result<Value, any Error>)
    }

    private let state = Mutex(State.new)

    func begin(_ continuation: CheckedContinuation<Value, any Error>) {
        let ended = state.withLock { state -> Result<Value, any Error>? in
            if case .ended(let result) = state { return result }
            state = .waiting(continuation)
            return nil
        }
        if let ended { continuation.resume(with: ended) }
    }

    func end(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            defer { if case .ended = state {} else { state = .ended(result) } }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume(with: result)
    }
}
