import DequeModule
import Dispatch
import Synchronization

/// The threads that run asynchronous bodies, and other work that blocks or takes long.
///
/// Coffer creates its own threads, because Dispatch's are shared. Dispatch has 255 threads for all
/// serial queues of a process. Outside of Darwin, a concurrent queue shares its threads with
/// Swift's tasks, one for each core. Bodies that wait for each other's stores would therefore stop
/// everything that uses Dispatch, or all tasks.
///
/// 1. *In hand.* A `Gate` admits a caller that needs a thread only together with one. So every
///    permit is held by a caller that can proceed. While no thread is free, only blocked threads
///    are admitted.
/// 2. *Running.* At most `maximumRunningCount` threads have work that is not waiting. A thread that
///    waits at a gate or for a stream frees its running slot, and proceeds at once when the wait is
///    over.
/// 3. *Threads.* At most `maximumThreadCount` exist. Further tasks stay in the queues of their
///    gates, where their deadlines and cancellations reach them, until a thread is free. So blocked
///    threads wait only for work that has a thread, and `DeadlockWatch` finds a cycle among them.
/// 4. *Idle.* A thread without work ends after `idleDuration`.
///
/// All threads have the system's default priority for a new thread, whatever the task's priority
/// is.
package final class WorkThreads: Sendable {
    /// The threads that all stores of the process share.
    static let shared = WorkThreads(
        maximumRunningCount: 256, maximumThreadCount: 1024, idleDuration: .seconds(5))

    private struct State {
        /// Threads without work, the most recently used last.
        var idle: [WorkThread] = []
        var threadCount = 0
        /// The number of threads with work that is not waiting.
        var runningCount = 0
        /// Gates with a ticket that lacks only a thread, in the order in which they get one.
        var gates = Deque<Gate>()
        /// Whether the system refused a thread within the last 100 ms.
        var isRefused = false
    }

    private enum Found {
        case thread(WorkThread)
        /// Room for a thread that is to be created.
        case slot
    }

    let idleDuration: Duration
    private let maximumRunningCount: Int
    private let maximumThreadCount: Int
    private let begin: @Sendable (WorkThread) -> Bool
    private let state = Mutex(State())

    /// Begins without threads; they are created when work comes.
    ///
    /// - Parameters:
    ///   - maximumRunningCount: The most threads whose work is not waiting.
    ///   - maximumThreadCount: The most threads that exist.
    ///   - idleDuration: How long a thread without work is kept.
    ///   - begin: Starts a thread; returns `false` if the system refuses it.
    init(
        maximumRunningCount: Int, maximumThreadCount: Int, idleDuration: Duration,
        begin: @escaping @Sendable (WorkThread) -> Bool = { $0.begin() }
    ) {
        (self.maximumRunningCount, self.maximumThreadCount) = (
            maximumRunningCount, maximumThreadCount
        )
        (self.idleDuration, self.begin) = (idleDuration, begin)
    }

    /// The number of existing threads, including idle ones.
    var threadCount: Int { state.withLock { $0.threadCount } }

    /// The number of threads with work that is not waiting.
    var runningCount: Int { state.withLock { $0.runningCount } }

    /// For callers that waited for a thread until their deadline.
    static var busy: StoreError {
        StoreError(
            .busy, "timed out waiting for a thread: this process runs as many bodies as it may",
            hint: "End bodies sooner; one that waits for something else keeps its thread.")
    }

    /// Runs `work` on a thread of `shared` as soon as one is free, and does not wait for it.
    package static func run(_ work: @escaping @Sendable () -> Void) {
        everybody.run(work)
    }

    private static let everybody = Gate(permitCount: .max)

    // MARK: For gates

    /// Takes a thread for a ticket at this gate; creates one if necessary and allowed.
    ///
    /// - Returns: `nil` if none is free, or if other gates wait for a thread already. Then the gate
    ///   waits for one too, and gets it through `Gate.offer(_:)`.
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

    /// Adds the gate to the end of those that wait for a thread. It gets one through
    /// `Gate.offer(_:)`.
    func wait(_ gate: Gate) {
        state.withLock { $0.gates.append(gate) }
    }

    private func find(_ state: inout State) -> Found? {
        guard state.runningCount < maximumRunningCount else { return nil }
        if let idle = state.idle.popLast() {
            state.runningCount += 1
            return .thread(idle)
        }
        guard state.threadCount < maximumThreadCount, !state.isRefused else { return nil }
        state.threadCount += 1
        state.runningCount += 1
        return .slot
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
        // A waiting gate gets a thread in any case when another thread ends its work. If no thread
        // exists, or all of them wait, only asking the system again helps.
        Self.alarms.asyncAfter(deadline: .now() + .milliseconds(100)) { [self] in
            state.withLock { $0.isRefused = false }
            offerFree()
        }
        return nil
    }

    private static let alarms = DispatchQueue(label: "coffer.threads")

    /// Passes free threads to the gates that wait for one, by `Gate.offer(_:)`. Ends when none is
    /// free or no gate waits.
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

    /// Marks the thread, whose work has ended, as idle. Gates that wait for a thread get it at
    /// once.
    func didEnd(_ thread: WorkThread) {
        putBack(thread)
        offerFree()
    }

    /// Removes an idle thread, so that it gets no more work.
    ///
    /// - Returns: `false` if the thread was taken for work; it then remains.
    func remove(_ thread: WorkThread) -> Bool {
        state.withLock { state in
            guard let index = state.idle.lastIndex(where: { $0 === thread }) else { return false }
            state.idle.remove(at: index)
            state.threadCount -= 1
            return true
        }
    }

    /// Runs `wait`, which blocks this thread until another thread acts, and returns its result.
    ///
    /// A thread of a `WorkThreads` does not count as running meanwhile, so another thread may run.
    static func whileBlocked<T>(_ wait: () -> T) -> T {
        guard let threads = WorkThread.current?.threads else { return wait() }
        threads.state.withLock { $0.runningCount -= 1 }
        threads.offerFree()
        // At once, even beyond `maximumRunningCount`, because others wait for what this thread
        // holds.
        defer { threads.state.withLock { $0.runningCount += 1 } }
        return wait()
    }
}
