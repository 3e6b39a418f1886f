import Synchronization

/// Ends synchronous reads and writes of a store from another thread.
///
/// ```swift
/// let interruption = Interruption()
/// button.onCancel { interruption.interrupt() }
/// let rows = try store.read(interruptedBy: interruption) { tx in try tx.rows("SELECT …") }
/// ```
///
/// Asynchronous reads and writes end when their task is cancelled, and need none. One interruption
/// may serve any number of calls, at once or one after the other. A call in the body of another
/// call to the same store is a part of that one, and ends with it; its own interruption does
/// nothing.
public final class Interruption: Sendable {
    private struct State {
        var isInterrupted = false
        var running: [ObjectIdentifier: Cancellation] = [:]
    }

    private let state = Mutex(State())

    /// Makes an interruption that has not interrupted anything yet.
    public init() {}

    /// Whether `interrupt()` was called.
    public var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

    /// Ends the reads and writes that were given this interruption, now and from now on.
    ///
    /// Their calls throw `StoreError` `.cancelled`, and nothing of them has happened. A write that
    /// is already being committed returns as if nobody had interrupted it.
    public func interrupt() {
        let running = state.withLock { state in
            state.isInterrupted = true
            return Array(state.running.values)
        }
        for cancellation in running { cancellation.cancel() }
    }

    /// Runs `body` with a cancellation of its own, which `interrupt()` cancels.
    ///
    /// - Throws: `.cancelled` if `interrupt()` was called before; what `body` throws.
    func running<T>(_ body: (Cancellation) throws -> T) throws -> T {
        let cancellation = Cancellation("the call was interrupted")
        let isInterrupted = state.withLock { state in
            state.running[ObjectIdentifier(cancellation)] = cancellation
            return state.isInterrupted
        }
        defer {
            _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(cancellation)) }
        }
        if isInterrupted { throw cancellation.reasonOfWaiting }
        return try body(cancellation)
    }
}
