import Synchronization

/// Bounds the page caches of all stores of the process together.
///
/// Each store has a share: what its configuration asks for, halved as often as it takes until the
/// shares of all fit into the budget. All are halved equally often, so that no store depends on
/// the order in which they were opened. When a share becomes smaller, connections that are idle
/// give back what is too much at once, and those in use when their transaction ends. When stores
/// close, the others grow again as they are used.
///
/// SQLite's own bound for the process (`sqlite3_soft_heap_limit64`) counts every allocation under
/// one mutex, and Coffer has switched that off.
final class PageCacheBudget: Sendable {
    /// The budget of the process.
    static let shared = PageCacheBudget(byteCountMax: 1 << 30)

    /// Bytes that a connection gets at least, whatever the budget. Beyond as many connections as
    /// have room for that, the budget is exceeded.
    static let connectionByteCountMin = 256 << 10

    private struct State {
        var byteCountMax: Int
        var shares: [ObjectIdentifier: Share] = [:]
    }

    private let state: Mutex<State>

    init(byteCountMax: Int) {
        state = Mutex(State(byteCountMax: byteCountMax))
    }

    var byteCountMax: Int {
        get { state.withLock { $0.byteCountMax } }
        set {
            change { $0.byteCountMax = max(newValue, 0) }
        }
    }

    /// A share of one more store.
    ///
    /// - Parameters:
    ///   - byteCount: What the store would have alone.
    ///   - connectionCount: How many connections it may have at once.
    func join(byteCount: Int, connectionCount: Int) -> Share {
        let share = Share(byteCount: byteCount, connectionCount: connectionCount)
        change { $0.shares[ObjectIdentifier(share)] = share }
        return share
    }

    /// Gives back a share of a store that is closed.
    func leave(_ share: Share) {
        change { $0.shares[ObjectIdentifier(share)] = nil }
    }

    /// - Complexity: O(*stores*).
    private func change(_ body: (inout State) -> Void) {
        let smaller = state.withLock { state in
            body(&state)
            let halvingCount = Self.halvingCount(
                of: state.shares.values, for: state.byteCountMax)
            return state.shares.values.filter { $0.resize(halvingCount: halvingCount) }
        }
        // Outside the mutex: who lets go of pages waits for nobody here.
        for share in smaller { share.runTrim() }
    }

    /// How often all are halved until they fit, or until none can become smaller.
    private static func halvingCount(
        of shares: some Collection<Share>, for byteCountMax: Int
    ) -> Int {
        var halvingCount = 0
        // In floating point, which cannot overflow and is exact enough.
        while shares.reduce(0, { $0 + $1.byteCount(halvingCount) }) > Double(byteCountMax),
            shares.contains(where: { !$0.isLeast(halvingCount) })
        {
            halvingCount += 1
        }
        return halvingCount
    }

    /// What one store may keep of decrypted pages.
    final class Share: Sendable {
        private let byteCountMax: Int
        private let connectionCount: Int
        private let current: Atomic<Int>
        private let trim = Mutex<(@Sendable () -> Void)?>(nil)

        fileprivate init(byteCount: Int, connectionCount: Int) {
            byteCountMax = byteCount
            self.connectionCount = connectionCount
            current = Atomic(Self.connectionByteCount(byteCount, connectionCount))
        }

        /// Bytes for each connection, now.
        var connectionByteCount: Int { current.load(ordering: .relaxed) }

        /// Bytes for all of them.
        var byteCount: Int { connectionByteCount * connectionCount }

        /// - Parameter trim: Lets idle connections take over the share. Waits for no body.
        func onTrim(_ trim: @escaping @Sendable () -> Void) {
            self.trim.withLock { $0 = trim }
        }

        /// For a connection that took over `byteCount` and was idle only after that.
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
            Self.connectionByteCount(byteCountMax >> halvingCount, connectionCount)
        }

        fileprivate func byteCount(_ halvingCount: Int) -> Double {
            Double(connectionByteCount(halvingCount)) * Double(connectionCount)
        }

        fileprivate func isLeast(_ halvingCount: Int) -> Bool {
            connectionByteCount(halvingCount) == connectionByteCountMin
        }

        /// - Returns: Whether it has become smaller.
        fileprivate func resize(halvingCount: Int) -> Bool {
            let byteCount = connectionByteCount(halvingCount)
            return current.exchange(byteCount, ordering: .relaxed) > byteCount
        }
    }
}
