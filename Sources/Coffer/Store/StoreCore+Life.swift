/// Changes of the store's life, which run while nothing else uses the store.
extension StoreCore {
    /// Waits until running reads and writes have ended, then runs `work` while nothing else uses
    /// the store. Only for the holder of the life gate.
    ///
    /// - Parameter isLast: Whether no checkpoint may run after `work`.
    /// - Returns: What `work` returns.
    /// - Throws: What `work` throws; `.busy` if running reads and writes do not end within
    ///   `waitTimeout`; `.wouldDeadlock` if the wait would close a cycle of waits; `.suspended` or
    ///   `.closed` if the store admits nothing.
    private func withExclusiveAccess<T>(
        isLast: Bool = false, _ work: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let deadline = ContinuousClock.now + configuration.waitTimeout
        try queue.gate.waitUnlessDeadlocked(
            timeout: configuration.waitTimeout, for: "running writes to end", holding: [lifeGate])
        defer { queue.gate.leave() }
        var readerCount = 0
        defer { for _ in 0..<readerCount { readGate.leave() } }
        while readerCount < configuration.maximumReaderCount {
            let held = Array(repeating: readGate, count: readerCount)
            try readGate.waitUnlessDeadlocked(
                timeout: deadline - .now, for: "running reads to end",
                holding: [lifeGate, queue.gate] + held)
            readerCount += 1
        }
        return try checkpointer.pausing(isLast: isLast, work)
    }

    /// Does nothing unless this thread is inside a body of this store.
    ///
    /// - Throws: `.misuse` inside such a body.
    func requireOutside() throws(StoreError) {
        guard HeldStore.current(of: id) == nil else {
            throw StoreError(
                .misuse, "this call would wait for the transaction that it is made from",
                hint: "Call it outside of read and write.")
        }
    }

    /// Runs `work`, one change of the store's life at a time, and keeps the life that it sets.
    ///
    /// - Returns: What `work` returns.
    /// - Throws: What `work` throws; `.misuse` inside a body of this store; `.busy` if another
    ///   change does not end within `waitTimeout`; `.wouldDeadlock` if the wait for that change
    ///   would close a cycle of waits.
    func changeLife<T>(
        _ work: (inout Life) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        try requireOutside()
        try lifeGate.waitUnlessDeadlocked(
            timeout: configuration.waitTimeout, for: "a pause, rekey or close to end")
        defer { lifeGate.leave() }
        var life = self.life.withLock { $0 }
        defer { self.life.withLock { $0 = life } }
        return try work(&life)
    }

    /// Whether the store accepts work.
    enum Life { case open, suspended, closed }

    // MARK: Key

    func rekey(
        to key: borrowing StoreKey, _ keyring: Rekey.KeyringPolicy
    ) throws(RekeyFailure) -> RekeyReport {
        try RekeyFailure.wrapping { () throws(StoreError) in
            try changeLife { _ throws(StoreError) in
                guard pool.mode != .readOnly else {
                    throw StoreError(.readOnly, "the store was opened for reading only")
                }
                return changeKey(to: key, keyring)
            }
        }.get()
    }

    /// Changes the key while nothing else uses the store, and logs the outcome. Only for the holder
    /// of the life gate.
    ///
    /// - Returns: The report; otherwise the error, and which key is valid.
    private func changeKey(
        to key: borrowing StoreKey, _ keyring: Rekey.KeyringPolicy
    ) -> Result<RekeyReport, RekeyFailure> {
        pool.events.rekeyBegins()
        let beginning = ContinuousClock.now
        let result = Result { () throws(RekeyFailure) in
            try RekeyFailure.wrapping { () throws(StoreError) in
                try withExclusiveAccess { () throws(StoreError) in
                    pool.rekey(to: key, keyring)
                }
            }.get()
        }
        switch result {
        case .success(let report):
            pool.events.rekeyed(since: beginning)
            pool.metrics.rekey.recordNanoseconds(beginning.duration(to: .now).nanoseconds)
            // The main file has the old key until a checkpoint has moved the WAL.
            if keyring != .keep, !report.isWholeFile {
                checkpointer.owe()
                pool.events.rekeyIsUnfinished(report)
            }
        case .failure(let failure):
            pool.events.rekeyFailed(failure)
        }
        return result
    }

    /// Moves the pages that a key change left in the WAL, and counts the pages that still have
    /// another key. Nothing else uses the store meanwhile.
    ///
    /// - Throws: As `ConnectionPool.finishRekey()`; `.misuse`, `.busy` and `.wouldDeadlock` as
    ///   `rekey(to:)`; `.suspended`, `.closed`.
    func finishRekey(abandonsKeyring: Bool = false) throws(StoreError) -> RekeyReport {
        try changeLife { _ throws(StoreError) in
            var report = try withExclusiveAccess { () throws(StoreError) in
                try pool.finishRekey()
            }
            if abandonsKeyring, let file = pool.file {
                report.abandon(KeyringFile(of: file.location))
            }
            return report
        }
    }

