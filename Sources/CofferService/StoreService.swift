#if Service
import Coffer
import ServiceLifecycle
import Synchronization

/// A store as a service of swift-service-lifecycle: it opens, serves, and closes in order.
///
/// ```swift
/// let notes = StoreService {
///     let store = try await Store(path: "notes.db", key: try secretKey())
///     try await store.migrate(migrations)
///     return store
/// }
/// let group = ServiceGroup(
///     services: [notes, server], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// A group shuts its services down from the last to the first. So name the store before those who
/// use it. On a graceful shutdown and on cancellation, ``Coffer/Store/shutDown()`` closes it:
/// running reads and writes end, waiting and later ones throw `.closed`.
public final class StoreService: Service {
    private enum State {
        /// The store is not open yet; these callers wait for it.
        case waiting([UInt64: CheckedContinuation<Store, any Error>])
        case open(Store)
        case ended(any Error)
    }

    private let open: @Sendable () async throws -> Store
    private let state = Mutex(State.waiting([:]))
    private let isStarted = Mutex(false)
    private let nextID = Atomic<UInt64>(0)

    /// Makes a service that opens its store when it runs.
    ///
    /// - Parameter open: Opens the store and prepares it, for example by its migrations. Called
    ///   once. Its error ends the service, and reaches everyone who waits for the store.
    public init(opening open: @escaping @Sendable () async throws -> Store) {
        self.open = open
    }

    /// Makes a service of a store that is open, so that a wrong key ends the program before it
    /// serves anybody.
    ///
    /// - Parameter store: The store, which the service closes in the end.
    public convenience init(_ store: Store) {
        self.init(opening: { store })
        state.withLock { $0 = .open(store) }
    }

    /// The store, for a handler that answers at once.
    ///
    /// - Throws: `StoreError` `.closed` before the store is open and after the shutdown began; the
    ///   error of opening, if that failed.
    /// - Complexity: O(1).
    public var store: Store {
        get throws {
            try state.withLock { state in
                switch state {
                case .waiting:
                    throw StoreError(
                        .closed, "the store is not open yet",
                        hint: "Run the service in a ServiceGroup, or wait with opened().")
                case .open(let store): return store
                case .ended(let error): throw error
                }
            }
        }
    }

    /// Whether the store is open: the answer to a health check.
    public var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// Waits until the store is open. For services that start beside this one.
    ///
    /// - Returns: The store.
    /// - Throws: The error of opening; `StoreError` `.closed` after the shutdown began;
    ///   `CancellationError` if the task is cancelled meanwhile.
    public func opened() async throws -> Store {
        let id = nextID.add(1, ordering: .relaxed).newValue
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Store, any Error>? = state.withLock { state in
                    switch state {
                    case .open(let store): return .success(store)
                    case .ended(let error): return .failure(error)
                    case .waiting(var callers):
                        // Checked in the lock, so that a cancellation comes before or after.
                        if Task.isCancelled { return .failure(CancellationError()) }
                        callers[id] = continuation
                        state = .waiting(callers)
                        return nil
                    }
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let caller = state.withLock { state in
                guard case .waiting(var callers) = state else {
                    return CheckedContinuation<Store, any Error>?.none
                }
                defer { state = .waiting(callers) }
                return callers.removeValue(forKey: id)
            }
            caller?.resume(throwing: CancellationError())
        }
    }

    /// Opens the store, waits for the graceful shutdown and closes the store. A group calls it.
    ///
    /// - Throws: The error of opening; `StoreError` `.busy` if a body did not end although it was
    ///   stopped; `.misuse` if the service has run before; `CancellationError` if the task was
    ///   cancelled, after the store is closed.
    public func run() async throws {
        let isFirst = isStarted.withLock { isStarted in
            defer { isStarted = true }
            return !isStarted
        }
        guard isFirst else {
            throw StoreError(
                .misuse, "the service has run before",
                hint: "Make a new StoreService to open the store again.")
        }
        let store: Store
        do {
            store = try await open()
        } catch {
            finish(.ended(error))
            throw error
        }
        finish(.open(store))
        let reason = await Result { () async throws in try await gracefulShutdown() }
        // Refused from now on, even if a body keeps the file open.
        finish(.ended(StoreError(.closed, "the store was closed because its service ends")))
        try await store.shutDown()
        try reason.get()
    }

    private func finish(_ new: State) {
        let callers = state.withLock { state in
            defer { state = new }
            if case .waiting(let callers) = state { return Array(callers.values) }
            return []
        }
        for caller in callers {
            switch new {
            case .open(let store): caller.resume(returning: store)
            case .ended(let error): caller.resume(throwing: error)
            case .waiting: break
            }
        }
    }
}

/// A pool of stores as a service of swift-service-lifecycle, which closes the pool in the end.
///
/// ```swift
/// let users = StorePoolService(pool)
/// let group = ServiceGroup(
///     services: [users, server], gracefulShutdownSignals: [.sigterm], logger: logger)
/// ```
///
/// On a graceful shutdown and on cancellation, ``Coffer/StorePool/close()`` closes all stores:
/// running uses end, waiting and later ones throw `.closed`.
public struct StorePoolService: Service {
    /// The pool, whose uses throw `.closed` after the shutdown.
    public let pool: StorePool

    /// Makes a service of a pool.
    ///
    /// - Parameter pool: The pool, which the service closes in the end.
    public init(_ pool: StorePool) {
        self.pool = pool
    }

    /// Waits for the graceful shutdown and closes the pool. A group calls it.
    ///
    /// - Throws: `StoreError` `.busy` if a use does not end within `waitTimeout`;
    ///   `CancellationError` if the task was cancelled, after the pool is closed.
    public func run() async throws {
        let reason = await Result { () async throws in try await gracefulShutdown() }
        try await pool.close()
        try reason.get()
    }
}

extension Result where Failure == any Error {
    fileprivate init(catching body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
#else
/// A store as a service of swift-service-lifecycle.
@available(
    *, unavailable,
    message: "name the trait Service of the package: .package(…, traits: [.defaults, \"Service\"])"
)
public enum StoreService {}

/// A pool of stores as a service of swift-service-lifecycle.
@available(
    *, unavailable,
    message: "name the trait Service of the package: .package(…, traits: [.defaults, \"Service\"])"
)
public enum StorePoolService {}
#endif
