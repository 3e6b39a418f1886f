import Foundation
import Synchronization

/// A clock that stands still until a test sets it.
public final class HandClock: Sendable {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)
    private let time = Mutex(HandClock.start)

    public init() {}

    public var date: Date { time.withLock { $0 } }

    public func advance(by seconds: Double) { time.withLock { $0 += seconds } }

    /// Sets the clock to so many seconds after the time with which it began.
    public func set(to seconds: Int) { time.withLock { $0 = Self.start + Double(seconds) } }
}
