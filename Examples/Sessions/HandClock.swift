import Coffer
import Foundation
import Synchronization

/// A clock that moves only by hand, so that nothing has to wait for an expiry.
///
/// A server leaves `Configuration.currentDate` as it is: the system's clock.
final class HandClock: Sendable {
    private let date = Mutex(Date(timeIntervalSince1970: 1_769_936_400))

    var now: Date { date.withLock { $0 } }

    func set(to now: Date) { date.withLock { $0 = now } }

    func advance(minutes: Double) { date.withLock { $0 += 60 * minutes } }

    /// Settings of a store that lives by this clock.
    var configuration: Configuration {
        var configuration = Configuration()
        configuration.currentDate = { self.now }
        // A store sweeps by itself every minute. The example counts what it sweeps.
        configuration.expirySweepInterval = nil
        return configuration
    }
}
