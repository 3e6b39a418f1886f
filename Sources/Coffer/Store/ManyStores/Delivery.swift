import Dispatch
import Synchronization

/// A value that a blocked thread waits for.
final class Delivery<Value: Sendable>: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let value = Mutex<Value?>(nil)

    /// Gives the value, which ends `wait()`. Called once.
    func come(_ value: Value) {
        self.value.withLock { $0 = value }
        semaphore.signal()
    }

    /// Blocks until the value has come, and returns it.
    func wait() -> Value {
        while true {
            WorkThreads.whileBlocked { semaphore.wait() }
            if let value = value.withLock({ $0 }) { return value }
        }
    }
}
