import Dispatch

/// One run of `rotate`.
///
/// 1. *Before.* Nothing is locked. A checkpoint moves the WAL, every page is authenticated, and the
///    time of that is the base of the estimated pause.
/// 2. *Alone.* The run takes the lock of rotations in the keyring's file, and the new epoch: the
///    hours since 2020, or one more than the highest epoch ever.
/// 3. *The pause.* With the turn of a write, and no checkpoint running, `Rekey` writes every page
///    and proves the result. Readers of this store go on: each connection closes when its read
///    ends. While writers of other processes hold the file, the turn is given back between two
///    tries.
/// 4. *After.* Checkpoints that wait for nobody move the WAL, and the keyring records the epoch. If
///    either fails the rotation still holds: the WAL is moved later, and an opening finds the epoch
///    by trial.
/// 5. *Again.* Every page is authenticated under the new key.
///
/// The new key is durable before the keyring names it, so a crash at any moment leaves a file that
/// the keyring opens.
struct KeyRotation {
    let core: StoreCore
    /// The longest pause of writes that the estimate may have.
    let maximumPause: Duration
    let progress: (@Sendable (RotationProgress) -> Void)?
    /// Of the caller's task; `nil` if nobody can cancel the run.
    var cancellation: Cancellation?

    /// The shortest time that either engine took to write one gigabyte.
    private static let pausePerGigabyte = Duration.seconds(25)

    /// The pause of writes took this, and how far the change came.
    private struct Change {
        let report: RekeyReport
        let pause: Duration
        let oldEpoch: UInt32
        let epoch: UInt32
        let root: KeyBox<RootKey>
        let keyring: OpenKeyring
    }

    func run() throws -> RotationReport {
        let beginning = ContinuousClock.now
        try core.requireOutside()
        _ = try StoreKeys(core).changeable().root()
        try moveWAL()
        let estimate = try estimatedPause()
        guard estimate <= maximumPause else {
            throw StoreError(
                .tooBig,
                "writes would wait for about \(estimate), and the limit is \(maximumPause)",
                hint: "Allow a longer pause, at a time when few programs write. Nothing was "
                    + "changed.")
        }
        if let reason = cancellation?.reason { throw reason }
        core.pool.events.rotationWillPause(estimate)
        tell(.rotating, 0, of: 0, estimate)
        let (change, moved, recordFailure) = try core.changeLife { _ throws(StoreError) in
            try core.pool.rotations.duringOwn { () throws(StoreError) in
                try rotate(estimate)
            }
        }
        try verify(.verifyingAgain, estimate)
        let duration = beginning.duration(to: .now)
        core.pool.metrics.rotation.recordNanoseconds(duration.nanoseconds)
        func id(_ epoch: UInt32) -> KeyID {
            change.root.key.dataKey(epoch: epoch, id: keyringID).id()
        }
        return RotationReport(
            oldEpoch: Int(change.oldEpoch), epoch: Int(change.epoch), oldKeyID: id(change.oldEpoch),
            keyID: id(change.epoch), rootID: change.root.key.id(for: keyringID).hexDigits,
            pageCount: change.report.pageCount, pause: change.pause, duration: duration,
            oldPageCount: moved.oldPageCount, checkpointFailure: moved.checkpointFailure,
            recordFailure: recordFailure)
    }

    /// The salt of the file, which never changes.
    private var keyringID: [UInt8] { core.pool.file?.cipher.key.salt ?? [] }

    // MARK: Before

    /// Moves the WAL into the main file as far as nobody reads it.
    ///
    /// - Throws: `.busy` if more than a tenth of the store stays in the WAL: the new pages would
    ///   follow it, and the WAL would grow with each rotation.
    private func moveWAL() throws(StoreError) {
        guard core.pool.journalMode == .wal else { return }
        let reader = try core.pool.openReader(isCounted: false)
        defer { reader.connection.close() }
        guard let result = try reader.connection.moveWAL() else { return }
        let left = result.walFrameCount - result.checkpointedFrameCount
        let pageCount = reader.connection.handle?.databasePageCount ?? 0
        guard left <= max(pageCount / 10, core.configuration.checkpointPageCount) else {
            throw StoreError(
                .busy, "a read keeps \(left) pages in the write-ahead log",
                hint: "Rotate the key when that read has ended. Nothing was changed.")
        }
    }

