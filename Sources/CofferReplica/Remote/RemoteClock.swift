import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time of a remote, by its own clock.
final class RemoteClock: Sendable {
    private struct State {
        var newest: Date?
        /// When the last answer with a time came.
        var told: (time: Date, at: ContinuousClock.Instant)?
    }

    private let state = Mutex(State())

    /// The newest time that the remote has told; `nil` if it never has.
    var time: Date? { state.withLock { $0.newest } }

    /// What the remote's clock shows now, as far as this machine can tell.
    var estimate: Date? {
        state.withLock { state in
            state.told.map { told in
                told.time + told.at.duration(to: .now) / .seconds(1)
            }
        }
    }

    /// Estimates by what another clock of the same remote was told, until this one is told more.
    func estimate(as other: RemoteClock) {
        let told = other.state.withLock(\.told)
        state.withLock { $0.told = told }
    }

    func note(_ time: Date?) {
        guard let time else { return }
        state.withLock { state in
            state.newest = state.newest.map { max($0, time) } ?? time
            state.told = (time, .now)
        }
    }
}
