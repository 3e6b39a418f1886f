import Dispatch

/// One timer that is set again and again; while it is stopped the system knows nothing of it.
struct Alarm: @unchecked Sendable {
    // @unchecked: a dispatch source may be used from any thread; the rest is guarded by the mutex
    // of who has the alarm.

    private var timer: (any DispatchSourceTimer)?
    private var instant: ContinuousClock.Instant?
    /// Whether there is an instant: stopping what is stopped is a part of every read.
    private var isSet = false

    /// Rings at the instant, unless it rings before that anyway.
    ///
    /// - Parameter ring: Called on a thread of the system's; that of the first call is kept.
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

    /// It has rung.
    mutating func didRing() {
        instant = nil
        isSet = false
    }

    mutating func stop() {
        guard isSet else { return }
        didRing()
        timer?.schedule(deadline: .distantFuture)
    }

    /// Not one of the store's, which a running body may block, nor one that shares its threads with
    /// tasks (`WorkThreads.swift`).
    private static let queue = DispatchQueue(label: "coffer.alarm")

    private static func make(_ ring: @escaping @Sendable () -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: ring)
        timer.activate()
        return timer
    }
}
