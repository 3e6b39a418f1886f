import Synchronization

/// Carries the result of a body past the queues, which treat all types alike. Asking for a type's
/// metadata at each of their steps took a tenth of an asynchronous write.
final class Returned<T: Sendable>: Sendable {
    private let kept = Mutex<T?>(nil)

    func keep(_ value: T) {
        kept.withLock { $0 = value }
    }

    /// - Throws: `.misuse` if the body did not run; its queue should have thrown the reason before.
    func value() throws(StoreError) -> T { try kept.withLock { $0.take() }.returned() }
}

extension Optional {
    /// The same for a caller that waits on the body's own thread and keeps the value in a variable.
    func returned() throws(StoreError) -> Wrapped {
        guard let self else { throw StoreError(.misuse, "the body was not run") }
        return self
    }
}
