import Synchronization

/// Bounds the page caches of all stores of the process together.
///
/// Each store has a share: the size that its configuration asks for, halved as often as needed
/// until all shares fit into the budget. All are halved equally often, so that no store depends on
/// the order in which they were opened. When a share shrinks, idle connections release the excess
/// at once, and busy ones when their transaction ends. When stores close, the caches of the others
/// grow again as they are used.
///
/// SQLite's own bound for the process (`sqlite3_soft_heap_limit64`) counts every allocation under
/// one mutex, and Coffer has switched that off.
final class PageCacheBudget: Sendable {
    /// The budget of the process.
    static let shared = PageCacheBudget(maximumByteCount: 1 << 30)

    /// The fewest bytes that a connection gets, whatever the budget. With too many connections for
    /// that, the budget is exceeded.
    static let connectionByteCountMin = 256 << 10

    private struct State {
        var maximumByteCount: Int
        var shares: [ObjectIdentifier: Share] = [:]
    }

    private let state: Mutex<State>

    init(maximumByteCount: Int) {
        state = Mutex(State(maximumByteCount: maximumByteCount))
    }

    var maximumByteCount: Int {
        get { state.withLock { $0.maximumByteCount } }
        set {
            change { $0.maximumByteCount = max(newValue, 0) }
        }
    }

    /// Adds a share for one more store, and makes the shares of others smaller if necessary.
    ///
    /// - Parameters:
    ///   - byteCount: The bytes that the store would have without other stores.
    ///   - connectionCount: The most connections that it may have at once.
    func join(byteCount: Int, connectionCount: Int) -> Share {
        let share = Share(byteCount: byteCount, connectionCount: connectionCount)
        change { $0.shares[ObjectIdentifier(share)] = share }
        return share
    }

    /// Removes the share of a store that is closed. The shares of the others may grow.
    func leave(_ share: Share) {
        change { $0.shares[ObjectIdentifier(share)] = nil }
    }

    /// Changes the state, resizes all shares to fit, and trims those that became smaller.
    ///
    /// - Complexity: O(*stores*).
    private func change(_ body: (inout State) -> Void) {
        let smaller = state.withLock { state in
            body(&state)
            let halvingCount = Self.halvingCount(
                of: state.shares.values, for: state.maximumByteCount)
            return state.shares.values.filter { $0.resize(halvingCount: halvingCount) }
        }
        // Outside the mutex: connections that release pages do not wait for anybody here.
        for share in smaller { share.runTrim() }
    }

    /// How often all shares are halved until they fit, or until none can become smaller.
    private static func halvingCount(
        of shares: some Collection<Share>, for maximumByteCount: Int
    ) -> Int {
        var halvingCount = 0
        // In floating point, which cannot overflow and is exact enough.
        while shares.reduce(0, { $0 + $1.byteCount(halvingCount) }) > Double(maximumByteCount),
            shares.contains(where: { !$0.isLeast(halvingCount) })
        {
            halvingCount += 1
        }
        return halvingCount
    }

    /// The decrypted pages that one store may keep.
    final class Share: Sendable {
        private let maximumByteCount: Int
        private let connectionCount: Int
        private let current: Atomic<Int>
        private let trim = Mutex<(@Sendable () -> Void)?>(nil)

        fileprivate init(byteCount: Int, connectionCount: Int) {
            maximumByteCount = byteCount
            self.connectionCount = connectionCount
            current = Atomic(Self.connectionByteCount(byteCount, connectionCount))
        }

        /// The current number of bytes for each connection.
        var connectionByteCount: Int { current.load(ordering: .relaxed) }

        /// The current number of bytes for all connections.
        var byteCount: Int { connectionByteCount * connectionCount }

        /// Sets the closure that is called each time the share has become smaller.
        ///
        /// - Parameter trim: Makes idle connections adopt the share. Must not wait for a body.
        func onTrim(_ trim: @escaping @Sendable () -> Void) {
            self.trim.withLock { $0 = trim }
        }

        /// Calls the closure of `onTrim(_:)` if the share per connection is below `byteCount`. For
        /// a connection that adopted `byteCount` and became idle only afterwards.
        func trimIfSmaller(than byteCount: Int) {
            if connectionByteCount < byteCount { runTrim() }
        }

        fileprivate func runTrim() {
            trim.withLock { $0 }?()
        }

        private static func connectionByteCount(_ byteCount: Int, _ connectionCount: Int) -> Int {
            max(byteCount / connectionCount, connectionByteCountMin)
        }

        private func connectionByteCount(_ halvingCount: Int) -> Int {
            Self.connectionByteCount(maximumByteCount >> halvingCount, connectionCount)
        }

        fileprivate func byteCount(_ halvingCount: Int) -> Double {
            Double(connectionByteCount(halvingCount)) * Double(connectionCount)
        }

        fileprivate func isLeast(_ halvingCount: Int) -> Bool {
            connectionByteCount(halvingCount) == connectionByteCountMin
        }

        /// Sets the share to the given number of halvings.
        ///
        /// - Returns: Whether the share became smaller.
        fileprivate func resize(halvingCount: Int) -> Bool {
            let byteCount = connectionByteCount(halvingCount)
            return current.exchange(byteCount, ordering: .relaxed) > byteCount
        }
    }
}
