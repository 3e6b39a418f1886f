import DequeModule
import Dispatch
import Synchronization

/// Admits at most `permitCount` holders at once; the others wait in a queue, first in, first out.
///
/// Blocked threads and suspended tasks wait in the same queue. A task is admitted only together
/// with a thread (`WorkThreads`). While no thread is free, waiting threads behind it go first.
final class Gate: Sendable {
    /// A waiting caller. The gate's mutex guards its place in the queue; its own mutex guards its
    /// state.
    final class Ticket: Sendable {
        fileprivate enum State { case waiting, admitted, cancelled }

        /// Admitted, with a thread if it needs one; or the reason for the refusal.
        typealias Decision = Result<WorkThread?, StoreError>

        /// Whether it may be admitted while the holder's transaction is still open: see `pass()`.
        fileprivate let isSharing: Bool
        /// When the gate withdraws it, and what it waits for; `nil` if its thread has its own
        /// timeout, or if it has none.
        let deadline: (instant: ContinuousClock.Instant, what: String)?
        /// Where it gets a thread from; `nil` if a thread of its own waits.
        fileprivate let threads: WorkThreads?
        fileprivate let state = Mutex(State.waiting)
        private let onDecision: @Sendable (Decision) -> Void

        /// Makes a ticket for a thread that blocks until the decision. It has no deadline.
        ///
        /// - Parameters:
        ///   - isSharing: Whether `Gate.pass()` may admit it.
        ///   - onDecision: Called once with the decision, outside the gate's mutex.
        init(isSharing: Bool, onDecision: @escaping @Sendable (Decision) -> Void) {
            self.isSharing = isSharing
            self.onDecision = onDecision
            (deadline, threads) = (nil, nil)
        }

        /// Makes a ticket for a caller that waits without a thread.
        ///
        /// - Parameters:
        ///   - threads: Where `work` runs.
        ///   - isSharing: Whether `Gate.pass()` may admit it.
        ///   - deadline: When the gate refuses it with `.busy`, and what that error says was waited
        ///     for; `nil` waits indefinitely.
        ///   - work: Runs once on a thread of `threads`, after the gate has admitted the ticket.
        ///   - onRefusal: Called with the reason, outside the gate's mutex, if the gate refuses the
        ///     ticket. Either this or `work` is called, once.
        init(
            on threads: WorkThreads, isSharing: Bool = false,
            deadline: (ContinuousClock.Instant, String)? = nil,
            _ work: @escaping @Sendable () -> Void,
            onRefusal: @escaping @Sendable (StoreError) -> Void
        ) {
            self.isSharing = isSharing
            self.deadline = deadline
            self.threads = threads
            onDecision = { decision in
                switch decision {
                case .success(let thread): thread?.start(work)
                case .failure(let error): onRefusal(error)
                }
            }
        }

        /// Whether nothing is decided yet.
        var isWaiting: Bool { state.withLock { $0 == .waiting } }

        /// Refuses the ticket with this error; does nothing if the ticket was admitted or refused
        /// before.
        fileprivate func withdraw(_ error: StoreError) {
            guard decide(.cancelled) else { return }
            onDecision(.failure(error))
        }

        /// Admits the ticket.
        ///
        /// - Parameter thread: The thread for its work; `nil` for a ticket whose own thread waits.
        /// - Returns: `false` if the ticket was admitted or refused before. Nothing has then
        ///   changed.
        fileprivate func admit(_ thread: WorkThread?) -> Bool {
            guard decide(.admitted) else { return false }
            onDecision(.success(thread))
            return true
        }

        /// Sets the ticket's state to `decision`, if the ticket still waits.
        ///
        /// - Returns: `false` if it was decided before; the earlier decision remains.
        private func decide(_ decision: State) -> Bool {
            state.withLock { state in
                guard state == .waiting else { return false }
                state = decision
                return true
            }
        }
    }

    /// An admitted ticket, with a thread if it needs one.
    private typealias Admission = (ticket: Ticket, thread: WorkThread?)

    private struct Queue {
        var freeCount: Int
        /// Whether a ticket lacks only a thread, and `WorkThreads` knows of it.
        var lacksThread = false
        var tickets = Deque<Ticket>()
        var closed: StoreError?
        /// Callers that wait until every permit is free.
        var onEmpty: [DispatchSemaphore] = []
        /// Rings at the first deadline in the queue.
        var alarm = Alarm()

        init(freeCount: Int) {
            self.freeCount = freeCount
        }

        /// The number of tickets at which the decided ones are removed.
        private var sweepCount = 64

        mutating func append(_ ticket: Ticket) {
            if tickets.count >= sweepCount {
                tickets.removeAll { !$0.isWaiting }
                sweepCount = max(64, tickets.count * 2)
            }
            tickets.append(ticket)
        }

        /// The first ticket that still waits.
        var next: Ticket? {
            mutating get {
                while let first = tickets.first, !first.isWaiting { tickets.removeFirst() }
                return tickets.first
            }
        }

