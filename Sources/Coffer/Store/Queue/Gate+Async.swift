import Dispatch
import Synchronization

extension Gate {
    /// Resumes a waiting task with the result of its work. Called exactly once.
    typealias Done<R> = @Sendable (Result<R, any Error>) -> Void

    /// Waits in the queue of the gate without a thread, then runs `work` on a thread that may
    /// block.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait; `nil` waits indefinitely.
    ///   - what: What the error says was waited for.
    ///   - isSharing: Whether `pass()` may admit it.
    ///   - threads: Where `work` runs.
    ///   - work: Gets the task's cancellation and a `Done`. Must leave the gate (or pass its permit
    ///     on) and call its `Done`, each once.
    /// - Returns: The value that `work` gives to its `Done`.
    /// - Throws: `.busy` after the timeout, `.cancelled` if the task was cancelled before it was
    ///   admitted, the reason of `close(_:)`, or the error that `work` gives to its `Done`.
    func admitted<R: Sendable>(
        timeout: Duration?, for what: String, isSharing: Bool = false,
        on threads: WorkThreads = .shared,
        _ work: @escaping @Sendable (Cancellation, @escaping Done<R>) -> Void
    ) async throws -> R {
        let cancellation = Cancellation()
        let slot = TicketSlot()
        let order = ResumptionOrder()
        defer { order.mark() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let deadline = timeout.map { (ContinuousClock.now + $0, what) }
                let resume: Done<R> = {
                    order.mark()
                    continuation.resume(with: $0)
                }
                let ticket = Ticket(on: threads, isSharing: isSharing, deadline: deadline) {
                    work(cancellation, resume)
                } onRefusal: {
                    resume(.failure($0))
                }
                if slot.hold(ticket) { enter(ticket) } else { cancel(ticket) }
            }
        } onCancel: {
            cancellation.cancel()
            if let ticket = slot.cancel() { cancel(ticket) }
        }
    }

    /// Runs `work` on a thread of `threads` once the gate admits it, and leaves the gate when
    /// `work` returns. Does not wait for that. `work` cannot be cancelled.
    func run(on threads: WorkThreads = .shared, _ work: @escaping @Sendable () -> Void) {
        let ticket = Ticket(on: threads) { [self] in
            work()
            WorkThread.willEnd()
            leave()
        } onRefusal: { _ in
            // Only a closed gate refuses, and these are never closed.
        }
        enter(ticket)
    }
}

/// Connects a task's cancellation with the ticket that the task is about to get.
private final class TicketSlot: Sendable {
    private enum State {
        case empty
        case holding(Gate.Ticket)
        case cancelled
    }

    private let state = Mutex(State.empty)

    /// Keeps the ticket for a later `cancel()`.
    ///
    /// - Returns: `false` if `cancel()` was called before; the ticket is then not kept.
    func hold(_ ticket: Gate.Ticket) -> Bool {
        state.withLock { state in
            if case .cancelled = state { return false }
            state = .holding(ticket)
            return true
        }
    }

    func cancel() -> Gate.Ticket? {
        state.withLock { state in
            defer { state = .cancelled }
            if case .holding(let ticket) = state { return ticket }
            return nil
        }
    }
}
