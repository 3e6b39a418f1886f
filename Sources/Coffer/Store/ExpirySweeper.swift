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
    /// Whether it has begun. Spares a set of an entry that expires the lock.
    private let hasBegun = Atomic(false)

    /// - Parameter interval: How long to wait at least; `nil` for never.
    init(every interval: Duration?) {
        self.interval = interval
    }

    /// Begins, unless it has begun. Must be called when an entry gets a time of expiry.
    func begin(_ work: ExpiryWork, _ core: StoreCore?) {
        guard interval != nil, !hasBegun.load(ordering: .relaxed) else { return }
        hasBegun.store(true, ordering: .relaxed)
        state.withLock { state in
            guard state.sweep == nil else { return }
            state.sweep = { [weak core, weak self] in
                guard let core, let self else { return }
                Task.detached { await self.sweep(work, core) }
            }
        }
        next(after: .zero)
    }

    /// Ends it: the alarm rings no more.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            state.sweep = nil
            state.alarm.stop()
        }
    }

    private func next(after delay: Duration) {
        guard let interval else { return }
        let delay = min(max(delay, interval), max(Self.maximumDelay, interval))
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
        do {
            while true {
                let removed = try await core.write(.init()) { tx in
                    try work.sweep(tx.connection(), Self.sliceCount)
                }
                // The rest waits for a moment without writes.
                guard removed == Self.sliceCount else { break }
                if core.waitingWriteCount > 0 { return next(after: .zero) }
            }
            let delay = try await core.read { tx in try work.timeToNext(tx.connection()) }
            guard let delay else {
                // The next entry that expires begins again. One that is not committed yet has
                // asked too early, and is found by the longest delay.
                hasBegun.store(false, ordering: .relaxed)
                return next(after: Self.maximumDelay)
            }
            next(after: delay)
        } catch let error as StoreError where error.code == .closed {
            return
        } catch {
            // A suspended store is open again later, and a full disk may get room. An operator
            // hears of damage by the write's own event.
            next(after: .zero)
        }
    }
}
