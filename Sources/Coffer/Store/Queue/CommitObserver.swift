import Synchronization

/// Learns of every commit of a store, in the order of the commits.
///
/// `WriteQueue` calls it while it holds the write gate: `begin` right after BEGIN,
/// `CommitRecorder.finish` right before COMMIT, `committed` right after it.
protocol CommitObserver: AnyObject, Sendable {
    /// Begins to record the transaction that was just begun on `connection`, the store's writer.
    ///
    /// - Returns: The recorder, which `committed` gets later; `nil` if nothing has to be recorded.
    func begin(_ connection: Connection) -> (any CommitRecorder)?

    /// Reports that the transaction on `connection` was committed.
    ///
    /// - Parameter recorder: What `begin` returned for that transaction.
    func committed(_ recorder: (any CommitRecorder)?, on connection: Connection)

    /// Does what `didMissCommits()` does, if another connection has committed since the last call.
    ///
    /// - Parameter connection: The writer; its user is the caller.
    func noticeForeignCommits(_ connection: Connection)

    /// Reports that another connection may have changed anything.
    func didMissCommits()

    /// Reports that the store has ended, and why: no commit follows.
    func close(_ reason: StoreError)
}

/// Records what one transaction of the writer touches, from its BEGIN to its COMMIT.
protocol CommitRecorder: AnyObject {
    /// Why something could not be recorded.
    var failure: StoreError? { get }

    /// Completes the record right before COMMIT. A failure goes into `failure`.
    func finish()

    /// Ends the recording; for a transaction that is not committed.
    func stop()
}

/// The observer of a store's commits, which the store has only once somebody asks for it.
final class CommitObservers: Sendable {
    private struct State {
        var observer: (any CommitObserver)?
        var closed: StoreError?
    }

    private let state = Mutex(State())
    /// Spares a store without an observer the lock.
    private let hasObserver = Atomic(false)

    /// Returns the store's observer of type `T`. The first call makes it. If the store was closed,
    /// a new observer is closed at once for the same reason.
    func observer<T: CommitObserver>(_ make: () -> T) -> T {
        state.withLock { state in
            if let observer = state.observer as? T { return observer }
            let observer = make()
            if let closed = state.closed { observer.close(closed) }
            state.observer = observer
            hasObserver.store(true, ordering: .sequentiallyConsistent)
            return observer
        }
    }

    private var current: (any CommitObserver)? {
        guard hasObserver.load(ordering: .sequentiallyConsistent) else { return nil }
        return state.withLock { $0.observer }
    }

    func begin(_ connection: Connection) -> (any CommitRecorder)? {
        current?.begin(connection)
    }

    func committed(_ recorder: (any CommitRecorder)?, on connection: Connection) {
        current?.committed(recorder, on: connection)
    }

    func noticeForeignCommits(_ connection: Connection) {
        current?.noticeForeignCommits(connection)
    }

    func didMissCommits() {
        current?.didMissCommits()
    }

    func close(_ reason: StoreError) {
        let observer = state.withLock { state in
            state.closed = reason
            return state.observer
        }
        observer?.close(reason)
    }
}
