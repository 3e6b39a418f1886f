import DequeModule
import Dispatch
import Synchronization

/// Lets at most so many in at once; the others wait in line, first in, first out.
///
/// Both kinds of waiting stand in the same line: a thread that blocks, and a task that does not.
final class Gate: Sendable {
    /// One who waits. Its state is guarded by the gate's mutex.
    final class Ticket: Sendable {
        fileprivate enum State { case waiting, admitted, cancelled }

        /// Whether it may be let in beside what has not ended yet: see `pass()`.
        fileprivate let isSharing: Bool
        /// When it leaves the line by itself, and what it waits for; `nil` if it has its own clock.
        let deadline: (instant: ContinuousClock.Instant, what: String)?
        fileprivate let state = Mutex(State.waiting)
        private let onDecision: @Sendable (Result<Void, StoreError>) -> Void

        /// - Parameter onDecision: Called once, outside the mutex: admitted, or the reason why not.
        init(
            isSharing: Bool = false, deadline: (ContinuousClock.Instant, String)? = nil,
            onDecision: @escaping @Sendable (Result<Void, StoreError>) -> Void
        ) {
            self.isSharing = isSharing
            self.deadline = deadline
            self.onDecision = onDecision
        }

        /// Whether nothing is decided yet.
        var isWaiting: Bool { state.withLock { $0 == .waiting } }

        /// Leaves the line if it still stands there.
        fileprivate func withdraw(_ error: StoreError) {
            guard decide(.cancelled) else { return }
            onDecision(.failure(error))
        }

        fileprivate func admit() -> Bool {
            guard decide(.admitted) else { return false }
            onDecision(.success(()))
            return true
        }

        /// Exactly one decision wins.
        private func decide(_ decision: State) -> Bool {
            state.withLock { state in
                guard state == .waiting else { return false }
                state = decision
                return true
            }
        }
    }

    private struct Line {
        var freeCount: Int
        var tickets = Deque<Ticket>()
        var closed: StoreError?
        /// Who waits until nobody is inside.
        var onEmpty: [DispatchSemaphore] = []
        /// Rings at the first deadline in the line.
        var alarm = Alarm()

        init(freeCount: Int) {
            self.freeCount = freeCount
        }

        /// At so many tickets those who have left the line are thrown out of it.
        private var sweepCount = 64

        mutating func append(_ ticket: Ticket) {
            if tickets.count >= sweepCount {
                tickets.removeAll { !$0.isWaiting }
                sweepCount = max(64, tickets.count * 2)
            }
            tickets.append(ticket)
        }

        /// The first who still waits.
        var next: Ticket? {
            mutating get {
                while let first = tickets.first, !first.isWaiting { tickets.removeFirst() }
                return tickets.first
            }
        }
    }

    let permitCount: Int
    private let line: Mutex<Line>

    init(permitCount: Int) {
        self.permitCount = permitCount
        line = Mutex(Line(freeCount: permitCount))
    }

    /// How many stand in line, those who left it not counted.
    var waitingCount: Int { line.withLock { $0.tickets.filter(\.isWaiting).count } }

    /// How many stand in line, with those who left it and were not met yet. O(1).
    var lineLength: Int { line.withLock { $0.tickets.count } }

    /// Joins the line; the ticket's callback tells when it is its turn.
    func enter(_ ticket: Ticket) {
        enum Next {
            case admit, wait
            case refuse(StoreError)
        }
        let next: Next = line.withLock { line in
            if let closed = line.closed { return .refuse(closed) }
            guard line.freeCount > 0 else {
                line.append(ticket)
                if let deadline = ticket.deadline { setAlarm(&line, deadline.instant) }
                return .wait
            }
            line.freeCount -= 1
            return .admit
        }
        switch next {
        case .admit: if !ticket.admit() { leave() }
        case .refuse(let error): ticket.withdraw(error)
        case .wait: break
        }
    }

    /// Gives the place to the next in line who still waits.
    func leave() {
        while true {
            let next: Ticket? = line.withLock { line in
                if let ticket = line.tickets.popFirst() { return ticket }
                line.alarm.stop()
                line.freeCount += 1
                if line.freeCount == permitCount {
                    for semaphore in line.onEmpty { semaphore.signal() }
                    line.onEmpty.removeAll()
                }
                return nil
            }
            guard let next else { return }
            if next.admit() { return }
        }
    }

    /// Whether the next in line may share with who is inside.
    var isNextSharing: Bool { line.withLock { $0.next?.isSharing ?? false } }

    /// Gives the place to the next in line if that one may share; else it stays with the caller.
    ///
    /// - Returns: Whether the place is given away.
    func pass() -> Bool {
        while true {
            let next: Ticket? = line.withLock { line in
                guard let next = line.next, next.isSharing else { return nil }
                return line.tickets.popFirst()
            }
            guard let next else { return false }
            if next.admit() { return true }
        }
    }