        /// Takes a thread from `threads` for a ticket in the queue of `gate`.
        ///
        /// - Returns: `nil` if no thread is free, or if an earlier ticket lacks one. `WorkThreads`
        ///   then calls `gate.offer(_:)` when a thread is free.
        mutating func takeThread(_ threads: WorkThreads, for gate: Gate) -> WorkThread? {
            guard !lacksThread else { return nil }
            let thread = threads.take(for: gate)
            lacksThread = thread == nil
            return thread
        }

        /// Removes and returns the first waiting ticket that needs no thread, or that gets a free
        /// one.
        ///
        /// - Returns: `nil` if no ticket can proceed now.
        mutating func takeNext(for gate: Gate) -> Admission? {
            var index = 0
            while index < tickets.count {
                let ticket = tickets[index]
                if ticket.isWaiting {
                    let thread = ticket.threads.flatMap { takeThread($0, for: gate) }
                    if ticket.threads == nil || thread != nil {
                        tickets.remove(at: index)
                        return (ticket, thread)
                    }
                }
                if index == 0, !ticket.isWaiting { tickets.removeFirst() } else { index += 1 }
            }
            return nil
        }
    }

    let permitCount: Int
    private let queue: Mutex<Queue>

    init(permitCount: Int) {
        self.permitCount = permitCount
        queue = Mutex(Queue(freeCount: permitCount))
    }

    /// The number of permits that nobody has.
    var freeCount: Int { queue.withLock { $0.freeCount } }

    /// The number of waiting tickets, without those that were withdrawn.
    var waitingCount: Int { queue.withLock { $0.tickets.filter(\.isWaiting).count } }

    /// The number of tickets in the queue, including withdrawn ones that are not removed yet. O(1).
    var queueLength: Int { queue.withLock { $0.tickets.count } }

    /// Admits the ticket if a permit is free, and a thread if it needs one; otherwise appends it to
    /// the queue. A closed gate refuses it.
    ///
    /// The ticket's callback reports the decision, possibly before this call returns.
    func enter(_ ticket: Ticket) {
        enum Next {
            case admit(WorkThread?)
            case wait
            case refuse(StoreError)
        }
        let next: Next = queue.withLock { queue in
            if let closed = queue.closed { return .refuse(closed) }
            let thread =
                queue.freeCount > 0
                ? ticket.threads.flatMap { queue.takeThread($0, for: self) } : nil
            guard queue.freeCount > 0, ticket.threads == nil || thread != nil else {
                queue.append(ticket)
                if let deadline = ticket.deadline { setAlarm(&queue, deadline.instant) }
                return .wait
            }
            queue.freeCount -= 1
            return .admit(thread)
        }
        switch next {
        case .admit(let thread): if !admit((ticket, thread)) { leave() }
        case .refuse(let error): ticket.withdraw(error)
        case .wait: break
        }
    }

    /// Passes the caller's permit to the first waiting ticket that can proceed; if there is none,
    /// the permit becomes free.
    func leave() {
        while true {
            let next: Admission? = queue.withLock { queue in
                if let next = queue.takeNext(for: self) { return next }
                // A ticket that lacks a thread still waits.
                if queue.tickets.isEmpty { queue.alarm.stop() }
                queue.freeCount += 1
                if queue.freeCount == permitCount {
                    for semaphore in queue.onEmpty { semaphore.signal() }
                    queue.onEmpty.removeAll()
                }
                return nil
            }
            guard let next else { return }
            if admit(next) { return }
        }
    }

    /// Admits the ticket with its thread.
    ///
    /// - Returns: `false` if the ticket was withdrawn in the meantime; its thread is then given
    ///   back.
    private func admit(_ next: Admission) -> Bool {
        if next.ticket.admit(next.thread) { return true }
        next.thread?.giveBack()
        return false
    }

    /// Takes a free permit and admits the first waiting ticket that needs a thread, with this one.
    ///
    /// - Returns: `false` if no permit is free or no ticket needs a thread. The caller keeps the
    ///   thread.
    func offer(_ thread: WorkThread) -> Bool {
        while true {
            let ticket: Ticket? = queue.withLock { queue in
                queue.lacksThread = false
                let isNext = { (ticket: Ticket) in ticket.threads != nil && ticket.isWaiting }
                guard queue.freeCount > 0, let index = queue.tickets.firstIndex(where: isNext)
                else {
                    return nil
                }
                queue.freeCount -= 1
                let ticket = queue.tickets.remove(at: index)
                if queue.freeCount > 0, queue.tickets.contains(where: isNext) {
                    queue.lacksThread = true
                    thread.threads.wait(self)
                }
                return ticket
            }
            guard let ticket else { return false }
            if ticket.admit(thread) { return true }
            leave()
        }
    }

    /// Whether the first waiting ticket may share the holder's transaction.
    var isNextSharing: Bool { queue.withLock { $0.next?.isSharing ?? false } }

