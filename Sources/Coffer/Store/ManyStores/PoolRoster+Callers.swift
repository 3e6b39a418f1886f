/// Callers that get a store, or wait for it.
extension PoolRoster {
    /// Gives the caller the store, or lets it wait for it.
    mutating func ask(_ file: File, _ caller: Caller) -> [Step] {
        guard !isClosed else { return [.decide(caller, .failure(StorePool.closed))] }
        guard let id = findCurrent(file) else { return begin(file, caller) }
        guard case .open(let store)? = entries[id]?.phase else {
            wait(caller, on: file, for: id)
            return []
        }
        if store.isClosed {
            // A body has closed it. Other callers that use it get `.closed` from it.
            detach(id)
            let steps = entries[id]?.pinCount == 0 ? release(id) : []
            return steps + begin(file, caller)
        }
        if isSame(file, id, store) { return [pin(id, store, for: caller)] }
        return askForReplaced(id, store, file, caller)
    }

    func find(_ file: File) -> Int? {
        file.identity.flatMap { idByIdentity[$0] } ?? idByPath[file.location.path]
    }

    /// The same, after noting the file that a found store has open by now: `reopen(with:)` and
    /// `resume()` may have taken another one.
    mutating func findCurrent(_ file: File) -> Int? {
        if let id = find(file), case .open(let store)? = entries[id]?.phase {
            setIdentity(of: id, store)
        }
        return find(file)
    }

    mutating func begin(_ file: File, _ caller: Caller) -> [Step] {
        let id = number()
        entries[id] = Entry(file: file, identity: file.identity)
        attach(id, file.location, file.identity)
        wait(caller, on: file, for: id)
        return [.fetchKey(id, path: file.given)]
    }

    /// Lets later callers of this path, and of this file by another name, find the store.
    mutating func attach(
        _ id: Int, _ location: FileLocation, _ identity: FileLocation.Identity?
    ) {
        idByPath[location.path] = id
        if let identity { idByIdentity[identity] = id }
    }

    /// Whether the path leads to the file that the store has open.
    func isSame(_ file: File, _ id: Int, _ store: Store) -> Bool {
        guard let identity = file.identity, let entry = entries[id] else { return false }
        if let claimed = store.claimedFile { return claimed == identity }
        // A suspended store has no file. The number of a file that is gone may be given again.
        return entry.identity == identity && entry.file.location.path == file.location.path
    }

    /// Answers a caller whose path leads to another file than the store found by it has open. An
    /// idle store is closed, and then the caller's file is opened. For a store in use the caller
    /// gets `.alreadyOpen`.
    mutating func askForReplaced(
        _ id: Int, _ store: Store, _ file: File, _ caller: Caller
    ) -> [Step] {
        guard entries[id]?.pinCount == 0 else {
            let error = StoreError(
                .alreadyOpen, "another file took the place of \(store.path), which is in use",
                hint: "Try again when nobody uses the store: its file was moved or removed.")
            return [.decide(caller, .failure(error))]
        }
        wait(caller, on: file, for: id)
        return close(id, store)
    }

    mutating func wait(_ caller: Caller, on file: File, for id: Int) {
        callers[caller.id] = (caller, file, id)
        entries[id]?.callerIDs.append(caller.id)
        deadlines.append((caller.id, caller.beginning + configuration.waitTimeout))
    }

    mutating func pin(_ id: Int, _ store: Store, for caller: Caller) -> Step {
        entries[id]?.pinCount += 1
        if entries[id]?.pinCount == 1 { pinnedStoreCount += 1 }
        counts.admit(since: caller.beginning)
        return .decide(caller, .success(Lease(id: id, store: store)))
    }

    /// Gives a store that is open to all callers that wait for it.
    ///
    /// - Parameter isNew: Whether it has just opened the file that is at its path.
    mutating func pinAll(_ id: Int, _ store: Store, isNew: Bool) -> [Step] {
        let path = isNew ? entries[id]?.file.location.path : nil
        let identity = entries[id]?.identity
        return takeCallers(of: id).map { caller, file in
            // Another name may lead elsewhere by now: nobody gets the store of another file.
            guard file.location.path == path || file.identity == identity else {
                let error = StoreError(
                    .busy, "\(file.location.path) led to another file when it was opened",
                    hint: "Try again: somebody moved the file meanwhile.")
                return .decide(caller, .failure(error))
            }
            return pin(id, store, for: caller)
        }
    }

    /// Removes and returns the callers that wait for a store.
    mutating func takeCallers(of id: Int) -> [(caller: Caller, file: File)] {
        let ids = entries[id]?.callerIDs ?? []
        entries[id]?.callerIDs = []
        return ids.compactMap { callers.removeValue(forKey: $0) }.map { ($0.caller, $0.file) }
    }

    /// Ends the wait of a caller whose task was cancelled. A caller that got its decision before is
    /// not affected.
    mutating func cancel(_ callerID: Int) -> [Step] {
        end(callerID, CancellationError())
    }

    mutating func end(_ callerID: Int, _ error: any Error) -> [Step] {
        guard let (caller, _, id) = callers.removeValue(forKey: callerID) else { return [] }
        entries[id]?.callerIDs.removeAll { $0 == callerID }
        return [.decide(caller, .failure(error))] + abandon(id)
    }

    /// Forgets a store that nobody waits for any more, if it has no place yet.
    mutating func abandon(_ id: Int) -> [Step] {
        guard let entry = entries[id], entry.callerIDs.isEmpty else { return [] }
        switch entry.phase {
        case .fetching(let task):
            return forget(id) + (task.map { [.stopFetching($0)] } ?? [])
        case .queued:
            queue.removeAll { $0 == id }
            return forget(id) + fill()
        case .opening, .open, .closing: return []
        }
    }

    /// Ends the use that a lease was for.
    ///
    /// - Parameter isFailed: Whether the use has shown that the store does not work any more. It is
    ///   then closed with its last use, and the next one opens it with a new key.
    mutating func leave(
        _ lease: Lease, isFailed: Bool, now: ContinuousClock.Instant
    ) -> [Step] {
        if isFailed { entries[lease.id]?.isFailed = true }
        guard let pinCount = entries[lease.id]?.pinCount else { return [] }
        entries[lease.id]?.pinCount = pinCount - 1
        guard pinCount == 1 else { return [] }
        pinnedStoreCount -= 1
        if lease.store.isClosed { return release(lease.id) }
        if isClosed || entries[lease.id]?.isFailed == true || lease.store.isSuspended {
            return close(lease.id, lease.store)
        }
        addIdle(lease.id, now)
        return fill()
    }
}