    /// Leaves the line, with `.cancelled`; nothing happens to one who was admitted.
    func cancel(_ ticket: Ticket) {
        ticket.withdraw(
            StoreError(.cancelled, "the task was cancelled before its turn; nothing was done"))
    }

    /// Leaves the line because the time is up.
    func expire(_ ticket: Ticket, waitingFor what: String) {
        ticket.withdraw(Self.expired(what))
    }

    /// One alarm for all who wait without a thread: it is set to the first deadline, and stopped
    /// when nobody waits.
    private func setAlarm(_ line: inout Line, _ instant: ContinuousClock.Instant) {
        line.alarm.set(instant) { [weak self] in self?.expireAll() }
    }

    /// Lets those leave the line whose time is up.
    private func expireAll() {
        let now = ContinuousClock.now
        let due = line.withLock { line in
            line.alarm.didRing()
            let waiting = line.tickets.filter { $0.deadline != nil && $0.isWaiting }
            let next = waiting.compactMap(\.deadline?.instant).filter { $0 > now }.min()
            if let next { setAlarm(&line, next) }
            return waiting.filter { $0.deadline.map { $0.instant <= now } ?? false }
        }
        for ticket in due { expire(ticket, waitingFor: ticket.deadline?.what ?? "") }
    }

    /// Refuses everybody who waits or comes later.
    func close(_ reason: StoreError) {
        let tickets = line.withLock { line in
            line.closed = reason
            line.alarm.stop()
            defer { line.tickets.removeAll() }
            return line.tickets
        }
        for ticket in tickets { ticket.withdraw(reason) }
    }

    /// Lets in again.
    func open() {
        line.withLock { $0.closed = nil }
    }

    /// Blocks until nobody is inside; of use to who has closed it.
    ///
    /// - Returns: Whether that came within the time.
    func waitUntilEmpty(timeout: Duration) -> Bool {
        let semaphore = DispatchSemaphore(value: 0)
        let isEmpty = line.withLock { line in
            if line.freeCount == permitCount { return true }
            line.onEmpty.append(semaphore)
            return false
        }
        let deadline = DispatchTime.now() + .milliseconds(timeout.milliseconds)
        return isEmpty || semaphore.wait(timeout: deadline) == .success
    }

    /// Blocks this thread until it is its turn.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait; `nil` for as long as it takes.
    ///   - what: What the error says was waited for.
    ///   - isSharing: Whether `pass()` may let it in.
    /// - Throws: `.busy` after the timeout, the reason of `close(_:)`.
    func wait(
        timeout: Duration?, for what: String, isSharing: Bool = false
    ) throws(StoreError) {
        if try enterAtOnce() { return }
        let turn = Turn()
        let ticket = Ticket(isSharing: isSharing) { turn.come($0) }
        enter(ticket)
        if !turn.wait(timeout) { expire(ticket, waitingFor: what) }
        try turn.result()
    }

    /// What a blocked thread waits on.
    final class Turn: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let decision = Mutex<Result<Void, StoreError>?>(nil)

        func come(_ result: Result<Void, StoreError>) {
            decision.withLock { $0 = result }
            semaphore.signal()
        }

        func come(_ failure: StoreError?) {
            come(failure.map(Result.failure) ?? .success(()))
        }

        /// Blocks until it has come.
        func failure() -> StoreError? {
            do throws(StoreError) { try result() } catch { return error }
            return nil
        }

        /// `false` when the time is up; the decision may still come.
        func wait(_ timeout: Duration?) -> Bool {
            let deadline = timeout.map { DispatchTime.now() + .milliseconds($0.milliseconds) }
            guard semaphore.wait(timeout: deadline ?? .distantFuture) == .success else {
                return false
            }
            semaphore.signal()
            return true
        }

        func result() throws(StoreError) {
            semaphore.wait()
            try decision.withLock { $0 }?.get()
        }
    }

    /// The way without a line: no semaphore is made.
    func enterAtOnce() throws(StoreError) -> Bool {
        enum Next {
            case admitted, wait
            case refused(StoreError)
        }
        let next: Next = line.withLock { line in
            if let closed = line.closed { return .refused(closed) }
            guard line.freeCount > 0 else { return .wait }
            line.freeCount -= 1
            return .admitted
        }
        switch next {
        case .admitted: return true
        case .wait: return false
        case .refused(let error): throw error
        }
    }

    static func expired(_ what: String) -> StoreError {
        StoreError(.busy, "waited in vain for \(what)", hint: "Try again, or raise waitTimeout.")
    }
}
