import Synchronization

/// Takes what a body returns past the queues, which work for all types alike: asking for a type's
/// metadata at each of their steps was a tenth of an asynchronous write.
final class Returned<T: Sendable>: Sendable {
    private let kept = Mutex<T?>(nil)

    func keep(_ value: T) {
        kept.withLock { $0 = value }
    }

    /// - Throws: `.misuse` if the body did not run, which whoever should have run it has told.
    func value() throws(StoreError) -> T { try kept.withLock { $0.take() }.returned() }
}

extension Optional {
    /// The same for who waits on the thread that runs the body: it keeps the value in a variable.
    func returned() throws(StoreError) -> Wrapped {
        guard let self else { throw StoreError(.misuse, "the body was not run") }
        return self
    }
}
