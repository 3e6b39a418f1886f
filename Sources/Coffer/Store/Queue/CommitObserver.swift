import Synchronization

/// Learns of every commit of a store, in the order of the commits.
///
/// `WriteQueue` calls it while it holds the write gate: `begin` right after BEGIN,
/// `CommitRecorder.finish` right before COMMIT, `committed` right after it.
protocol CommitObserver: AnyObject, Sendable {
    /// Begins to record the transaction that was just begun on the writer.
    ///
    /// - Returns: `nil` if nothing has to be recorded.
    func begin(_ connection: Connection) -> (any CommitRecorder)?

    /// - Parameter recorder: What `begin` returned for the transaction that was committed.
    func committed(_ recorder: (any CommitRecorder)?, on connection: Connection)

    /// Asks whether another connection has committed. The caller holds the writer.
    func noticeForeignCommits(_ connection: Connection)

    /// Called when another connection may have changed any table.
    func didMissCommits()

    /// Called when the store has been closed, once and last. Loops over the observer then throw
    /// `reason`.
    func close(_ reason: StoreError)
}

/// Records what one transaction of the writer touches, from its BEGIN to its COMMIT.
protocol CommitRecorder: AnyObject {
    /// Why something could not be recorded.
    var failure: StoreError? { get }

    /// Looks at the transaction for the last time, right before its COMMIT.
    func finish()

    /// Ends without a commit.
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

    /// The observer, made when it is first asked for.
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
