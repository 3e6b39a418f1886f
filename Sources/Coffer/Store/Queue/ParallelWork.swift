import Dispatch
import Synchronization

/// Work that runs on a thread of `WorkThreads` beside its caller's, which needs the result later.
///
/// If the process has no thread for it until then, the caller does the work itself.
final class ParallelWork<Output: Sendable>: Sendable {
    private enum State {
        /// For a thread. The work is here alone, so that nothing keeps what it uses after its end.
        case waiting(@Sendable (Cancellation) -> Output)
        /// On the other thread.
        case running
        case done(Output)
        /// The caller has the result, does the work itself, or needs it no more.
        case over
    }

    private let cancellation = Cancellation()
    private let state: Mutex<State>
    private let begun = Atomic(false)
    private let isDone = DispatchSemaphore(value: 0)

    /// - Parameter work: Gets a cancellation, which should end it soon.
    init(_ work: @escaping @Sendable (Cancellation) -> Output) {
        state = Mutex(.waiting(work))
    }

    /// Whether the work runs on another thread, or has run there.
    var hasBegun: Bool { begun.load(ordering: .relaxed) }

    /// Begins the work as soon as a thread is free.
    ///
    /// - Parameter run: For tests: runs the work on another thread, at some time or never.
    func begin(by run: (@escaping @Sendable () -> Void) -> Void = { WorkThreads.run($0) }) {
        run { [weak self] in
            guard let self, let output = workAside() else { return }
            state.withLock { $0 = .done(output) }
            isDone.signal()
        }
    }

    /// Does the work and releases it.
    ///
    /// - Returns: `nil` if somebody else has the work.
    private func workAside() -> Output? {
        guard let work = takeWork(for: .running) else { return nil }
        begun.store(true, ordering: .relaxed)
        return work(cancellation)
    }

    /// Waits for the work, or does it. Call it once, and not after `abandon()`.
    ///
    /// - Parameter cancellation: Of the caller's task: it ends the work.
    func output(_ cancellation: Cancellation?) -> Output {
        if let work = takeWork(for: .over) { return work(cancellation ?? self.cancellation) }
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
        guard takeWork(for: .over) == nil else { return }
        if case .over = state.withLock({ $0 }) { return }
        cancellation.cancel()
        waitForEnd()
        state.withLock { $0 = .over }
    }

    private func waitForEnd() {
        WorkThreads.whileBlocked { isDone.wait() }
    }

    /// - Returns: The work, if it had not begun.
    private func takeWork(for next: State) -> (@Sendable (Cancellation) -> Output)? {
        state.withLock { state in
            guard case .waiting(let work) = state else { return nil }
            state = next
            return work
        }
    }
}
