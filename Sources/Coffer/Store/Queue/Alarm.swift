import Dispatch

/// A timer that can be set repeatedly; a stopped alarm causes no wakeups.
struct Alarm: @unchecked Sendable {
    // @unchecked: a dispatch source may be used from any thread. The rest is guarded by the mutex
    // of the alarm's owner.

    private var timer: (any DispatchSourceTimer)?
    private var instant: ContinuousClock.Instant?
    /// Whether `instant` is set. The flag is there because every read calls `stop()`, set or not.
    private var isSet = false

    /// Rings once at the instant, unless the alarm is already set to an earlier one.
    ///
    /// - Parameters:
    ///   - instant: When to ring; at once if it has passed.
    ///   - ring: Called on a Dispatch thread. Only the closure of the first call is used.
    mutating func set(
        _ instant: ContinuousClock.Instant, _ ring: @escaping @Sendable () -> Void
    ) {
        if let known = self.instant, known <= instant { return }
        self.instant = instant
        isSet = true
        let timer = self.timer ?? Self.make(ring)
        self.timer = timer
        timer.schedule(deadline: .now() + .nanoseconds(Int((instant - .now).nanoseconds)))
    }

    /// Marks the alarm as not set; its owner calls this when the alarm rings.
    mutating func didRing() {
        instant = nil
        isSet = false
    }

    mutating func stop() {
        guard isSet else { return }
        didRing()
        timer?.schedule(deadline: .distantFuture)
    }

    /// Not a store's queue, which a running body may block, nor one that shares its threads with
    /// tasks (`WorkThreads.swift`).
    private static let queue = DispatchQueue(label: "coffer.alarm")

    private static func make(_ ring: @escaping @Sendable () -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: ring)
        timer.activate()
        return timer
    }
}