    /// Authenticates every page, and estimates from the time of that how long writes will wait.
    private func estimatedPause() throws -> Duration {
        let beginning = ContinuousClock.now
        let pageCount = try verify(.verifying, nil)
        let byteCount = pageCount * core.pool.profile.pageByteCount
        let measured = beginning.duration(to: .now) * 3
        return max(Self.pausePerGigabyte * (Double(byteCount) / Double(1 << 30)), measured)
    }

    // MARK: Alone

    private func rotate(
        _ estimate: Duration
    ) throws(StoreError) -> (Change, RekeyReport, recordFailure: StoreError?) {
        let open = try StoreKeys(core).changeable()
        let lock = try KeyringByteLock(
            open.file, .rotates, timeout: core.configuration.busyTimeout)
        let root = try open.root()
        let oldEpoch = try fileEpoch(open)
        let epoch = try nextEpoch(after: try open.current().content, oldEpoch)
        let change = try pause(estimate, from: oldEpoch, to: epoch, open, root)
        core.pool.events.rotated(
            from: change.oldEpoch, to: change.epoch, pause: change.pause)
        core.pool.metrics.rotationPause.recordNanoseconds(change.pause.nanoseconds)
        tell(.movingWAL, 0, of: 0, estimate)
        let moved = finishWAL(change.report)
        let recordFailure = record(change)
        lock.release()
        return (change, moved, recordFailure)
    }

    /// The epoch that the file has. An earlier rotation may have ended before it was recorded.
    private func fileEpoch(_ open: OpenKeyring) throws(StoreError) -> UInt32 {
        // Follows a rotation that this store does not know of.
        try core.pool.openReader(isCounted: false).connection.close()
        return core.pool.file?.keyring?.epoch ?? open.epoch
    }

    /// The hours since 2020, so that a restored copy does not come back to a key that its lineage
    /// has thrown away; more than the highest epoch ever.
    private func nextEpoch(
        after content: KeyringContent, _ fileEpoch: UInt32
    ) throws(StoreError) -> UInt32 {
        let highest = max(content.highestEpoch, content.epoch, fileEpoch)
        guard highest < KeyringContent.maximumEpoch else {
            throw StoreError(
                .tooBig, "the keyring has no epoch left",
                hint: "Make a copy with a new keyring: backup(to:key:).")
        }
        let hour = EpochCandidates.hour(of: core.configuration.secondsSince1970)
        return max(highest + 1, hour)
    }

    /// Writes every page while no other write runs.
    private func pause(
        _ estimate: Duration, from oldEpoch: UInt32, to epoch: UInt32, _ open: OpenKeyring,
        _ root: KeyBox<RootKey>
    ) throws(StoreError) -> Change {
        let deadline = ContinuousClock.now + core.configuration.rotationTimeout
        while true {
            if let reason = cancellation?.reason { throw reason }
            let timeout = max(deadline - .now, .zero)
            try core.queue.gate.waitUnlessDeadlocked(
                timeout: timeout, for: "running writes to end", holding: [core.lifeGate])
            let beginning = ContinuousClock.now
            let result = watching(estimate) { writePages(epoch, open, root.key) }
            core.queue.gate.leave()
            switch result {
            case .success(let report):
                return Change(
                    report: report, pause: beginning.duration(to: .now), oldEpoch: oldEpoch,
                    epoch: epoch, root: root, keyring: open)
            case .failure(let failure):
                let isForeignWriter = failure.error.code == .busy && failure.key == .old
                guard isForeignWriter, ContinuousClock.now < deadline else {
                    core.pool.events.rekeyFailed(failure)
                    throw failure.error
                }
                sleepBriefly()
            }
        }
    }