    /// Reopens every connection with another key. A suspended store is open again afterwards.
    /// Observers learn that anything may have changed.
    ///
    /// - Throws: As `Store.reopen(with:)`; the store is then as it was.
    func reopen(with key: borrowing StoreKey) throws(StoreError) {
        try changeLife { life throws(StoreError) in
            if life == .suspended {
                try pool.reopen(with: key)
                life = .open
                admit()
            } else {
                try withExclusiveAccess { () throws(StoreError) in try pool.reopen(with: key) }
                commitObservers.didMissCommits()
            }
            pool.events.reopened()
        }
    }

    // MARK: Pause

    /// Lets running work end, and undoes what has not ended after `waitTimeout`. Then closes all
    /// connections and admits nothing. Does nothing if the store is suspended.
    ///
    /// - Throws: As `Store.suspend()`; the store then goes on.
    func suspend() throws(StoreError) {
        try changeLife { life throws(StoreError) in
            switch life {
            case .suspended: return
            case .closed: throw Self.closed
            case .open: _ = try pool.requireFile("a pause would lose what is in it")
            }
            try DeadlockWatch.wait(
                forAllOf: [queue.gate, readGate], holding: [lifeGate]
            ) { () throws(StoreError) in try drain(Self.suspended) }
            checkpointer.stop()
            pool.closeConnections()
            pool.rotations.allowWaiting()
            life = .suspended
            pool.events.suspended()
        }
    }

    /// Refuses waiting and later work with this reason, and waits until running work has ended or
    /// was stopped.
    ///
    /// - Throws: `.busy` if a body does not end; the store then admits work again.
    private func drain(_ reason: StoreError) throws(StoreError) {
        queue.gate.close(reason)
        readGate.close(reason)
        do throws(StoreError) {
            try waitUntilEmpty(reason)
        } catch {
            admit()
            throw error
        }
    }

    private func waitUntilEmpty(_ reason: StoreError) throws(StoreError) {
        let timeout = configuration.waitTimeout
        if isEmpty(within: timeout) { return }
        let deadline = ContinuousClock.now + timeout
        repeat {
            // Repeatedly, because an admitted body may not have begun at the previous call.
            pool.writerStop.stop(reason)
            pool.stopReaders(reason)
            pool.rotations.stopWaiting(reason)
            if isEmpty(within: min(.milliseconds(50), timeout)) { return }
        } while ContinuousClock.now < deadline
        throw StoreError(
            .busy, "a body did not end when it was asked to",
            hint: "A body must wait for nothing but the store.")
    }

    private func isEmpty(within timeout: Duration) -> Bool {
        let deadline = ContinuousClock.now + timeout
        return queue.gate.waitUntilEmpty(timeout: timeout)
            && readGate.waitUntilEmpty(timeout: deadline - .now)
    }

    /// Opens the writer again and admits work. Does nothing if the store is not suspended.
    ///
    /// - Throws: As `Store.resume()`; the store is then still suspended.
    func resume() throws(StoreError) {
        try changeLife { life throws(StoreError) in
            guard life == .suspended else { return }
            try pool.reopenWriter()
            life = .open
            admit()
            pool.events.resumed()
        }
    }

    private func admit() {
        checkpointer.allow()
        pool.rotations.allowWaiting()
        queue.gate.open()
        readGate.open()
        // Nobody checked for foreign commits in the meantime.
        commitObservers.didMissCommits()
    }

    // MARK: End

    func close() throws(StoreError) {
        try changeLife { life throws(StoreError) in
            switch life {
            case .closed: return
            case .suspended: shut()
            case .open: try withExclusiveAccess(isLast: true) { () throws(StoreError) in shut() }
            }
            life = .closed
            pool.events.closed()
        }
    }

    /// Refuses waiting and later work, lets running work end, and undoes what has not ended after
    /// `waitTimeout`. Then closes all connections.
    ///
    /// - Throws: As `Store.shutDown()`; the store then goes on.
    func shutDown() throws(StoreError) {
        try changeLife { life throws(StoreError) in
            switch life {
            case .closed: return
            case .suspended: shut()
            case .open:
                try DeadlockWatch.wait(
                    forAllOf: [queue.gate, readGate], holding: [lifeGate]
                ) { () throws(StoreError) in try drain(Self.closed) }
                // The closed gates admit nobody, as if this thread held them.
                checkpointer.pausing(isLast: true) { shut() }
                pool.rotations.allowWaiting()
            }
            life = .closed
            pool.events.closed()
        }
    }

    static var closed: StoreError { StoreError(.closed, "the store was closed") }

    static var suspended: StoreError {
        StoreError(.suspended, "the store is suspended", hint: "Call resume(), then run it again.")
    }

    private func shut() {
        commitObservers.close(Self.closed)
        queue.gate.close(Self.closed)
        readGate.close(Self.closed)
        pool.closeConnections()
        pool.file?.leaveCacheBudget()
    }
}
