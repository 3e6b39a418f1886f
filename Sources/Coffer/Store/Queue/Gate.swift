import DequeModule
import Dispatch
import Synchronization

/// Lets at most so many in at once; the others wait in line, first in, first out.
///
/// Both kinds of waiting stand in the same line: a thread that blocks, and a task that does not. A
/// task is let in together with a thread (`WorkThreads`). As long as there is none, those behind it
/// that have one go first.
final class Gate: Sendable {
    /// One who waits. Its state is guarded by the gate's mutex.
    final class Ticket: Sendable {
        fileprivate enum State { case waiting, admitted, cancelled }

        /// Admitted, with a thread if it needs one; or the reason why not.
        typealias Decision = Result<WorkThread?, StoreError>

        /// Whether it may be let in beside what has not ended yet: see `pass()`.
        fileprivate let isSharing: Bool
        /// When it leaves the line by itself, and what it waits for; `nil` if it has its own clock.
        let deadline: (instant: ContinuousClock.Instant, what: String)?
        /// Where it gets a thread from; `nil` if it has one, which waits.
        fileprivate let threads: WorkThreads?
        fileprivate let state = Mutex(State.waiting)
        private let onDecision: @Sendable (Decision) -> Void

        /// For a thread that waits.
        ///
        /// - Parameter onDecision: Called once, outside the mutex.
        init(isSharing: Bool, onDecision: @escaping @Sendable (Decision) -> Void) {
            self.isSharing = isSharing
            self.onDecision = onDecision
            (deadline, threads) = (nil, nil)
        }

        /// For who waits without a thread.
        ///
        /// - Parameters:
        ///   - threads: Where `work` runs.
        ///   - onRefusal: Called outside the mutex if it is not let in. Either this or `work` is
        ///     called, once.
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

        /// Leaves the line if it still stands there.
        fileprivate func withdraw(_ error: StoreError) {
            guard decide(.cancelled) else { return }
            onDecision(.failure(error))
        }

        /// - Parameter thread: `nil` for one that has a thread.
        fileprivate func admit(_ thread: WorkThread?) -> Bool {
            guard decide(.admitted) else { return false }
            onDecision(.success(thread))
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

    /// One who is let in, with the thread for those who need one.
    private typealias Admission = (ticket: Ticket, thread: WorkThread?)

    private struct Line {
        var freeCount: Int
        /// Whether somebody lacks nothing but a thread, and the threads know.
        var lacksThread = false
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

        /// A thread for this one; `nil` if there is none. Then the threads know.
        mutating func takeThread(_ threads: WorkThreads, for gate: Gate) -> WorkThread? {
            guard !lacksThread else { return nil }
            let thread = threads.take(for: gate)
            lacksThread = thread == nil
            return thread
        }

        /// Takes out the first who can go on: it has a thread, or there is one for it.
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
            case admit(WorkThread?)
            case wait
            case refuse(StoreError)
        }
        let next: Next = line.withLock { line in
            if let closed = line.closed { return .refuse(closed) }
            let thread =
                line.freeCount > 0
                ? ticket.threads.flatMap { line.takeThread($0, for: self) } : nil
            guard line.freeCount > 0, ticket.threads == nil || thread != nil else {
                line.append(ticket)
                if let deadline = ticket.deadline { setAlarm(&line, deadline.instant) }
                return .wait
            }
            line.freeCount -= 1
            return .admit(thread)
        }
        switch next {
        case .admit(let thread): if !admit((ticket, thread)) { leave() }
        case .refuse(let error): ticket.withdraw(error)
        case .wait: break
        }
    }

    /// Gives the place to the next in line who still waits and can go on.
    func leave() {
        while true {
            let next: Admission? = line.withLock { line in
                if let next = line.takeNext(for: self) { return next }
                // Who lacks a thread still waits.
                if line.tickets.isEmpty { line.alarm.stop() }
                line.freeCount += 1
                if line.freeCount == permitCount {
                    for semaphore in line.onEmpty { semaphore.signal() }
                    line.onEmpty.removeAll()
                }
                return nil
            }
            guard let next else { return }
            if admit(next) { return }
        }
    }

    /// - Returns: `false` if it has left the line meanwhile.
    private func admit(_ next: Admission) -> Bool {
        if next.ticket.admit(next.thread) { return true }
        next.thread?.giveBack()
        return false
    }

    /// Lets in the first who lacks nothing but a thread, with this one.
    ///
    /// - Returns: `false` if there is nobody.
    func offer(_ thread: WorkThread) -> Bool {
        while true {
            let ticket: Ticket? = line.withLock { line in
                line.lacksThread = false
                let isNext = { (ticket: Ticket) in ticket.threads != nil && ticket.isWaiting }
                guard line.freeCount > 0, let index = line.tickets.firstIndex(where: isNext) else {
                    return nil
                }
                line.freeCount -= 1
                let ticket = line.tickets.remove(at: index)
                if line.freeCount > 0, line.tickets.contains(where: isNext) {
                    line.lacksThread = true
                    thread.threads.wait(self)
                }
                return ticket
            }
            guard let ticket else { return false }
            if ticket.admit(thread) { return true }
            leave()
        }
    }

    /// Whether the next in line may share with who is inside.
    var isNextSharing: Bool { line.withLock { $0.next?.isSharing ?? false } }

    /// Gives the place to the next in line if that one may share; else it stays with the caller.
    ///
    /// - Returns: Whether the place is given away.
    func pass() -> Bool {
        while true {
            let next: Admission? = line.withLock { line in
                guard let next = line.next, next.isSharing else { return nil }
                // Its own first, also before other gates: who shares a commit must not wait for it.
                let thread = next.threads.flatMap {
                    WorkThread.takeForNext(of: $0) ?? line.takeThread($0, for: self)
                }
                guard next.threads == nil || thread != nil else { return nil }
                line.tickets.removeFirst()
                return (next, thread)
            }
            guard let next else { return false }
            if admit(next) { return true }
        }
    }

    /// Leaves the line, with `.cancelled`; nothing happens to one who was admitted.
    func cancel(_ ticket: Ticket) {
        ticket.withdraw(
            StoreError(.cancelled, "the task was cancelled before its turn; nothing was done"))
    }

    /// One alarm for all who wait without a thread: it is set to the first deadline, and stopped
    /// when nobody waits.
    private func setAlarm(_ line: inout Line, _ instant: ContinuousClock.Instant) {
        line.alarm.set(instant) { [weak self] in self?.expireAll() }
    }

    /// Lets those leave the line whose time is up.
    private func expireAll() {
        let now = ContinuousClock.now
        let (due, lacksThread) = line.withLock { line in
            line.alarm.didRing()
            let waiting = line.tickets.filter { $0.deadline != nil && $0.isWaiting }
            let next = waiting.compactMap(\.deadline?.instant).filter { $0 > now }.min()
            if let next { setAlarm(&line, next) }
            let due = waiting.filter { $0.deadline.map { $0.instant <= now } ?? false }
            return (due, line.freeCount > 0)
        }
        for ticket in due {
            ticket.withdraw(
                lacksThread ? WorkThreads.busy : Self.expired(ticket.deadline?.what ?? ""))
        }
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
        if isEmpty { return true }
        return WorkThreads.whileBlocked { semaphore.wait(timeout: deadline) } == .success
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
        let ticket = Ticket(isSharing: isSharing) { decision in
            if case .failure(let error) = decision { turn.come(error) } else { turn.come(nil) }
        }
        enter(ticket)
        if !turn.wait(timeout) { ticket.withdraw(Self.expired(what)) }
        try turn.result()
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
