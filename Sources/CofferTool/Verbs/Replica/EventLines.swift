import Foundation
import Synchronization

/// Writes lines on a thread of its own, so that a reader that stalls does not hold up the caller.
final class EventLines: Sendable {
    private struct Line {
        /// Of lines of which only the last one matters; `nil` for one that is always written.
        let kind: String?
        let write: @Sendable () -> Void
    }

    private let waiting = Mutex<[Line]>([])
    private let queue = DispatchQueue(label: "coffer.events")

    /// Adds a line behind those that wait.
    ///
    /// - Parameter kind: Names lines of which the next one says all that this one says: it takes
    ///   the place of this one, if that is the last and nobody has read it yet.
    func add(_ kind: String? = nil, _ write: @escaping @Sendable () -> Void) {
        let line = Line(kind: kind, write: write)
        let isReplaced = waiting.withLock { waiting in
            if let kind, waiting.last?.kind == kind {
                waiting[waiting.count - 1] = line
                return true
            }
            waiting.append(line)
            return false
        }
        guard !isReplaced else { return }
        queue.async { [self] in
            waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }?.write()
        }
    }

    /// Waits until all lines are written, for so long at most.
    func finish(within time: DispatchTimeInterval = .seconds(5)) {
        let isDone = DispatchSemaphore(value: 0)
        queue.async { isDone.signal() }
        _ = isDone.wait(timeout: .now() + time)
    }
}