    private func writePages(
        _ epoch: UInt32, _ open: OpenKeyring, _ root: borrowing RootKey
    ) -> Result<RekeyReport, RekeyFailure> {
        do throws(RekeyFailure) {
            return .success(
                try core.checkpointer.pausing { () throws(RekeyFailure) in
                    try core.pool.rotate(to: epoch, of: open, under: root)
                })
        } catch {
            return .failure(error)
        }
    }

    /// Reports how the journal or the WAL grows to the size of the file while `work` runs, because
    /// the engine does not report its progress.
    private func watching<T>(_ estimate: Duration, _ work: () -> T) -> T {
        guard progress != nil, let file = core.pool.file?.location else { return work() }
        let (main, rotation) = (file.companionByteCount(""), self)
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + 0.2, repeating: 0.2)
        timer.setEventHandler {
            let count = max(
                file.companionByteCount("-wal"), file.companionByteCount("-journal"))
            rotation.tell(.rotating, min(count, main), of: main, estimate)
        }
        timer.activate()
        defer { timer.cancel() }
        return work()
    }

    // MARK: After

    /// Moves the new pages from the WAL into the main file.
    private func finishWAL(_ report: RekeyReport) -> RekeyReport {
        guard !report.isWholeFile else { return report }
        do throws(StoreError) {
            let reader = try core.pool.openReader(isCounted: false)
            defer { reader.connection.close() }
            let moved = RekeyedWAL(open: try reader.connection.fileState()).report(since: .now)
            if !moved.isWholeFile {
                core.checkpointer.owe()
                core.pool.events.rekeyIsUnfinished(moved)
            }
            return moved
        } catch {
            core.checkpointer.owe()
            core.pool.events.checkpointFailed(error)
            return report
        }
    }

    /// Records the epoch in the keyring.
    ///
    /// - Returns: Why it could not; `nil` if it did.
    private func record(_ change: Change) -> StoreError? {
        let (epoch, now) = (change.epoch, core.configuration.secondsSince1970)
        do throws(StoreError) {
            try change.keyring.change { (content, root) throws(StoreError) in
                content.epoch = epoch
                content.highestEpoch = max(content.highestEpoch, epoch)
                content.epochMade = now
                content.keyID = root.dataKey(epoch: epoch, id: content.id).id().bytes
            }
            return nil
        } catch {
            core.pool.events.rotationIsUnrecorded(error)
            return error
        }
    }

    // MARK: Checks

    /// Authenticates every page.
    ///
    /// - Returns: The number of pages.
    /// - Throws: `.damaged` for pages that fail; otherwise as `Store.verify`.
    @discardableResult
    private func verify(_ phase: RotationProgress.Phase, _ estimate: Duration?) throws -> Int {
        let pageByteCount = core.pool.profile.pageByteCount
        let report = try Verification(
            core: core, scope: .part(1, of: 1),
            progress: progress.map { _ in
                {
                    tell(
                        phase, $0.pageCount * pageByteCount, of: $0.pageCountTotal * pageByteCount,
                        estimate)
                }
            }, cancellation: phase == .verifying ? cancellation : nil
        ).run()
        guard report.isGood else {
            let pages = report.damagedPages + report.damagedFramePages
            throw StoreError(
                .damaged,
                phase == .verifying
                    ? "pages fail authentication, so the key was not changed"
                    : "the key was rotated, and pages fail authentication under the new one",
                hint: "verify says what they hold. Restore the store from a backup, or salvage it.",
                pages: pages.map(\.number))
        }
        return report.pageCount
    }

    private func tell(
        _ phase: RotationProgress.Phase, _ count: Int, of total: Int, _ estimate: Duration?
    ) {
        progress?(
            RotationProgress(
                phase: phase, byteCount: count, byteCountTotal: total, estimatedPause: estimate))
    }
}
