import DequeModule

/// Stores that get a place, and that are parked.
extension PoolRoster {
    // MARK: Keys and places

    /// Keeps the task that fetches a key, so that it is cancelled with its last caller.
    ///
    /// - Returns: `false` if nobody waits for the key any more.
    mutating func hold(_ task: Task<Void, Never>, for id: Int) -> Bool {
        guard let entry = entries[id] else { return false }
        if case .fetching = entry.phase { entries[id]?.phase = .fetching(task) }
        return true
    }

    mutating func didFetch(_ id: Int, _ result: Result<KeyBox<StoreKey>, any Error>) -> [Step] {
        guard case .fetching? = entries[id]?.phase else { return [] }
        switch result {
        case .success(let key):
            entries[id]?.phase = .queued(key)
            queue.append(id)
            return fill()
        case .failure(let error):
            return fail(id, error)
        }
    }

    mutating func fail(_ id: Int, _ error: any Error) -> [Step] {
        counts.failedCount += 1
        return takeCallers(of: id).map { .decide($0.caller, .failure(error)) } + forget(id)
    }

    /// Opens queued stores where there is a place, and parks idle ones for the others.
    ///
    /// Stores that the limit on open files has refused let the others pass.
    mutating func fill() -> [Step] {
        var steps: [Step] = []
        let capacity = configuration.capacity
        while placeCount < capacity,
            let index = queue.firstIndex(where: { entries[$0]?.needsRoom != true })
        {
            let id = queue.remove(at: index)
            guard let entry = entries[id], case .queued(let key) = entry.phase else { continue }
            placeCount += 1
            entries[id]?.phase = .opening(key)
            steps.append(.open(id, entry.file.location, key))
        }
        if placeCount == 0 {
            // There is nothing to park, and so no room to come.
            for id in queue { if let refusal = entries[id]?.refusal { steps += fail(id, refusal) } }
            queue = []
        }
        var missingCount = queue.count + max(0, placeCount - capacity) - closingCount
        while missingCount > 0, let (id, store) = takeIdle() {
            steps += close(id, store)
            missingCount -= 1
        }
        return steps
    }

    /// Takes over a store that was opened, or the reason why it was not.
    mutating func didOpen(
        _ id: Int, _ result: Result<Store, any Error>, now: ContinuousClock.Instant
    ) -> [Step] {
        guard case .opening(let key)? = entries[id]?.phase else { return [] }
        switch result {
        case .success(let store):
            counts.openedCount += 1
            entries[id]?.phase = .open(store)
            entries[id]?.refusal = nil
            setIdentity(of: id, store)
            let steps = pinAll(id, store, isNew: true)
            guard entries[id]?.pinCount == 0 else { return steps }
            if isClosed { return steps + close(id, store) }
            addIdle(id, now)
            return steps + fill()
        case .failure(let failure):
            placeCount -= 1
            if let error = failure as? StoreError, let entry = entries[id],
                Self.isRefusal(error, isFirst: entry.refusal == nil), !entry.callerIDs.isEmpty
            {
                counts.tooManyFilesCount += 1
                entries[id]?.phase = .queued(key)
                entries[id]?.refusal = error
                entries[id]?.needsRoom = true
                queue.prepend(id)
                return fill()
            }
            roomCame()
            return fail(id, failure) + fill()
        }
    }

    /// Whether the error comes from the limit on open files, so that another try makes sense.
    ///
    /// SQLite tries to read a journal that it could not make, and then tells of a missing file
    /// instead of the limit. The code alone does not tell, so such a store is tried again once.
    private static func isRefusal(_ error: StoreError, isFirst: Bool) -> Bool {
        let isUnclear = error.code == .io && error.isCannotOpen
        return error.code == .tooManyFiles || (isFirst && isUnclear)
    }

    /// Notes the file that the store has open, which may be another one than when it was asked for.
    mutating func setIdentity(of id: Int, _ store: Store) {
        guard let identity = store.claimedFile else { return }
        if let old = entries[id]?.identity, old != identity, idByIdentity[old] == id {
            idByIdentity[old] = nil
        }
        entries[id]?.identity = identity
        idByIdentity[identity] = id
    }

    // MARK: Parking

    mutating func addIdle(_ id: Int, _ now: ContinuousClock.Instant) {
        let stamp = number()
        entries[id]?.idleStamp = stamp
        if idle.count > 64, idle.count > 2 * placeCount {
            idle = Deque(idle.filter(isCurrent))
        }
        idle.append(Idle(id: id, stamp: stamp, since: now))
    }

    func isCurrent(_ idle: Idle) -> Bool {
        guard let entry = entries[idle.id], case .open = entry.phase else { return false }
        return entry.pinCount == 0 && entry.idleStamp == idle.stamp
    }

    /// The least recently used idle store.
    var firstIdle: Idle? {
        mutating get {
            while let first = idle.first, !isCurrent(first) { idle.removeFirst() }
            return idle.first
        }
    }

