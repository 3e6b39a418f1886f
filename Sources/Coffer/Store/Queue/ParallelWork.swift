import Dispatch
import Synchronization

/// Work that runs on a thread of `WorkThreads` beside its caller's, which needs the result later.
///
/// If the process has no thread for it until then, the caller does the work itself.
final class ParallelWork<Output: Sendable>: Sendable {
    private enum State {
        case waiting
        /// On the other thread.
        case running
        case done(Output)
        /// The caller has the result, does the work itself, or needs it no more.
        case over
    }

    private let work: @Sendable (Cancellation) -> Output
    private let cancellation = Cancellation()
    private let state = Mutex(State.waiting)
    private let isDone = DispatchSemaphore(value: 0)

    /// - Parameter work: Ends soon after the cancellation that it gets.
    init(_ work: @escaping @Sendable (Cancellation) -> Output) {
        self.work = work
    }

    /// Begins the work as soon as a thread is free.
    ///
    /// - Parameter run: For tests: runs the work on another thread, at some time or never.
    func begin(by run: (@escaping @Sendable () -> Void) -> Void = { WorkThreads.run($0) }) {
        run { [weak self] in
            guard let self, leaveWaiting(for: .running) else { return }
            let output = work(cancellation)
            state.withLock { $0 = .done(output) }
            isDone.signal()
        }
    }

    /// Waits for the work, or does it. Call it once, and not after `abandon()`.
    ///
    /// - Parameter cancellation: Of the caller's task: it ends the work.
    func output(_ cancellation: Cancellation?) -> Output {
        if leaveWaiting(for: .over) { return work(cancellation ?? self.cancellation) }
        while true {
            if let cancellation {
                cancellation.whileWaiting({ [own = self.cancellation] in own.cancel() }, waitForEnd)
            } else {
                waitForEnd()
            }
            let output: Output? = state.withLock { state in
                guard case .done(let output) = state else { return nil }
                state = .over
                return output
            }
            if let output { return output }
        }
    }

    /// Ends the work, because nobody needs its result, and waits for the end. Does nothing after
    /// `output(_:)`.
    func abandon() {
        guard !leaveWaiting(for: .over) else { return }
        if case .over = state.withLock({ $0 }) { return }
        cancellation.cancel()
        waitForEnd()
        state.withLock { $0 = .over }
    }

    private func waitForEnd() {
        WorkThreads.whileBlocked { isDone.wait() }
    }

    /// - Returns: Whether the work had not begun.
    private func leaveWaiting(for next: State) -> Bool {
        state.withLock { state in
            guard case .waiting = state else { return false }
            state = next
            return true
        }
    }
}
