import Synchronization

/// The observers of a store, and the events that a commit sends them.
///
/// A commit becomes an event in three steps, all by the holder of the write gate: `begin` right
/// after BEGIN, `CommitRecording.finish` right before COMMIT, `committed` right after it. So events
/// come in the order of the commits. While nobody observes, the first and the last step only load
/// an atomic.
final class StoreObservation: CommitObserver {
    private struct State {
        var reads = ObserverIndex<ObservedRead>()
        var queues = ObserverIndex<ChangeQueue>()
        /// The number of loops that have begun to observe.
        var generation = 0
        var closed: StoreError?
        /// Checks for commits of other processes, as long as somebody observes.
        var poll: Task<Void, Never>?

        var isObserved: Bool { reads.count + queues.count > 0 }
    }

    private let state = Mutex(State())
    /// Whether somebody observes, or triggers of former observers are still there.
    private let isAwake = Atomic(false)

    // MARK: Observers

    /// How many loops observe the store.
    var observerCount: Int { state.withLock { $0.reads.count + $0.queues.count } }

    /// Whether the store checks for commits of other processes.
    var isPolling: Bool { state.withLock { $0.poll != nil } }

    func add(_ read: ObservedRead, _ core: StoreCore) {
        add(core) {
            $0.reads.add(read, tables: .everything)
        } ifClosed: {
            read.close($0)
        }
    }

    func add(_ queue: ChangeQueue, _ core: StoreCore) {
        add(core) {
            queue.generation = $0.generation
            $0.queues.add(queue, tables: queue.tables)
        } ifClosed: {
            queue.close($0)
        }
    }

    private func add(
        _ core: StoreCore, _ insert: (inout State) -> Void, ifClosed: (StoreError) -> Void
    ) {
        // Only later commits are news to the new loop.
        core.askForForeignCommits()
        let closed = state.withLock { state -> StoreError? in
            if let closed = state.closed { return closed }
            state.generation += 1
            insert(&state)
            if state.poll == nil, let interval = core.configuration.foreignCommitInterval {
                state.poll = Self.poll(core, every: interval)
            }
            return nil
        }
        if let closed { ifClosed(closed) }
        // From here on, every commit sees the new loop.
        isAwake.store(true, ordering: .sequentiallyConsistent)
    }

    func remove(_ id: ObjectIdentifier) {
        let poll = state.withLock { state -> Task<Void, Never>? in
            state.reads.remove(id)
            state.queues.remove(id)
            guard !state.isObserved else { return nil }
            defer { state.poll = nil }
            return state.poll
        }
        poll?.cancel()
    }

    /// Ends all loops with this error, and every loop that begins later.
    func close(_ reason: StoreError) {
        let state = state.withLock { state in
            defer {
                state.reads = ObserverIndex()
                state.queues = ObserverIndex()
                state.poll = nil
                state.closed = reason
            }
            return state
        }
        state.poll?.cancel()
        for read in state.reads.all { read.close(reason) }
        for queue in state.queues.all { queue.close(reason) }
    }

    // MARK: Commits

    /// Begins to record the transaction that was just begun on `connection`, the writer.
    ///
    /// - Returns: `nil` if nobody observes, and no trigger of a former observer is left.
    func begin(_ connection: Connection) -> (any CommitRecorder)? {
        guard isAwake.load(ordering: .sequentiallyConsistent) else { return nil }
        noticeForeignCommits(connection)
        let (wanted, generation) = state.withLock { ($0.queues.tables, $0.generation) }
        return CommitRecording(connection, wanted: wanted, generation: generation)
    }

    /// Notifies all observers of a commit.
    ///
    /// A loop that began after the transaction did gets a rescan (`.begunBefore`) if the
    /// transaction wrote to its tables.
    ///
    /// - Parameters:
    ///   - recorder: What the transaction changed; `nil` if nobody observed when it began, so that
    ///     it may have changed anything.
    ///   - connection: The writer.
    func committed(_ recorder: (any CommitRecorder)?, on connection: Connection) {
        guard isAwake.load(ordering: .sequentiallyConsistent) else { return }
        let recording = recorder as? CommitRecording
        // Loops that began in the meantime learn that anything may have changed, foreign commits
        // included.
        if recording == nil { _ = connection.hasForeignCommit() }
        let writes = recording?.writes ?? .everything
        let (reads, queues) = state.withLock { state in
            // Nobody observes, and this commit made the removal of the last triggers final.
            if !state.isObserved, recording?.hasNoTriggers == true {
                isAwake.store(false, ordering: .sequentiallyConsistent)
            }
            // A result that names no table concerns every loop.
            let isForAll = recording == nil || recording?.result.rescans[nil] != nil
            return (
                state.reads.concerned(by: writes),
                state.queues.concerned(by: isForAll ? .everything : told(recording, writes))
            )
        }
        for read in reads { read.touch(writes) }
        for queue in queues {
            if let recording, queue.generation <= recording.generation {
                queue.put(recording.result)
            } else if queue.tables.intersects(writes) {
                queue.put(.begunBefore)
            }
        }
    }

    /// The tables that a transaction wrote to or has a result for.
    private func told(_ recording: CommitRecording?, _ writes: TableSet) -> TableSet {
        var tables = writes
        for case let table? in (recording?.result.rescans ?? [:]).keys {
            tables.insert(table.text)
        }
        return tables
    }

    /// Says what the last fetch of a loop has read: later commits to other tables do not concern
    /// it.
    func narrow(_ read: ObservedRead, to tables: TableSet) {
        state.withLock { $0.reads.move(read, to: tables) }
    }

    /// Says that a fetch of a loop begins, which may read any table.
    func widen(_ read: ObservedRead) {
        state.withLock { $0.reads.move(read, to: .everything) }
    }

    // MARK: Other processes

    /// Notifies all observers, as `didMissCommits()` does, if another connection has committed
    /// since the last call. Only for the holder of the writer.
    func noticeForeignCommits(_ connection: Connection) {
        if connection.hasForeignCommit() == true { didMissCommits() }
    }

    /// Notifies all observers that anything may have changed: values are fetched again, and loops
    /// over rows get a rescan (`.elsewhere`).
    func didMissCommits() {
        let (reads, queues) = state.withLock { ($0.reads.all, $0.queues.all) }
        for read in reads { read.touch(.everything) }
        for queue in queues { queue.put(.elsewhere) }
    }

    /// Starts a task that checks for commits of other processes at this interval. It sleeps in
    /// between, holds no thread, and ends when it is cancelled or the store is released.
    private static func poll(_ core: StoreCore, every interval: Duration) -> Task<Void, Never> {
        Task.detached { [weak core] in
            while !Task.isCancelled {
                guard (try? await Task.sleep(for: interval)) != nil else { return }
                guard let core else { return }
                await Store.offPool { core.askForForeignCommits() }
            }
        }
    }
}

extension StoreCore {
    /// Those who observe the store.
    var observation: StoreObservation { commitObservers.observer { StoreObservation() } }
}
