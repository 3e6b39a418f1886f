import Foundation
import Synchronization

/// Writes lines on a thread of its own, so that a reader that stalls does not hold up the caller.
final class EventLines: Sendable {
    private struct Line {
        let isReplaceable: Bool
        let write: @Sendable () -> Void
    }

    private let waiting = Mutex<[Line]>([])
    private let queue = DispatchQueue(label: "coffer.events")

    /// Adds a line behind those that wait.
    ///
    /// - Parameter isReplaceable: Whether the next such line says all that this one says: then it
    ///   takes the place of this one, if nobody has read that yet.
    func add(isReplaceable: Bool = false, _ write: @escaping @Sendable () -> Void) {
        let line = Line(isReplaceable: isReplaceable, write: write)
        let isReplaced = waiting.withLock { waiting in
            if isReplaceable, waiting.last?.isReplaceable == true {
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

    /// Waits until all lines are written.
    func finish() { queue.sync {} }
}
