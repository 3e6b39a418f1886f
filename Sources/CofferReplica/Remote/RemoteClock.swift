import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The newest time that a remote has told, by its own clock.
final class RemoteClock: Sendable {
    private let newest = Mutex<Date?>(nil)

    var time: Date? { newest.withLock(\.self) }

    func note(_ time: Date?) {
        guard let time else { return }
        newest.withLock { newest in newest = newest.map { max($0, time) } ?? time }
    }
}
