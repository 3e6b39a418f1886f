import Synchronization

/// Sweeps expired entries by itself, in a store that has given an entry a time of expiry.
///
/// It waits for the interval of the configuration, or longer if no entry ends before. Each slice is
/// a write of its own, first in, first out with the others: these wait for one slice at most. While
/// other writes wait, it sweeps one slice at a time.
final class ExpirySweeper: Sendable {
    /// Entries in one write.
    private static let sliceCount = 256
    /// The longest time between two looks, because a clock may be set.
    private static let maximumDelay = Duration.seconds(3600)

    private struct State {
        var alarm = Alarm()
        var isStopped = false
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
                let isMoreLeft = try await core.write(.init()) { tx in
                    try work.sweep(tx.connection(), Self.sliceCount)
                }
                // The rest waits for a moment without writes.
                guard isMoreLeft else { break }
                if core.waitingWriteCount > 0 { return soon() }
            }
            let rest = try await core.read { tx in try work.timeToNext(tx.connection()) }
            wait(rest ?? Self.maximumDelay, unlessMoreThan: count)
        } catch let error as StoreError where error.code == .closed {
            return
        } catch {
            // A suspended store is open again later, and a full disk may get room. An operator
            // hears of damage by the write's own event.
            soon()
        }
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
