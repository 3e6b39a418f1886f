import DequeModule
import Dispatch
import Synchronization

/// The threads that asynchronous bodies run on, and other work that blocks or takes long.
///
/// Threads of Coffer's own: Dispatch has 255 for the serial queues of a process, and a concurrent
/// queue shares its threads with Swift's tasks outside of Darwin, one for each core. So bodies that
/// wait for each other's stores would stop all that uses Dispatch, or all tasks.
///
/// 1. *In hand.* Who needs a thread is let in by a `Gate` together with it. A place at a gate is
///    thus held by somebody who can go on; without a thread nobody but blocked threads is let in.
/// 2. *Running.* At most `runningMax` have work that does not wait. Who waits at a gate or for a
///    stream hands its place on, and goes on at once when the wait is over.
/// 3. *Threads.* At most `threadMax`. Beyond it tasks stay in the lines of their gates, where
///    their deadlines and cancellations reach them, until a thread is free. So those that are
///    blocked wait for who has a thread, and a circle of them is found by `DeadlockWatch`.
/// 4. *Idle.* A thread without work ends after `idleDuration`.
///
/// All have the priority that the system gives to a new thread, whatever that of the task is.
final class WorkThreads: Sendable {
    /// Those of the process.
    static let shared = WorkThreads(
        runningMax: 256, threadMax: 1024, idleDuration: .seconds(5))

    private struct State {
        /// Those without work, the one that had some last at the end.
        var idle: [WorkThread] = []
        var threadCount = 0
        /// Those with work that does not wait.
        var runningCount = 0
        /// Gates where somebody lacks nothing but a thread, in the order in which they get one.
        var gates = Deque<Gate>()
        /// Whether the system has refused a thread a moment ago.
        var isRefused = false
    }

    private enum Found {
        case thread(WorkThread)
        /// A place for one that is to be made.
        case place
    }

    let idleDuration: Duration
    private let runningMax: Int
    private let threadMax: Int
    private let begin: @Sendable (WorkThread) -> Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - idleDuration: How long a thread without work is kept.
    ///   - begin: Begins a thread; `false` if the system refuses it.
    init(
        runningMax: Int, threadMax: Int, idleDuration: Duration,
        begin: @escaping @Sendable (WorkThread) -> Bool = { $0.begin() }
    ) {
        (self.runningMax, self.threadMax) = (runningMax, threadMax)
        (self.idleDuration, self.begin) = (idleDuration, begin)
    }

    /// Those that exist, with those that are idle.
    var threadCount: Int { state.withLock { $0.threadCount } }

    /// Those with work that does not wait.
    var runningCount: Int { state.withLock { $0.runningCount } }

    /// For who has waited for a thread until the deadline.
    static var busy: StoreError {
        StoreError(
            .busy, "waited in vain for a thread: as many bodies run in this process as may",
            hint: "End bodies sooner; one that waits for something else keeps its thread.")
    }

    /// Runs `work` as soon as there is a thread.
    static func run(_ work: @escaping @Sendable () -> Void) {
        everybody.run(work)
    }

    private static let everybody = Gate(permitCount: .max)

    // MARK: For gates

    /// A thread for somebody at this gate.
    ///
    /// - Returns: `nil` if there is none, or other gates were here before. Then the gate is told of
    ///   one by `offer(_:)`.
    func take(for gate: Gate) -> WorkThread? {
        while true {
            let found: Found? = state.withLock { state in
                if state.gates.isEmpty {
                    if let current = WorkThread.takeForNext(of: self) { return .thread(current) }
                    if let found = find(&state) { return found }
                }
                state.gates.append(gate)
                return nil
            }
            guard let found else { return nil }
            if let thread = thread(found) { return thread }
        }
    }

    /// Somebody else at this gate lacks nothing but a thread.
    func wait(_ gate: Gate) {
        state.withLock { $0.gates.append(gate) }
    }

    private func find(_ state: inout State) -> Found? {
        guard state.runningCount < runningMax else { return nil }
        if let idle = state.idle.popLast() {
            state.runningCount += 1
            return .thread(idle)
        }
        guard state.threadCount < threadMax, !state.isRefused else { return nil }
        state.threadCount += 1
        state.runningCount += 1
        return .place
    }

    private func thread(_ found: Found) -> WorkThread? {
        if case .thread(let thread) = found { return thread }
        let thread = WorkThread(of: self)
        if begin(thread) { return thread }
        state.withLock { state in
            state.threadCount -= 1
            state.runningCount -= 1
            state.isRefused = true
        }
        // Who waits has a thread in any case once another one has ended its work. If there is none,
        // or all wait, the system has to be asked again.
        Self.alarms.asyncAfter(deadline: .now() + .milliseconds(100)) { [self] in
            state.withLock { $0.isRefused = false }
            offerFree()
        }
        return nil
    }

    private static let alarms = DispatchQueue(label: "coffer.threads")

    /// Gives the threads that are free to the gates that wait for one.
    private func offerFree() {
        while true {
            let next: (Gate, Found)? = state.withLock { state in
                guard !state.gates.isEmpty, let found = find(&state) else { return nil }
                return (state.gates.removeFirst(), found)
            }
            guard let (gate, found) = next else { return }
            guard let thread = thread(found) else {
                state.withLock { $0.gates.prepend(gate) }
                continue
            }
            if !gate.offer(thread) { putBack(thread) }
        }
    }

    private func putBack(_ thread: WorkThread) {
        state.withLock { state in
            state.runningCount -= 1
            state.idle.append(thread)
        }
    }

    // MARK: For threads

    /// The thread has no work any more.
    func didEnd(_ thread: WorkThread) {
        putBack(thread)
        offerFree()
    }

    /// Takes out a thread that was idle for long.
    ///
    /// - Returns: `false` if it was taken for work.
    func remove(_ thread: WorkThread) -> Bool {
        state.withLock { state in
            guard let index = state.idle.lastIndex(where: { $0 === thread }) else { return false }
            state.idle.remove(at: index)
            state.threadCount -= 1
            return true
        }
    }

    /// Runs `wait`, which blocks this thread until somebody else does something.
    static func whileBlocked<T>(_ wait: () -> T) -> T {
        guard let threads = WorkThread.current?.threads else { return wait() }
        threads.state.withLock { $0.runningCount -= 1 }
        threads.offerFree()
        // At once, also beyond `runningMax`: others wait for what this thread holds.
        defer { threads.state.withLock { $0.runningCount += 1 } }
        return wait()
    }
}
