extension Store {
    /// A value that is fetched again whenever a commit may have changed it.
    ///
    /// ```swift
    /// for try await count in store.observe({ tx in try tx.count(Note.where(\.pinned == true)) }) {
    ///     badge.show(count)
    /// }
    /// ```
    ///
    /// The first value comes at once. The next one is fetched after a commit to a table that the
    /// last fetch read, through whatever view, query or verb. It is also fetched after a schema
    /// change, and after another process has committed (`Configuration.foreignCommitInterval`).
    /// Commits during a fetch, or while the loop is busy with a value, lead to one more fetch, not
    /// to one each. So a value may be skipped, but the last one always comes, and none is older
    /// than the one before. Changes are tracked by table: the same value may come again.
    ///
    /// Every fetch is a read as `read(_:)` runs it, on a snapshot, never inside a write. Every loop
    /// has its own fetches. A loop keeps the store open, and ends when you leave it or cancel its
    /// task; nothing of the loop remains then.
    ///
    /// The loop throws what `fetch` throws, and then ends; `CancellationError` when its task is
    /// cancelled; `.closed` when the store is closed; `.busy` if no connection became free within
    /// `waitTimeout`.
    ///
    /// - Parameter fetch: Reads the value; runs on one of Coffer's threads.
    /// - Returns: The sequence of values; each loop over it observes separately.
    /// - Complexity: A write pays O(1) for each statement it runs while somebody observes, and
    ///   O(*program*) when a statement is seen for the first time.
    public func observe<T: Sendable>(
        _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) -> ObservedValues<T> {
        ObservedValues(core: core, fetch: fetch)
    }

    /// A value that is fetched again whenever a commit may have changed it, and delivered if it
    /// differs.
    ///
    /// A value that is equal to the last one is not delivered: see `includingDuplicates()` and
    /// `removeDuplicates(by:)`. Otherwise the loop works and throws as that of `observe(_:)` for
    /// any type.
    ///
    /// - Parameter fetch: Reads the value; runs on one of Coffer's threads.
    /// - Returns: The sequence of values; each loop over it observes separately.
    public func observe<T: Sendable & Equatable>(
        _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) -> ObservedValues<T> {
        ObservedValues(core: core, fetch: fetch, isSame: ==)
    }
}

/// The values that an observation delivers, one after the other. See `Store.observe(_:)`.
public struct ObservedValues<Element: Sendable>: AsyncSequence, Sendable {
    let core: StoreCore
    let fetch: @Sendable (inout ReadTransaction) throws -> Element
    /// Whether two values are duplicates; `nil` if each value is delivered.
    var isSame: (@Sendable (Element, Element) -> Bool)?
    var throttle: Throttle?

    /// Begins to observe, and returns the loop: a commit from now on may lead to another value.
    public func makeAsyncIterator() -> Iterator {
        Iterator(loop: Loop(self))
    }

    /// One loop over the values.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: Loop

        /// Waits for the next value, and returns it. Once a call has thrown an error, later calls
        /// return `nil`.
        ///
        /// - Throws: See `Store.observe(_:)`.
        public func next() async throws -> Element? {
            try await loop.next()
        }
    }

    /// Stops observing when the loop releases it.
    fileprivate final class Loop {
        private let values: ObservedValues
        private let observed = ObservedRead()
        private var last: Element?
        /// Ends when the next fetch may begin.
        private var pause: (@Sendable () async -> Void)?
        private var hasFailed = false

        init(_ values: ObservedValues) {
            self.values = values
            values.core.observation.add(observed, values.core)
        }

        deinit {
            values.core.observation.remove(ObjectIdentifier(observed))
        }

        func next() async throws -> Element? {
            guard !hasFailed else { return nil }
            do {
                while true {
                    try await observed.beginFetch(after: pause)
                    values.core.observation.widen(observed)
                    guard let (value, tables) = try await fetched() else { continue }
                    observed.endFetch(tables)
                    pause = values.throttle?.begin()
                    values.core.observation.narrow(observed, to: tables)
                    if let last, let isSame = values.isSame, isSame(last, value) { continue }
                    if values.isSame != nil { last = value }
                    return value
                }
            } catch {
                hasFailed = true
                values.core.observation.remove(ObjectIdentifier(observed))
                throw error.ofTask
            }
        }

        /// Fetches the value once.
        ///
        /// - Returns: The value, and the tables that the fetch read. `nil` if the store is
        ///   suspended: the end of the pause wakes all observers.
        /// - Throws: What `fetch` throws, and the other errors of `StoreCore.read`.
        private func fetched() async throws -> (Element, TableSet)? {
            do {
                return try await values.core.recordedRead(values.fetch)
            } catch let error as StoreError where error.code == .suspended {
                observed.endFetchInVain()
                return nil
            }
        }
    }
}

extension StoreCore {
    /// Runs `fetch` as a read.
    ///
    /// - Returns: What `fetch` returns, and the tables that its statements read.
    /// - Throws: As `read`.
    fileprivate func recordedRead<T: Sendable>(
        _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> (T, TableSet) {
        try await read { tx in
            let handle = try tx.connection().current()
            let recording = ReadRecording()
            handle.touchObserver = recording
            defer { handle.touchObserver = nil }
            return (try fetch(&tx), recording.tables)
        }
    }
}
