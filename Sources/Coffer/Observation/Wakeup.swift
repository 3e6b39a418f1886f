import Synchronization

/// Wakes one waiting task: now, or as soon as it waits.
final class Wakeup: Sendable {
    private enum State {
        case idle
        /// Nobody waited: the next wait returns at once.
        case signalled
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.idle)

    func signal() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard case .waiting(let continuation) = state else {
                state = .signalled
                return nil
            }
            state = .idle
            return continuation
        }
        waiting?.resume()
    }

    /// Waits for `signal()`, or until the task is cancelled. Returns at once if a signal came while
    /// nobody waited, which uses that signal up.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSignalled = state.withLock { state in
                    if case .signalled = state {
                        state = .idle
                        return true
                    }
                    state = .waiting(continuation)
                    return false
                }
                if isSignalled { continuation.resume() }
            }
        } onCancel: {
            signal()
        }
    }
}
