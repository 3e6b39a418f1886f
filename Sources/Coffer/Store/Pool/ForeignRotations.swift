import Synchronization

/// Lets a rotation by another process come to its turn.
///
/// A rotation needs the write lock once. Beside a writer that never pauses it waited 0.8 s on
/// average, and 3.7 s at worst. So a writer that meets a rotation lets it go first, once.
final class ForeignRotations: Sendable {
    private struct State {
        var tested = ContinuousClock.now
        /// Whether the writer has let the present rotation go first.
        var hasStoodBack = false
        /// Whether the rotation is this store's own.
        var isOwn = false
        /// Why nobody may wait any longer.
        var reasonToStop: StoreError?
    }

    private static let testInterval = Duration.milliseconds(100)
    private static let maximumWait = Duration.seconds(2)

    private let state = Mutex(State())

    /// Waits for the end of a rotation by another process, at most 2 s. Looks for one at most every
    /// 100 ms, and waits for each only once.
    ///
    /// Goes on as soon as the rotation turns out to be this store's own, which may need the turn
    /// that the caller has.
    func standBack(for keyring: OpenKeyring) {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            guard !state.isOwn, state.tested.duration(to: now) >= Self.testInterval else {
                return false
            }
            state.tested = now
            return true
        }
        guard isDue else { return }
        let deadline = now + Self.maximumWait
        while KeyringByteLock.isHeld(.rotates, of: keyring.file) {
            let (isOwn, isOver) = state.withLock {
                ($0.isOwn, $0.hasStoodBack || $0.reasonToStop != nil)
            }
            if isOwn { return }
            guard !isOver, ContinuousClock.now < deadline else {
                return state.withLock { $0.hasStoodBack = true }
            }
            sleepBriefly()
        }
        state.withLock { $0.hasStoodBack = false }
    }

    /// Called when the store has taken the new key of a rotation: what is left of that rotation
    /// needs no turn.
    func didFollow() {
        state.withLock { $0.hasStoodBack = true }
    }

    /// Runs a rotation of this store, whose own writes need not wait for it.
    func duringOwn<T, E: Error>(_ work: () throws(E) -> T) throws(E) -> T {
        state.withLock { $0.isOwn = true }
        defer { state.withLock { $0.isOwn = false } }
        return try work()
    }

    /// Whether this store rotates the key.
    var isOwn: Bool { state.withLock { $0.isOwn } }

    /// Whether another process rotates the key. The lock alone does not tell whose it is.
    func isForeign(_ keyring: OpenKeyring) -> Bool {
        !isOwn && KeyringByteLock.isHeld(.rotates, of: keyring.file)
    }

    // MARK: Pause of the store

    /// Ends all waits for rotations with this reason, until `allowWaiting()`.
    func stopWaiting(_ reason: StoreError) { state.withLock { $0.reasonToStop = reason } }

    func allowWaiting() { state.withLock { $0.reasonToStop = nil } }

    var reasonToStop: StoreError? { state.withLock { $0.reasonToStop } }
}
