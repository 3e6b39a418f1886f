import Dispatch
import Synchronization

extension Gate {
    /// Tells a waiting task how its work ended. Called exactly once.
    typealias Done<R> = @Sendable (Result<R, any Error>) -> Void

    /// Waits in line without a thread, then runs `work` on one that may block.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait; `nil` for as long as it takes.
    ///   - what: What the error says was waited for.
    ///   - isSharing: Whether `pass()` may let it in.
    ///   - threads: Where `work` runs.
    ///   - work: Has to leave the gate and to call what it is given, both once.
    /// - Throws: `.busy` after the timeout, `.cancelled` if the task was cancelled before its turn,
    ///   the reason of `close(_:)`; what `work` gives.
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

    /// Runs `work` when it is its turn, which ends with it; nobody can call it off.
    func run(on threads: WorkThreads = .shared, _ work: @escaping @Sendable () -> Void) {
        let ticket = Ticket(on: threads) { [self] in
            work()
            WorkThread.willEnd()
            leave()
        } onRefusal: { _ in
            // Only a gate that is closed refuses, and these are not.
        }
        enter(ticket)
    }
}

/// Connects a task's cancellation with the ticket that the task is about to draw.
private final class TicketSlot: Sendable {
    private enum State {
        case empty
        case holding(Gate.Ticket)
        case cancelled
    }

    private let state = Mutex(State.empty)

    /// `false` if the task was cancelled before.
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
