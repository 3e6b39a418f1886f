import DequeModule
import Dispatch
import Synchronization

/// Where work runs that blocks a thread or takes long.
protocol WorkThreads: Sendable {
    func run(_ work: @escaping @Sendable () -> Void)
}

/// One thread: a serial queue.
extension DispatchQueue: WorkThreads {
    func run(_ work: @escaping @Sendable () -> Void) { async(execute: work) }
}

/// A thread for each piece of work at once, apart from those that tasks run on.
///
/// Outside of Darwin a concurrent dispatch queue shares its threads with Swift's tasks: one for
/// each core, and no other one as long as these compute. As many long reads as there are cores
/// would stop every task of the process. A serial queue gets a thread of its own when it has work;
/// Dispatch has at most 255 of these.
final class ManyThreads: WorkThreads {
    private struct State {
        var count = 0
        /// Those that have no work, the last one first: its thread is still there.
        var idle: [DispatchQueue] = []
        /// What waits for one of them.
        var waiting = Deque<@Sendable () -> Void>()
    }

    private let label: String
    private let countMax: Int
    private let state = Mutex(State())

    /// - Parameter countMax: The work beyond that many waits, first in, first out.
    init(label: String, countMax: Int = .max) {
        (self.label, self.countMax) = (label, countMax)
    }

    func run(_ work: @escaping @Sendable () -> Void) {
        let queue: DispatchQueue? = state.withLock { state in
            if let idle = state.idle.popLast() { return idle }
            guard state.count < countMax else {
                state.waiting.append(work)
                return nil
            }
            state.count += 1
            return DispatchQueue(label: label)
        }
        if let queue { run(work, on: queue) }
    }

    private func run(_ work: @escaping @Sendable () -> Void, on queue: DispatchQueue) {
        queue.async { [self] in
            work()
            let next = state.withLock { state in
                let next = state.waiting.popFirst()
                if next == nil { state.idle.append(queue) }
                return next
            }
            if let next { run(next, on: queue) }
        }
    }
}
