import Dispatch
import Synchronization

@testable import Coffer

/// Keeps the body of a transaction where it is until the test lets it go.
///
/// A test that waits for the body does not block a thread, because all concurrent tests share a
/// few.
final class Hold: Sendable {
    private struct Entries {
        /// The number of bodies for which nobody has waited yet.
        var count = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let entries = Mutex(Entries())
    private let released = DispatchSemaphore(value: 0)

    /// Called in the body: signals that it runs, and waits.
    func stay() {
        pass()
        released.wait()
    }

    /// Ends the wait for the body, and goes on: also for a task, which must not block a thread.
    func pass() {
        let waiting = entries.withLock { entries -> CheckedContinuation<Void, Never>? in
            if entries.waiting.isEmpty {
                entries.count += 1
                return nil
            }
            return entries.waiting.removeFirst()
        }
        waiting?.resume()
    }

    /// Waits until the body runs.
    func isEntered() async {
        await withCheckedContinuation { continuation in
            let isEntered = entries.withLock { entries in
                guard entries.count > 0 else {
                    entries.waiting.append(continuation)
                    return false
                }
                entries.count -= 1
                return true
            }
            if isEntered { continuation.resume() }
        }
    }

    func release() {
        released.signal()
    }
}
