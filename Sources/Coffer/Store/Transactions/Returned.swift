import Synchronization

/// Carries the result of a body past the queues, which treat all types alike. Asking for a type's
/// metadata at each of their steps took a tenth of an asynchronous write.
final class Returned<T: Sendable>: Sendable {
    private let kept = Mutex<T?>(nil)

    func keep(_ value: T) {
        kept.withLock { $0 = value }
    }

    /// Returns the value that a body has kept, and gives it away: a second call throws.
    ///
    /// - Throws: `.misuse` if there is no value, because the body did not run. Its queue should
    ///   have thrown the reason before.
    func value() throws(StoreError) -> T { try kept.withLock { $0.take() }.returned() }
}

extension Optional {
    /// Returns the value that a body has stored in a variable. Throws `.misuse` for `nil`: the body
    /// did not run.
    func returned() throws(StoreError) -> Wrapped {
        guard let self else { throw StoreError(.misuse, "the body was not run") }
        return self
    }
}
