import Foundation

/// A clock that a test moves: for expiry, and for tasks that sleep.
///
/// ```swift
/// let clock = ManualClock()
/// var configuration = Configuration()
/// configuration.currentDate = { clock.date }
/// configuration.expirySweepInterval = nil
/// let store = try Store(.memory, configuration: configuration)
/// clock.advance(by: .seconds(1801))
/// ```
///
/// Nobody else moves it. A task that sleeps until a later instant waits until a test gets there.
/// The store's own time-outs, such as `Configuration.waitTimeout`, follow the system's clock.
public final class ManualClock: Clock, Sendable {
    /// A moment of the clock.
    public struct Instant: InstantProtocol {
        /// The time since the clock was made.
        public var offset = Duration.zero

        /// The moment after a duration.
        public func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }
        /// The time until another moment.
        public func duration(to other: Self) -> Duration { other.offset - offset }
        /// Whether a moment is before another one.
        public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let end: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant()
        var sleepers: [Int: Sleeper] = [:]
        /// The sleepers that were cancelled, by number: also before they slept.
        var cancelled: Set<Int> = []
        var count = 0
    }

    // A lock that the thread sanitizer knows, unlike that of `Synchronization`.
    private let lock = NSLock()
    // Safe, because it is used only while the lock is held.
    nonisolated(unsafe) private var state = State()
    private let start: Date

    /// Makes a clock.
    ///
    /// - Parameter start: The date that the clock shows at first.
    public init(start: Date = Date(timeIntervalSince1970: 1_800_000_000)) {
        self.start = start
    }

    /// The current time of the clock.
    public var now: Instant { lock.withLock { state.now } }
    /// Always zero, because a test sets the time exactly.
    public var minimumResolution: Duration { .zero }
    /// The number of tasks that sleep by this clock.
    public var sleeperCount: Int { lock.withLock { state.sleepers.count } }

    /// The current date of the clock, for `Configuration.currentDate`.
    public var date: Date {
        let (seconds, attoseconds) = now.offset.components
        return start + Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Moves the clock, and wakes the tasks whose time has come.
    ///
    /// - Parameter duration: How far it moves.
    public func advance(by duration: Duration) {
        let woken = lock.withLock {
            state.now = state.now.advanced(by: duration)
            let woken = state.sleepers.filter { $0.value.end <= state.now }
            for number in woken.keys { state.sleepers[number] = nil }
            // In the order of their times, as a real clock wakes them.
            return woken.sorted { ($0.value.end, $0.key) < ($1.value.end, $1.key) }
                .map(\.value.continuation)
        }
        for continuation in woken { continuation.resume() }
    }

    /// Sleeps until the clock has been moved to a moment or beyond.
    ///
    /// - Parameters:
    ///   - end: The moment.
    ///   - tolerance: Ignored.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until end: Instant, tolerance: Duration?) async throws {
        let number = lock.withLock {
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = lock.withLock { () -> Bool? in
                    if state.cancelled.contains(number) { return false }
                    if state.now >= end { return true }
                    state.sleepers[number] = Sleeper(end: end, continuation: continuation)
                    return nil
                }
                if isOver == true { continuation.resume() }
                if isOver == false { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = lock.withLock {
                state.cancelled.insert(number)
                return state.sleepers.removeValue(forKey: number)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
