import Synchronization

/// Sweeps expired entries by itself, in a store that has given an entry a time of expiry.
///
/// It waits for the interval of the configuration, or longer if no entry ends before. Each slice is
/// a write of its own, first in, first out with the others: these wait for one slice at most. In a
/// store that writes nothing else it sweeps without a pause. Beside other writes it rests after
/// each slice, so that few of them meet one.
final class ExpirySweeper: Sendable {
    /// Entries in one write.
    private static let sliceCount = 256
    /// The longest time between two looks, because a clock may be set.
    private static let maximumDelay = Duration.seconds(3600)

    /// The part of the time that slices take beside other writes. With less than a hundredth, the
    /// 99th percentile of the writes' times stays as it is.
    private static let timeShare = 0.005
    /// After so many intervals with expired entries left, the part grows with the delay.
    private static let intervalCountInTime = 2.0
    private static let maximumTimeShare = 0.5

    private struct State {
        var alarm = Alarm()
        var isStopped = false
        /// The writes that the store had done after the last slice.
        var writeCount = 0
        /// The first rest since nothing was left to sweep.
        var firstRest: ContinuousClock.Instant?
        /// Sweeps in a task of its own.
        var sweep: (@Sendable () -> Void)?
    }

    private let interval: Duration?
    private let state = Mutex(State())
    /// Whether the alarm rings after the interval at the latest. Spares a set of an entry that
    /// expires the lock.
    private let isSoon = Atomic(false)
    /// How many entries got a time of expiry.
    private let requestCount = Atomic(0)

    /// - Parameter interval: How long to wait at least; `nil` for never.
    init(every interval: Duration?) {
        self.interval = interval
    }

    /// Looks after the interval at the latest. Must be called when an entry gets a time of expiry.
    func begin(_ work: ExpiryWork, _ core: StoreCore?) {
        guard interval != nil else { return }
        requestCount.add(1, ordering: .sequentiallyConsistent)
        guard !isSoon.load(ordering: .sequentiallyConsistent) else { return }
        state.withLock { state in
            guard state.sweep == nil, !state.isStopped else { return }
            state.sweep = { [weak core, weak self] in
                guard let core, let self else { return }
                Task.detached { await self.sweep(work, core) }
            }
        }
        soon()
    }

    /// Ends it: the alarm rings no more.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            state.sweep = nil
            state.alarm.stop()
        }
    }

    /// Sets the alarm to the end of the interval.
    private func soon() {
        guard let interval else { return }
        isSoon.store(true, ordering: .sequentiallyConsistent)
        setAlarm(interval)
    }

    private func setAlarm(_ delay: Duration) {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.alarm.set(.now + delay) { [weak self] in self?.ring() }
        }
    }

    private func ring() {
        let sweep = state.withLock { state in
            state.alarm.didRing()
            return state.sweep
        }
        sweep?()
    }

    private func sweep(_ work: ExpiryWork, _ core: StoreCore) async {
        // An entry that is counted now is committed before the slices that follow.
        let count = requestCount.load(ordering: .sequentiallyConsistent)
        do {
            while true {
                let slice = try await sweepSlice(work, core)
                let isAlone = isAlone(core)
                guard slice.isMoreLeft else {
                    if let failure = slice.failure { throw failure }
                    break
                }
                if !isAlone { return rest(after: slice.duration) }
            }
            state.withLock { $0.firstRest = nil }
            let rest = try await core.read { tx in try work.timeToNext(tx.connection()) }
            wait(rest ?? Self.maximumDelay, unlessMoreThan: count)
        } catch let error as StoreError where error.code == .closed {
            return
        } catch {
            // A suspended store is open again later, a full disk may get room, and a trigger may be
            // dropped. An operator hears of damage by the write's own event.
            state.withLock { $0.firstRest = nil }
            soon()
        }
    }

    /// Sweeps in one write. Returns whether more is left, why a table was not swept, and about how
    /// long other writes waited.
    private func sweepSlice(
        _ work: ExpiryWork, _ core: StoreCore
    ) async throws -> (isMoreLeft: Bool, failure: StoreError?, duration: Duration) {
        let (slice, duration) = try await core.write(.init()) { tx in
            let beginning = ContinuousClock.now
            let slice = try work.sweep(tx.connection(), Self.sliceCount)
            return (slice, beginning.duration(to: .now))
        }
        // The task may resume long after the commit, so it cannot time the commit itself.
        // Encrypting the pages takes about as long as the statements, and a slow disk longer.
        let commit = max(duration, core.writes.commitDurationMean)
        return (slice.isMoreLeft, slice.failure, duration + commit)
    }

    /// Whether the store has written nothing but a slice since the slice before.
    private func isAlone(_ core: StoreCore) -> Bool {
        let isSomebodyWaiting = core.waitingWriteCount > 0
        let count = core.writes.endedCount
        return state.withLock { state in
            defer { state.writeCount = count }
            return !isSomebodyWaiting && count <= state.writeCount + 1
        }
    }

    private func rest(after duration: Duration) {
        guard let interval else { return }
        isSoon.store(true, ordering: .sequentiallyConsistent)
        let now = ContinuousClock.now
        let firstRest = state.withLock { state in
            let firstRest = state.firstRest ?? now
            state.firstRest = firstRest
            return firstRest
        }
        setAlarm(
            Self.rest(after: duration, delay: firstRest.duration(to: now), interval: interval))
    }

    /// How long to rest after a slice beside other writes; an interval at most.
    ///
    /// - Parameters:
    ///   - duration: How long the slice took, with its commit.
    ///   - delay: How long ago the first rest was since nothing was left to sweep.
    static func rest(after duration: Duration, delay: Duration, interval: Duration) -> Duration {
        let intervalCount = delay / interval
        let share = timeShare * max(1, intervalCount / intervalCountInTime)
        return min(interval, duration * (1 / min(share, maximumTimeShare) - 1))
    }

    /// Sets the alarm for the next entry that ends, unless other entries got a time of expiry since
    /// they were counted: these may end before.
    private func wait(_ delay: Duration, unlessMoreThan count: Int) {
        guard let interval, delay > interval else { return soon() }
        isSoon.store(false, ordering: .sequentiallyConsistent)
        guard requestCount.load(ordering: .sequentiallyConsistent) == count else { return soon() }
        setAlarm(min(delay, max(Self.maximumDelay, interval)))
    }
}