    /// Passes the caller's permit to the first waiting ticket. That ticket must share the caller's
    /// transaction (`isSharing`), and need no thread or get one.
    ///
    /// - Returns: Whether the permit was passed on; otherwise the caller keeps it.
    func pass() -> Bool {
        while true {
            let next: Admission? = queue.withLock { queue in
                guard let next = queue.next, next.isSharing else { return nil }
                // Prefer the current thread, even over gates that wait for one: a write that shares
                // a commit must not wait for a thread.
                let thread = next.threads.flatMap {
                    WorkThread.takeForNext(of: $0) ?? queue.takeThread($0, for: self)
                }
                guard next.threads == nil || thread != nil else { return nil }
                queue.tickets.removeFirst()
                return (next, thread)
            }
            guard let next else { return false }
            if admit(next) { return true }
        }
    }

    /// Refuses a waiting ticket with `.cancelled`; an admitted or refused ticket is not affected.
    func cancel(_ ticket: Ticket) {
        ticket.withdraw(
            StoreError(.cancelled, "the task was cancelled while it waited; nothing was done"))
    }

    /// Sets the alarm to this deadline of a ticket, unless it is set to an earlier one.
    ///
    /// One alarm serves all tickets without a thread. It is stopped when the queue is empty.
    private func setAlarm(_ queue: inout Queue, _ instant: ContinuousClock.Instant) {
        queue.alarm.set(instant) { [weak self] in self?.expireAll() }
    }

    /// Refuses the tickets whose deadline has passed with `.busy`, and sets the alarm to the next
    /// deadline.
    private func expireAll() {
        let now = ContinuousClock.now
        let (due, lacksThread) = queue.withLock { queue in
            queue.alarm.didRing()
            let waiting = queue.tickets.filter { $0.deadline != nil && $0.isWaiting }
            let next = waiting.compactMap(\.deadline?.instant).filter { $0 > now }.min()
            if let next { setAlarm(&queue, next) }
            let due = waiting.filter { $0.deadline.map { $0.instant <= now } ?? false }
            return (due, queue.freeCount > 0)
        }
        for ticket in due {
            ticket.withdraw(
                lacksThread ? WorkThreads.busy : Self.expired(ticket.deadline?.what ?? ""))
        }
    }

    /// Refuses all waiting tickets, and later ones until `open()`, with this reason. Callers that
    /// hold a permit keep it.
    func close(_ reason: StoreError) {
        let tickets = queue.withLock { queue in
            queue.closed = reason
            queue.alarm.stop()
            defer { queue.tickets.removeAll() }
            return queue.tickets
        }
        for ticket in tickets { ticket.withdraw(reason) }
    }

    /// Lets the gate admit tickets again, after `close(_:)`.
    func open() {
        queue.withLock { $0.closed = nil }
    }

    /// Blocks until every permit is free; useful only after `close(_:)`.
    ///
    /// - Returns: Whether that happened within the timeout.
    func waitUntilEmpty(timeout: Duration) -> Bool {
        let semaphore = DispatchSemaphore(value: 0)
        let isEmpty = queue.withLock { queue in
            if queue.freeCount == permitCount { return true }
            queue.onEmpty.append(semaphore)
            return false
        }
        let deadline = DispatchTime.now() + .milliseconds(timeout.milliseconds)
        if isEmpty { return true }
        return WorkThreads.whileBlocked { semaphore.wait(timeout: deadline) } == .success
    }

    /// Blocks this thread until the gate admits it.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait; `nil` waits indefinitely.
    ///   - what: What the error says was waited for.
    ///   - isSharing: Whether `pass()` may admit it.
    ///   - cancellation: Ends the waiting when it is cancelled.
    /// - Throws: `.busy` after the timeout, the reason of `close(_:)`, `.cancelled`.
    func wait(
        timeout: Duration?, for what: String, isSharing: Bool = false,
        cancellation: Cancellation? = nil
    ) throws(StoreError) {
        if try enterAtOnce() { return }
        let waiter = Waiter()
        let ticket = Ticket(isSharing: isSharing) { decision in
            if case .failure(let error) = decision { waiter.come(error) } else { waiter.come(nil) }
        }
        enter(ticket)
        func wait() {
            if !waiter.wait(timeout) { ticket.withdraw(Self.expired(what)) }
        }
        if let cancellation {
            let reason = cancellation.reasonOfWaiting
            cancellation.whileWaiting({ ticket.withdraw(reason) }, wait)
        } else {
            wait()
        }
        try waiter.result()
    }

    /// Takes a permit if one is free, without waiting; creates no semaphore.
    ///
    /// - Returns: `false` if no permit is free.
    /// - Throws: The reason of `close(_:)` if the gate is closed.
    func enterAtOnce() throws(StoreError) -> Bool {
        enum Next {
            case admitted, wait
            case refused(StoreError)
        }
        let next: Next = queue.withLock { queue in
            if let closed = queue.closed { return .refused(closed) }
            guard queue.freeCount > 0 else { return .wait }
            queue.freeCount -= 1
            return .admitted
        }
        switch next {
        case .admitted: return true
        case .wait: return false
        case .refused(let error): throw error
        }
    }

    static func expired(_ what: String) -> StoreError {
        StoreError(.busy, "timed out waiting for \(what)", hint: "Try again, or raise waitTimeout.")
    }
}
