import Dispatch
import Synchronization

extension Gate {
    /// What a blocked thread waits on.
    final class Turn: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let decision = Mutex<StoreError?>(nil)

        /// - Parameter failure: `nil` if it may go on.
        func come(_ failure: StoreError?) {
            decision.withLock { $0 = failure }
            semaphore.signal()
        }

        /// Blocks until it has come.
        func failure() -> StoreError? {
            semaphore.wait()
            return decision.withLock { $0 }
        }

        /// `false` when the time is up; the decision may still come.
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