    mutating func takeIdle() -> (Int, Store)? {
        guard let first = firstIdle, case .open(let store)? = entries[first.id]?.phase else {
            return nil
        }
        idle.removeFirst()
        return (first.id, store)
    }

    mutating func close(_ id: Int, _ store: Store) -> [Step] {
        entries[id]?.phase = .closing(store)
        closingCount += 1
        return [.close(id, store)]
    }

    /// Takes over that a store was closed, or why it was not: its work did not end.
    mutating func didClose(
        _ id: Int, _ failure: StoreError?, now: ContinuousClock.Instant
    ) -> [Step] {
        guard case .closing(let store)? = entries[id]?.phase else { return [] }
        closingCount -= 1
        guard let failure else {
            counts.parkedCount += 1
            // Memory of a store that was parked for another one is used again at once.
            if queue.isEmpty { closedSinceRelease += 1 }
            return release(id) + releaseMemory()
        }
        entries[id]?.phase = .open(store)
        retryInstant = now + Self.retryDuration
        let steps = pinAll(id, store, isNew: false)
        if entries[id]?.pinCount == 0 { addIdle(id, now) }
        return steps + settle(id, failure)
    }

    /// Gives the place of a store free, and lets it begin again if somebody waits for it.
    mutating func release(_ id: Int) -> [Step] {
        placeCount -= 1
        roomCame()
        guard let entry = entries[id], let last = entry.callerIDs.last,
            let file = callers[last]?.file
        else { return forget(id) + fill() }
        detach(id)
        attach(id, entry.file.location, file.identity)
        entries[id]?.identity = file.identity
        entries[id]?.phase = .fetching(nil)
        return settle(id, nil) + [.fetchKey(id, path: entry.file.given)] + fill()
    }

    /// Lets one store try again that the limit on open files has refused.
    private mutating func roomCame() {
        guard let id = queue.first(where: { entries[$0]?.needsRoom == true }) else { return }
        entries[id]?.needsRoom = false
    }

    mutating func releaseMemory() -> [Step] {
        guard closingCount == 0, queue.isEmpty, closedSinceRelease >= Self.releasedStoreCount
        else { return [] }
        closedSinceRelease = 0
        return [.releaseMemory]
    }

    /// Lets later callers open the file again, although an entry for it is still there.
    mutating func detach(_ id: Int) {
        guard let entry = entries[id] else { return }
        let path = entry.file.location.path
        if idByPath[path] == id { idByPath[path] = nil }
        for identity in [entry.identity, entry.file.identity].compactMap({ $0 })
        where idByIdentity[identity] == id {
            idByIdentity[identity] = nil
        }
    }

    @discardableResult
    mutating func forget(_ id: Int) -> [Step] {
        detach(id)
        entries[id] = nil
        return settle(id, nil)
    }

    // MARK: Closing on request

    /// Closes the store if it is idle.
    ///
    /// - Returns: The steps, and its id if it is not closed yet.
    /// - Throws: `.busy` while somebody uses the store or waits for it.
    mutating func park(_ file: File) throws(StoreError) -> (steps: [Step], ids: Set<Int>) {
        guard let id = findCurrent(file), let entry = entries[id] else { return ([], []) }
        switch entry.phase {
        case .closing: return ([], [id])
        case .open(let store) where entry.pinCount == 0: return (close(id, store), [id])
        default: throw StorePool.inUse
        }
    }

    mutating func parkIdle() -> (steps: [Step], ids: Set<Int>) {
        var steps: [Step] = []
        while let (id, store) = takeIdle() { steps += close(id, store) }
        let closing = entries.filter { if case .closing = $0.value.phase { true } else { false } }
        return (steps, Set(closing.keys))
    }

    /// Refuses waiting and later callers, and closes each store when its uses have ended.
    mutating func end() -> (steps: [Step], ids: Set<Int>) {
        isClosed = true
        var steps: [Step] = []
        for id in callers.keys { steps += end(id, StorePool.closed) }
        steps += parkIdle().steps
        return (steps, Set(entries.keys))
    }

    /// Tells the watch when all its stores are closed.
    mutating func add(_ watch: Watch) -> [Step] {
        let ids = watch.ids.filter { entries[$0] != nil }
        guard !ids.isEmpty else { return [.finish(watch, nil)] }
        watches.append(Watch(ids: ids, deadline: watch.deadline, finish: watch.finish))
        return []
    }

    /// Tells the watches that a store is closed, or why it is not.
    mutating func settle(_ id: Int, _ failure: StoreError?) -> [Step] {
        var steps: [Step] = []
        for index in watches.indices.reversed() where watches[index].ids.remove(id) != nil {
            guard failure != nil || watches[index].ids.isEmpty else { continue }
            steps.append(.finish(watches.remove(at: index), failure))
        }
        return steps
    }
}
