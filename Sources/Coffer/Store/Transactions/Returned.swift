import Synchronization

/// Carries the result of a body past the queues, which treat all types alike. Asking for a type's
/// metadata at each of their steps took a tenth of an asynchronous write.
final class Returned<T: Sendable>: Sendable {
    private let kept = Mutex<T?>(nil)

    func keep(_ value: T) {
        kept.withLock { $0 = value }
    }

    /// Returns the kept value, and forgets it.
    ///
    /// - Throws: `.misuse` if there is none, because the body did not run; its queue should have
    ///   thrown the reason before.
    func value() throws(StoreError) -> T { try kept.withLock { $0.take() }.returned() }
}

extension Optional {
    /// Returns the value, for a caller that waits on the body's own thread and keeps it in a
    /// variable.
    ///
    /// - Throws: `.misuse` if it is `nil`, because the body did not run.
    func returned() throws(StoreError) -> Wrapped {
        guard let self else { throw StoreError(.misuse, "the body was not run") }
        return self
    }
}
