import Synchronization

/// Many stores of one process, such as one for each user: opened when they are used, and parked
/// when they are idle.
///
/// ```swift
/// let pool = try StorePool { path in try await kms.key(for: path) }
/// let count = try await pool.withStore(at: "users/anna.db") { store in
///     try await store.read { tx in try tx.count(Note.all) }
/// }
/// ```
///
/// A store is *pinned* while a body uses it: the pool never closes it then. All callers of one file
/// share one `Store`, which is opened once, with one key, whatever names lead to the file. Without
/// a use the store stays open, until ``Configuration/idleDuration`` is over or another store needs
/// its place; then the least recently used one is *parked*, which means closed. A parked store
/// costs nothing, so only the number of open stores matters.
///
/// All stores share the memory for pages (``Store/maximumProcessCacheByteCount``), the descriptors
/// and the threads. No store and no pool has a thread of its own.
///
/// - Important: Nothing of the store may outlive the body: no snapshot, no observation, not the
///   store itself, which throws `.closed` once it is parked.
///
/// A body may use a second store. If that one needs a place, the caller holds one while it waits
/// for another. If all places are held so, nobody can proceed, and the waits end with `.busy` after
/// ``Configuration/waitTimeout``. So use stores one after the other, or have more places than
/// nested uses.
public final class StorePool: Sendable {
    /// Where keys come from.
    private enum Source: Sendable {
        case blocking(@Sendable (String) throws -> StoreKey)
        case asynchronous(@Sendable (String) async throws -> StoreKey)
    }

    private struct State {
        var roster: PoolRoster
        /// Rings when the roster has something to do. It ends with the pool.
        var alarm = Alarm()
    }

    private let configuration: Configuration
    private let source: Source
    private let metrics = StorePoolMetrics()
    private let state: Mutex<State>
    private let callerCount = Atomic(0)

    private init(_ configuration: Configuration, _ source: Source) throws(StoreError) {
        try configuration.check()
        self.configuration = configuration
        self.source = source
        state = Mutex(State(roster: PoolRoster(configuration)))
    }

    /// Makes a pool, which opens nothing yet.
    ///
    /// - Parameters:
    ///   - configuration: How many stores are open at once, and how they are opened.
    ///   - key: Gives the key of the store at a path, which is as the first caller gave it. It is
    ///     called for each opening, once for all callers, without a place in the pool, and at any
    ///     time for several stores. Its task is cancelled when nobody waits for the key any more;
    ///     the callers do not wait for it then.
    /// - Throws: `StoreError` `.misuse` if a bound admits no store, or a duration is negative.
    public convenience init(
        configuration: Configuration = .init(),
        key: @escaping @Sendable (_ path: String) async throws -> StoreKey
    ) throws {
        try self.init(configuration, .asynchronous(key))
    }

    /// Makes a pool with a key provider that does not wait for tasks. Such a pool also serves
    /// threads without tasks.
    ///
    /// - Parameters:
    ///   - configuration: How many stores are open at once, and how they are opened.
    ///   - key: Gives the key of the store at a path, which is as the first caller gave it. It may
    ///     block; the process asks for 64 keys at a time. A call that never returns takes one of
    ///     these for good.
    /// - Throws: As the initialiser with an asynchronous source.
    public convenience init(
        configuration: Configuration = .init(),
        key: @escaping @Sendable (_ path: String) throws -> StoreKey
    ) throws {
        try self.init(configuration, .blocking(key))
    }

    // MARK: Use

    /// Runs `body` with the store at the path, which stays open until `body` ends.
    ///
    /// ```swift
    /// try await pool.withStore(at: path) { store in
    ///     try await store.write { tx in try tx.insert(note) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - path: The file, by any of its names.
    ///   - isolation: The actor of the caller, on which `body` runs.
    ///   - body: The use. Nothing of the store may outlive it.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; what the key provider throws; the errors of opening, see
    ///   `Store.init(path:key:mode:configuration:)`, which concern this store only, and the next
    ///   call tries again; `StoreError` `.busy` if the key, a place or the opening did not come
    ///   within `waitTimeout`; `.tooManyFiles` if the process may open no more files, and no store
    ///   of the pool could be parked instead; `.alreadyOpen` if another file has taken the place of
    ///   a store that is in use; `.closed` after `close()`; `CancellationError` if the task was
    ///   cancelled while it waited, which leaves other callers alone.
    /// - Complexity: O(1) for a store that is open, besides asking the system for the file.
    ///   Opening is O(*open stores*), because the engine walks a list of its files and the page
    ///   caches are shared again; it does not depend on how many stores there are.
    public func withStore<R>(
        at path: String, isolation: isolated (any Actor)? = #isolation,
        _ body: (Store) async throws -> R
    ) async throws -> R {
        let lease = try await lease(path)
        do {
            let result = try await body(lease.store)
            leave(lease)
            return result
        } catch {
            leave(lease, after: error)
            throw error
        }
    }

