import Dispatch

/// Keeps the body of a transaction where it is until the test lets it go.
final class Hold: Sendable {
    private let entered = DispatchSemaphore(value: 0)
    private let released = DispatchSemaphore(value: 0)

    /// Called in the body: tells that it runs, and waits.
    func stay() {
        entered.signal()
        released.wait()
    }

    /// Waits until the body runs.
    func isEntered() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                self.entered.wait()
                continuation.resume()
            }
        }
    }

    func release() {
        released.signal()
    }
}
