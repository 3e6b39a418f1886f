import Synchronization

/// Set when the body that runs on a connection must end; checked between statements.
///
/// It belongs to the connection, not to the body, so that a body costs nothing more.
final class StopSignal: Sendable {
    private struct State {
        var beginning: ContinuousClock.Instant?
        var reason: StoreError?
        var target: InterruptHandle?
        var onStop: (@Sendable (StoreError) -> Void)?

        /// Lets the connection go on after a body that had to stop.
        @inline(never)
        func endStop() {
            if reason != nil { target?.endStop() }
        }
    }

    private let isStopped = Atomic(false)
    private let state = Mutex(State())

    /// Begins a body: `stop(_:since:)` now applies to it and interrupts statements of this handle.
    /// An earlier reason to stop is forgotten.
    func begin(_ target: InterruptHandle) {
        let wasStopped = isStopped.load(ordering: .relaxed)
        isStopped.store(false, ordering: .relaxed)
        let now = ContinuousClock.now
        state.withLock { state in
            if wasStopped { state.endStop() }
            state = State(beginning: now, target: target)
        }
    }

    /// Keeps `work`, to be called once with the reason when `stop(_:since:)` stops the body, on the
    /// thread that stops it. Calls it at once if the body was stopped before. Replaces earlier
    /// work.
    ///
    /// It is for a body that waits for something other than a statement.
    func whenStopped(_ work: @escaping @Sendable (StoreError) -> Void) {
        let reason = state.withLock { state in
            state.onStop = work
            return state.reason
        }
        if let reason { work(reason) }
    }

    /// Ends the body: `stop(_:since:)` does nothing until the next `begin(_:)`.
    func end() {
        state.withLock { state in
            // Set under the mutex.
            if isStopped.load(ordering: .relaxed) { state.endStop() }
            state = State()
        }
    }

    /// Asks the running body to stop with this reason, if it began no later than `beginning`, and
    /// interrupts its statement. An interrupted write rolls back its whole transaction.
    ///
    /// If the body was asked before, the first reason remains.
    ///
    /// - Returns: `true` if this call was the first to ask the body; `false` also if no body runs
    ///   or it began later.
    @discardableResult
    func stop(_ reason: StoreError, since beginning: ContinuousClock.Instant = .now) -> Bool {
        let (isTold, onStop) = state.withLock {
            state -> (Bool, (@Sendable (StoreError) -> Void)?) in
            guard let begun = state.beginning, begun <= beginning else { return (false, nil) }
            guard state.reason == nil else { return (false, nil) }
            state.reason = reason
            isStopped.store(true, ordering: .relaxed)
            // Under the mutex, because afterwards the connection may run another body's statement.
            state.target?.stop()
            return (true, state.onStop)
        }
        onStop?(reason)
        return isTold
    }

    /// Whether the body must end.
    var hasReason: Bool { isStopped.load(ordering: .relaxed) }

    /// Why the body must end.
    var reason: StoreError? { hasReason ? state.withLock { $0.reason } : nil }

    /// When the running body began.
    var beginning: ContinuousClock.Instant? { state.withLock { $0.beginning } }
}

/// Set when the task of a body is cancelled, or its `Interruption` interrupts it; checked between
/// statements.
package final class Cancellation: Sendable {
    private struct State {
        /// The connection that runs the body, while an interrupt would affect only this body.
        var target: InterruptHandle?
        /// Withdraws the body's ticket, while its thread waits at a gate.
        var withdraw: (@Sendable () -> Void)?
    }

    private let flag = Atomic(false)
    private let state = Mutex(State())
    /// What happened, for the error.
    private let event: String

    init(_ event: String = "the task was cancelled") {
        self.event = event
    }

    package var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// The error of a body that was cancelled.
    var reason: StoreError? {
        guard isCancelled else { return nil }
        return StoreError(.cancelled, "\(event); its work was rolled back")
    }

    /// The error of a body that was cancelled before it began.
    var reasonOfWaiting: StoreError {
        StoreError(.cancelled, "\(event) while it waited; nothing was done")
    }

    func cancel() {
        let withdraw = state.withLock { state in
            let isFirst = !flag.exchange(true, ordering: .relaxed)
            // Under the mutex, because afterwards the connection may run another body's statement.
            if isFirst { state.target?.stop() }
            return state.withdraw
        }
        withdraw?()
    }

    /// Runs `wait`. Meanwhile `cancel()` calls `withdraw`; it does at once if it was called before.
    func whileWaiting(_ withdraw: @escaping @Sendable () -> Void, _ wait: () -> Void) {
        state.withLock { $0.withdraw = withdraw }
        defer { state.withLock { $0.withdraw = nil } }
        if isCancelled { withdraw() }
        wait()
    }

    /// From now on, `cancel()` also interrupts the running statement of this connection.
    func aim(at handle: InterruptHandle) {
        state.withLock { state in
            state.target = handle
            if isCancelled { handle.stop() }
        }
    }

    /// From now on, `cancel()` interrupts no statement.
    func release() {
        state.withLock { state in
            if isCancelled { state.target?.endStop() }
            state.target = nil
        }
    }
}