    /// Runs `body`, which does not wait for tasks, with the store at the path.
    ///
    /// It does what the form with an asynchronous body does. Without it, Swift would choose the
    /// synchronous form for such a body in a task, and block the task's thread.
    ///
    /// - Parameters:
    ///   - path: The file, by any of its names.
    ///   - isolation: The actor of the caller, on which `body` runs.
    ///   - body: The use. Nothing of the store may outlive it.
    /// - Returns: What `body` returns.
    /// - Throws: As the form with an asynchronous body.
    public func withStore<R>(
        at path: String, isolation: isolated (any Actor)? = #isolation,
        _ body: (Store) throws -> R
    ) async throws -> R {
        try use(try await lease(path), body)
    }

    /// Runs `body` with the store at the path, on this thread. The store stays open until `body`
    /// ends.
    ///
    /// - Parameters:
    ///   - path: The file, by any of its names.
    ///   - body: The use. Nothing of the store may outlive it.
    /// - Returns: What `body` returns.
    /// - Throws: As the asynchronous form, without `CancellationError`; `StoreError` `.misuse` for
    ///   a pool whose key provider is asynchronous, because this thread may be one that the
    ///   source needs.
    public func withStore<R>(at path: String, _ body: (Store) throws -> R) throws -> R {
        guard case .blocking = source else {
            throw StoreError(
                .misuse, "a thread cannot wait for an asynchronous key provider",
                hint: "Call withStore with await, or give the pool a key provider without async.")
        }
        let file = try Self.file(path)
        let delivery = Delivery<Result<PoolRoster.Lease, any Error>>()
        ask(file, as: callerID()) { delivery.come($0) }
        return try use(try delivery.wait().get(), body)
    }

    private func use<R>(_ lease: PoolRoster.Lease, _ body: (Store) throws -> R) throws -> R {
        do {
            let result = try body(lease.store)
            leave(lease)
            return result
        } catch {
            leave(lease, after: error)
            throw error
        }
    }

    private func callerID() -> Int { callerCount.add(1, ordering: .relaxed).newValue }

    /// The file that the path leads to now, through links.
    ///
    /// It is looked up for each use: a link may lead elsewhere by now.
    private static func file(_ path: String) throws(StoreError) -> PoolRoster.File {
        let location = try FileLocation(path)
        guard case .file(_, let identity) = try location.status() else {
            return PoolRoster.File(given: path, location: location, identity: nil)
        }
        return PoolRoster.File(given: path, location: location, identity: identity)
    }

