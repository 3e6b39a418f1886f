import Dispatch
import Synchronization

extension Gate {
    /// What a blocked thread waits on for a decision.
    final class Waiter: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let decision = Mutex<StoreError?>(nil)

        /// Delivers the decision, which ends `failure()` and `wait(_:)`.
        ///
        /// - Parameter failure: The refusal; `nil` if the waiting thread may proceed.
        func come(_ failure: StoreError?) {
            decision.withLock { $0 = failure }
            semaphore.signal()
        }

        /// Blocks until the decision has come. Returns the refusal; `nil` if the thread may
        /// proceed.
        func failure() -> StoreError? {
            semaphore.wait()
            return decision.withLock { $0 }
        }

        /// Blocks until the decision has come, but no longer than `timeout`; `nil` waits
        /// indefinitely.
        ///
        /// - Returns: `false` after the timeout; the decision may still come.
        func wait(_ timeout: Duration?) -> Bool {
            let deadline = timeout.map { DispatchTime.now() + .milliseconds($0.milliseconds) }
            let result = WorkThreads.whileBlocked {
                semaphore.wait(timeout: deadline ?? .distantFuture)
            }
            guard result == .success else { return false }
            semaphore.signal()
            return true
        }

        func result() throws(StoreError) {
            if let failure = failure() { throw failure }
        }
    }
}
