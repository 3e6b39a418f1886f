import Synchronization

/// What happens while nothing else uses the store.
extension StoreCore {
    /// Runs `work` while nothing else uses the store.
    ///
    /// - Throws: `.busy` if running work does not end within `waitTimeout`; `.misuse` in a body.
    func alone(_ work: () throws(StoreError) -> Void) throws(StoreError) {
        try requireOutside()
        let deadline = ContinuousClock.now + configuration.waitTimeout
        try queue.gate.wait(timeout: configuration.waitTimeout, for: "running writes to end")
        defer { queue.gate.leave() }
        var readerCount = 0
        defer { for _ in 0..<readerCount { readGate.leave() } }
        while readerCount < configuration.readerCountMax {
            let timeLeft = deadline - ContinuousClock.now
            try readGate.wait(timeout: timeLeft, for: "running reads to end")
            readerCount += 1
        }
        try checkpointer.pausing(work)
    }

    /// - Throws: `.misuse` inside a body of this store on this thread.
    func requireOutside() throws(StoreError) {
        guard HeldStore.current(of: id) == nil else {
            throw StoreError(
                .misuse, "this would wait for the transaction it is called from",
                hint: "Call it outside of read and write.")
        }
    }

    // MARK: Key

    func rekey(to key: borrowing StoreKey) throws(StoreError) {
        try alone { () throws(StoreError) in
            guard pool.mode != .readOnly else {
                throw StoreError(.readOnly, "the store was opened for reading only")
            }
            try pool.rekey(to: key)
        }
    }

    /// Opens every connection anew, with another key.
    func reopen(with key: borrowing StoreKey) throws(StoreError) {
        if isSuspended.load(ordering: .sequentiallyConsistent) {
            try requireOutside()
            try exchangeConnections(key)
            admit()
        } else {
            try alone { () throws(StoreError) in try exchangeConnections(key) }
            observation.didMissCommits()
        }
    }

    private func exchangeConnections(_ key: borrowing StoreKey) throws(StoreError) {
        let opening = try Opening(
            path: pool.file.path, mode: pool.mode == .readOnly ? .readOnly : .mustExist,
            configuration: configuration,
            cacheByteCount: ConnectionPool.cacheByteCount(configuration))
        // Before anything is closed: with a wrong key the store stays as it is.
        try pool.exchange(for: opening.open(key: key))
    }

    // MARK: Pause

    /// Ends what runs, or undoes it after `waitTimeout`, closes all connections and lets nothing
    /// in.
    func suspend() throws(StoreError) {
        try requireOutside()
        let reason = StoreError(
            .suspended, "the store is suspended", hint: "Call resume(), then run it again.")
        guard queue.gate.close(reason), readGate.close(reason) else { return }
        do throws(StoreError) {
            try drain(reason)
            try checkpointer.pausing { () throws(StoreError) in pool.closeConnections() }
            isSuspended.store(true, ordering: .sequentiallyConsistent)
        } catch {
            admit()
            throw error
        }
    }

    private func drain(_ reason: StoreError) throws(StoreError) {
        let timeout = configuration.waitTimeout
        if isEmpty(within: timeout) { return }
        pool.writerStop.stop(reason)
        pool.stopReaders(reason)
        guard isEmpty(within: timeout) else {
            throw StoreError(
                .busy, "a body did not end although it was told to",
                hint: "A body must not wait for anything but the store.")
        }
    }

    private func isEmpty(within timeout: Duration) -> Bool {
        let deadline = ContinuousClock.now + timeout
        return queue.gate.waitUntilEmpty(timeout: timeout)
            && readGate.waitUntilEmpty(timeout: deadline - .now)
    }

    /// Opens the connections again and lets work in.
    func resume() throws(StoreError) {
        guard isSuspended.load(ordering: .sequentiallyConsistent) else { return }
        try pool.reopenWriter()
        admit()
    }

    private func admit() {
        isSuspended.store(false, ordering: .sequentiallyConsistent)
        queue.gate.open()
        readGate.open()
        // Nobody has asked meanwhile.
        observation.didMissCommits()
    }

    // MARK: End

    func close() throws(StoreError) {
        if isSuspended.load(ordering: .sequentiallyConsistent) { return shut() }
        do throws(StoreError) {
            try alone { () throws(StoreError) in shut() }
        } catch  where error.code == .closed {
            // Closed before.
        }
    }

    private func shut() {
        let reason = StoreError(.closed, "the store was closed")
        observation.close(reason)
        queue.gate.close(reason)
        readGate.close(reason)
        isSuspended.store(false, ordering: .sequentiallyConsistent)
        pool.closeConnections()
        claim.release()
    }
}