    /// Waits for the store and pins it. The caller must leave the lease.
    private func lease(_ path: String) async throws -> PoolRoster.Lease {
        let file = try Self.file(path)
        let id = callerID()
        let order = ResumptionOrder()
        defer { order.mark() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                ask(file, as: id) { result in
                    order.mark()
                    continuation.resume(with: result)
                }
                // The handler may have run before there was a caller to cancel.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func ask(
        _ file: PoolRoster.File, as id: Int,
        _ decide: @escaping @Sendable (Result<PoolRoster.Lease, any Error>) -> Void
    ) {
        let caller = PoolRoster.Caller(id: id, beginning: .now, decide: decide)
        change { $0.ask(file, caller) }
    }

    private func cancel(_ id: Int) {
        change { $0.cancel(id) }
    }

    /// - Parameter error: What the use has thrown. After `.wrongKey` somebody else has changed the
    ///   key, and the store must open again with a new one.
    private func leave(_ lease: PoolRoster.Lease, after error: (any Error)? = nil) {
        let isFailed = (error as? StoreError)?.code == .wrongKey
        change { $0.leave(lease, isFailed: isFailed, now: .now) }
    }

    /// The stores that are open at this moment, the uses that wait, and the totals since the pool
    /// was made.
    public var statistics: StorePoolStatistics {
        let facts = state.withLock { $0.roster.facts }
        return StorePoolStatistics(
            openStoreCount: facts.openStoreCount, pinnedStoreCount: facts.pinnedStoreCount,
            maximumOpenStoreCount: configuration.capacity,
            waitingUseCount: facts.waitingUseCount, counts: facts.counts)
    }

    // MARK: Parking

    /// Closes the store at the path if nobody uses it, for example before its file is moved or
    /// removed. The next use opens it again.
    ///
    /// - Throws: `StoreError` `.busy` if the store is in use or is being opened, or if it does not
    ///   close within `waitTimeout`, because something of it outlived its use.
    public func park(at path: String) async throws {
        let file = try Self.file(path)
        try await finish { roster throws(StoreError) in try roster.park(file) }
    }

    /// Closes all stores that nobody uses, and gives their memory back to the system.
    ///
    /// - Throws: `StoreError` `.busy` as ``park(at:)``.
    public func parkIdleStores() async throws {
        try await finish { roster throws(StoreError) in roster.parkIdle() }
        await Store.offPool { FreeMemory.release() }
    }

    /// Refuses waiting and later uses, lets running ones end, and closes all stores. A second call
    /// waits again.
    ///
    /// - Throws: `StoreError` `.busy` if a use does not end within `waitTimeout`. The pool stays
    ///   closed, and each store is closed when its last use ends.
    public func close() async throws {
        try await finish { roster throws(StoreError) in roster.end() }
    }

    /// Refuses waiting and later uses, and blocks until all stores are closed.
    ///
    /// - Throws: As the asynchronous form.
    public func close() throws {
        let delivery = Delivery<StoreError?>()
        let end: Parking = { roster throws(StoreError) in roster.end() }
        try watch(end) { delivery.come($0) }
        if let failure = delivery.wait() { throw failure }
    }

    private typealias Parking =
        (inout PoolRoster) throws(StoreError) -> (steps: [PoolRoster.Step], ids: Set<Int>)

    private func finish(_ work: Parking) async throws {
        let order = ResumptionOrder()
        defer { order.mark() }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, _>) in
            let finish: @Sendable (StoreError?) -> Void = { failure in
                order.mark()
                if let failure {
                    continuation.resume(throwing: failure as any Error)
                } else {
                    continuation.resume()
                }
            }
            do throws(StoreError) {
                try watch(work, finish)
            } catch {
                finish(error)
            }
        }
    }

    /// Begins to close stores, and calls `finish` when they are closed.
    private func watch(
        _ work: Parking, _ finish: @escaping @Sendable (StoreError?) -> Void
    ) throws(StoreError) {
        let deadline = ContinuousClock.now + configuration.waitTimeout
        var failure: StoreError?
        change { roster in
            do throws(StoreError) {
                let (steps, ids) = try work(&roster)
                let watch = PoolRoster.Watch(ids: ids, deadline: deadline, finish: finish)
                return steps + roster.add(watch)
            } catch {
                failure = error
                return []
            }
        }
        if let failure { throw failure }
    }

    static var closed: StoreError {
        StoreError(
            .closed, "the pool of stores was closed",
            hint: "Use no store after close(), or make another pool.")
    }

    static var inUse: StoreError {
        StoreError(
            .busy, "a store of the pool is in use, or has not closed yet",
            hint: "Try again when its uses have ended.")
    }

    // MARK: Steps

    /// Changes the roster, and then takes the steps that it decided.
    private func change(_ body: (inout PoolRoster) -> [PoolRoster.Step]) {
        let (steps, old, new) = state.withLock { state in
            let old = state.roster.facts
            let steps = body(&state.roster)
            if let instant = state.roster.nextInstant {
                state.alarm.set(instant) { [weak self] in self?.ring() }
            }
            return (steps, old, state.roster.facts)
        }
        metrics.record(old, new)
        for step in steps { take(step) }
    }

    private func ring() {
        state.withLock { $0.alarm.didRing() }
        change { $0.ring(now: .now) }
    }

    private func take(_ step: PoolRoster.Step) {
        switch step {
        case .fetchKey(let id, let path): fetchKey(id, path)
        case .stopFetching(let task): task.cancel()
        case .open(let id, let location, let key):
            Store.inBackground { [self] in
                let result = Result { try open(location, key) }
                change { $0.didOpen(id, result, now: .now) }
            }
        case .close(let id, let store):
            Store.inBackground { [self] in
                let failure = Self.failure(of: store)
                change { $0.didClose(id, failure, now: .now) }
            }
        case .decide(let caller, let result):
            metrics.didWait(caller.beginning.duration(to: .now))
            caller.decide(result)
        case .finish(let watch, let failure): watch.finish(failure)
        case .releaseMemory: FreeMemory.release()
        }
    }

    /// Key providers that block. One that never returns keeps none of the threads that open and
    /// close stores.
    private static let keys = Gate(permitCount: 64)

    private func fetchKey(_ id: Int, _ path: String) {
        switch source {
        case .blocking(let key):
            Self.keys.run { [weak self] in
                let result = Result { KeyBox(try key(path)) }
                self?.change { $0.didFetch(id, result) }
            }
        case .asynchronous(let key):
            let task = Task { [weak self] in
                let result: Result<KeyBox<StoreKey>, any Error>
                do {
                    result = .success(KeyBox(try await key(path)))
                } catch {
                    result = .failure(error)
                }
                self?.change { $0.didFetch(id, result) }
            }
            let isWanted = state.withLock { $0.roster.hold(task, for: id) }
            if !isWanted { task.cancel() }
        }
    }

    private func open(_ location: FileLocation, _ key: KeyBox<StoreKey>) throws -> Store {
        let store = try Store(
            path: location.path, key: key.key, mode: configuration.mode,
            configuration: configuration.configuration(of: location.path))
        do {
            try configuration.setUp?(store)
        } catch {
            // The error of the set-up tells more than one of closing.
            try? store.close()
            throw error
        }
        return store
    }

    private static func failure(of store: Store) -> StoreError? {
        do throws(StoreError) {
            try store.core.close()
            return nil
        } catch {
            return error
        }
    }
}

extension Store {
    /// Whether the store was closed for good.
    var isClosed: Bool { core.life.withLock { $0 } == .closed }

    var isSuspended: Bool { core.life.withLock { $0 } == .suspended }

    /// The file that the store has claimed; `nil` while it is paused or closed.
    var claimedFile: FileLocation.Identity? { core.pool.file?.claimedFile }
}
