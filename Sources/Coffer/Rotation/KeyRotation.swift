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
///
/// A replacement of the root is the same, except that the keyring gets the new root and the former
/// one before the pause, and loses the former one afterwards. In between both open the file.
struct KeyRotation {
    let core: StoreCore
    /// The longest pause of writes that the estimate may have.
    let maximumPause: Duration
    /// The slots that a new root is wrapped for; `nil` to keep the root.
    var plan: RootKeyPlan?
    let progress: (@Sendable (RotationProgress) -> Void)?
    /// Of the caller's task; `nil` if nobody can cancel the run.
    var cancellation: Cancellation?
    /// Throws if the store, as its authenticated keyring describes it, needs no rotation. Asked at
    /// the beginning, and again with the lock of rotations.
    var condition: @Sendable (Keyring) throws(StoreError) -> Void = { _ in }

    /// - Parameter maximumPause: `nil` for that of the store's configuration.
    init(
        _ core: StoreCore, maximumPause: Duration?,
        progress: (@Sendable (RotationProgress) -> Void)?, cancellation: Cancellation? = nil
    ) {
        self.core = core
        self.maximumPause = maximumPause ?? core.configuration.maximumRotationPause
        self.progress = progress
        self.cancellation = cancellation
    }

    /// The shortest time that either engine took to write one gigabyte.
    private static let pausePerGigabyte = Duration.seconds(25)

    /// The pause of writes took this, and how far the change came.
    private struct Change {
        let report: RekeyReport
        let pause: Duration
        let old: FileKey
        let epoch: UInt32
        let root: KeyBox<RootKey>
    }

    /// The key that the file has before the rotation.
    private struct FileKey {
        let epoch: UInt32
        let id: KeyID
        let rootID: [UInt8]
    }

    func run() throws -> RotationReport {
        let beginning = ContinuousClock.now
        try core.requireOutside()
        try follow()
        try requireNeeded(StoreKeys(core).changeable())
        try requireRoot()
        try moveWAL()
        let estimate = try estimatedPause()
        guard estimate <= maximumPause else {
            throw StoreError(
                .tooBig,
                "writes would wait for about \(Self.text(estimate)), and the limit is "
                    + Self.text(maximumPause),
                hint: "Allow a longer pause, at a time when few programs write. Nothing was "
                    + "changed.")
        }
        if let reason = cancellation?.reason { throw reason }
        core.pool.events.rotationWillPause(estimate)
        tell(.rotating, 0, of: 0, estimate)
        let (change, moved, recordFailure) = try core.changeLife { life throws(StoreError) in
            switch life {
            case .open: break
            case .suspended: throw StoreCore.suspended
            case .closed: throw StoreCore.closed
            }
            return try rotate(estimate)
        }
        let verificationFailure = try verifyAgain(estimate, isWholeFile: moved.isWholeFile)
        let duration = beginning.duration(to: .now)
        core.pool.metrics.rotation.recordNanoseconds(duration.nanoseconds)
        return RotationReport(
            oldEpoch: Int(change.old.epoch), epoch: Int(change.epoch), oldKeyID: change.old.id,
            keyID: change.root.key.dataKey(epoch: change.epoch, id: keyringID).id(),
            oldRootID: change.old.rootID.hexDigits,
            rootID: change.root.key.id(for: keyringID).hexDigits,
            pageCount: change.report.pageCount, pause: change.pause, duration: duration,
            oldPageCount: moved.oldPageCount, checkpointFailure: moved.checkpointFailure,
            recordFailure: recordFailure, verificationFailure: verificationFailure)
    }

    /// Goes on under the key and the root that another process has given the store.
    func follow() throws(StoreError) {
        _ = try StoreKeys(core).changeable()
        try admitted { () throws(StoreError) in try withReader { _ in } }
    }

    /// Runs `work`, which opens a connection, while the store is neither suspended nor closed.
    private func admitted(_ work: () throws(StoreError) -> Void) throws(StoreError) {
        try core.readGate.waitUnlessDeadlocked(
            timeout: core.configuration.waitTimeout, for: "a free connection",
            cancellation: cancellation)
        defer { core.readGate.leave() }
        try work()
    }

    /// Runs `work` with a connection under the key that the file has now, and closes it.
    private func withReader<T>(
        _ work: (Connection) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let connection = try core.pool.openReader(isCounted: false).connection
        defer { connection.close() }
        return try work(connection)
    }

    /// Checks that the store needs a rotation. One whose root is being replaced always does.
    ///
    /// - Parameter fileEpoch: The epoch of the file, if known. An earlier rotation may have ended
    ///   before the keyring recorded it: the key then counts as made now.
    func requireNeeded(_ open: OpenKeyring, _ fileEpoch: UInt32 = 0) throws(StoreError) {
        let (area, isWhole) = try open.read()
        var content = area.content
        guard !content.hasFormerRoot else { return }
        if fileEpoch > content.epoch {
            content.name(
                fileEpoch, under: try open.root().key, now: core.configuration.secondsSince1970)
        }
        try condition(Keyring(content, isWhole: isWhole))
    }

    /// Checks what needs no time: the root, and a secret for each slot that stays.
    private func requireRoot() throws(StoreError) {
        let open = try StoreKeys(core).changeable()
        var content = try open.current().content
        _ = try open.root()
        try plan?.wrap(.random(), in: &content)
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
        try admitted { () throws(StoreError) in try withReader(moveWAL) }
    }

    private func moveWAL(_ connection: Connection) throws(StoreError) {
        guard let result = try connection.moveWAL() else { return }
        let left = result.walFrameCount - result.checkpointedFrameCount
        let pageCount = connection.handle?.databasePageCount ?? 0
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
        return max(Self.expectedPause(byteCount: byteCount), measured)
    }

    /// The pause of writes on a fast machine.
    static func expectedPause(byteCount: Int) -> Duration {
        pausePerGigabyte * (Double(byteCount) / Double(1 << 30))
    }

    /// The duration in seconds, rounded up to tenths.
    private static func text(_ duration: Duration) -> String {
        "\((duration / .milliseconds(100)).rounded(.up) / 10) s"
    }

    // MARK: Alone

    private func rotate(
        _ estimate: Duration
    ) throws(StoreError) -> (Change, RekeyReport, recordFailure: StoreError?) {
        let open = try StoreKeys(core).changeable()
        let lock = try KeyringByteLock(
            open.file, .rotates, timeout: core.configuration.busyTimeout)
        let result = try core.pool.rotations.duringOwn { () throws(StoreError) in
            try rotate(estimate, open)
        }
        lock.release()
        return result
    }

    /// Changes the key, moves the WAL and records the epoch. Only for the holder of the lock of
    /// rotations.
    private func rotate(
        _ estimate: Duration, _ open: OpenKeyring
    ) throws(StoreError) -> (Change, RekeyReport, recordFailure: StoreError?) {
        let old = try fileKey()
        try requireNeeded(open, old.epoch)
        try requirePossible()
        let change: Change
        do throws(StoreError) {
            let (root, epoch) = try newKey(old, try open.current().content, of: open)
            change = try pause(estimate, from: old, to: epoch, open, root)
        } catch {
            guard let content = try? open.current().content, content.rootID != old.rootID else {
                throw error
            }
            throw error.adding(
                "the keyring has the new root and the former one, and opens the store"
            ).with(hint: "Every slot that stays opens the store: rotate finishes the replacement.")
        }
        core.pool.events.rotated(from: old.epoch, to: change.epoch, pause: change.pause)
        core.pool.metrics.rotationPause.recordNanoseconds(change.pause.nanoseconds)
        tell(.movingWAL, 0, of: 0, estimate)
        let moved = finishWAL(change.report)
        let recordFailure = record(change, in: open, isWholeFile: moved.isWholeFile)
        return (change, moved, recordFailure)
    }

    /// Refuses what cannot succeed, before the keyring gets a new root.
    private func requirePossible() throws(StoreError) {
        try withReader { (connection) throws(StoreError) in
            let state = try connection.fileState()
            try Rekey(
                file: state.file, profile: state.profile, configuration: core.configuration,
                cacheByteCount: 1 << 20, keyring: .keep
            ).requirePossible(state)
        }
    }

    /// The key that the file has. An earlier rotation may have ended before it was recorded.
    private func fileKey() throws(StoreError) -> FileKey {
        // Follows a rotation that this store does not know of.
        try withReader { _ in }
        guard let (cipher, keyring) = core.pool.file?.keyOfKeyring, let keyring else {
            throw StoreKeys.noKeyring
        }
        return FileKey(epoch: keyring.epoch, id: cipher.key.id(), rootID: keyring.rootID)
    }

    /// The root and the epoch of the key that the file gets.
    ///
    /// Gives the keyring the new root, if there is a plan. A file under the former root gets the
    /// key that the keyring names already: an earlier replacement is finished.
    private func newKey(
        _ old: FileKey, _ content: KeyringContent, of open: OpenKeyring
    ) throws(StoreError) -> (KeyBox<RootKey>, UInt32) {
        guard old.rootID == content.rootID else {
            return (try finished(content, from: old, of: open), content.epoch)
        }
        let epoch = try nextEpoch(after: content, old.epoch)
        guard let plan else { return (try open.root(), epoch) }
        let new = KeyBox(RootKey.random())
        let now = core.configuration.secondsSince1970
        try open.replaceRoot(by: new.key) { (content, former) throws(StoreError) in
            try plan.wrap(new.key, in: &content)
            try content.keep(former: former, epoch: old.epoch, under: new.key)
            content.rootMade = now
            content.rootID = new.key.id(for: content.id)
            (content.rootBackupCount, content.lastRootBackup) = (0, 0)
            content.name(epoch, under: new.key, now: now)
        }
        return (new, epoch)
    }

    /// The root of an earlier replacement, which is to be finished.
    ///
    /// - Throws: `.keyringMismatch` if the keyring does not have the root of the file as its former
    ///   one; `.busy` if the caller has a plan for another root.
    private func finished(
        _ content: KeyringContent, from old: FileKey, of open: OpenKeyring
    ) throws(StoreError) -> KeyBox<RootKey> {
        let root = try open.root()
        guard let former = try content.formerRoot(under: root.key),
            former.id(for: content.id) == old.rootID
        else { throw StoreError.otherRoot(open.file) }
        guard plan == nil else {
            throw StoreError(
                .busy, "another replacement of the root key has begun and not ended",
                hint: "Call replaceRootKey again: it finishes that one first.")
        }
        // Writes both areas: the new root may be in the memory of the system alone.
        try open.change { (_, _) throws(StoreError) in }
        return root
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
        _ estimate: Duration, from old: FileKey, to epoch: UInt32, _ open: OpenKeyring,
        _ root: KeyBox<RootKey>
    ) throws(StoreError) -> Change {
        let deadline = ContinuousClock.now + core.configuration.rotationTimeout
        var pause = Duration.zero
        // A replacement of the root has begun: the keyring is changed.
        let isCancellable = plan == nil
        while true {
            if isCancellable, let reason = cancellation?.reason { throw reason }
            let timeout = max(deadline - .now, .zero)
            try core.queue.gate.waitUnlessDeadlocked(
                timeout: timeout, for: "running writes to end", holding: [core.lifeGate],
                cancellation: isCancellable ? cancellation : nil)
            let beginning = ContinuousClock.now
            let result = watching(estimate) { writePages(epoch, open, root.key) }
            core.queue.gate.leave()
            pause += beginning.duration(to: .now)
            switch result {
            case .success(let report):
                return Change(
                    report: report, pause: pause, old: old, epoch: epoch, root: root)
            case .failure(let failure):
                if failure.key != .old, let report = changed(to: epoch, root, since: beginning) {
                    core.pool.events.rekeyFailed(failure)
                    return Change(
                        report: report, pause: pause, old: old, epoch: epoch, root: root)
                }
                let isForeignWriter = failure.error.code == .busy && failure.key == .old
                // Each try has kept others from the file as well.
                guard isForeignWriter, ContinuousClock.now < deadline, pause < maximumPause else {
                    core.pool.events.rekeyFailed(failure)
                    guard failure.key != .old else { throw failure.error }
                    throw failure.error.with(
                        hint: "Every slot opens the store, whichever key it has: call rotate "
                            + "again.")
                }
                // As long as the try took, so that others have their turns in between.
                let tryDuration = beginning.duration(to: .now)
                sleepBriefly(min(max(tryDuration, .milliseconds(10)), .seconds(1)))
            }
        }
    }

    /// The report of a change that is committed, and whose proof did not come to its end: the file
    /// opens with the new key.
    ///
    /// - Returns: `nil` if it does not.
    private func changed(
        to epoch: UInt32, _ root: KeyBox<RootKey>, since beginning: ContinuousClock.Instant
    ) -> RekeyReport? {
        guard let key = try? fileKey(), key.epoch == epoch,
            key.rootID == root.key.id(for: keyringID),
            let reader = try? core.pool.openReader(isCounted: false)
        else { return nil }
        defer { reader.connection.close() }
        guard let open = try? reader.connection.fileState() else { return nil }
        return RekeyedWAL(open: open).unmovedReport(since: beginning)
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
        let queue = DispatchQueue(label: "coffer.rotation")
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + 0.2, repeating: 0.2)
        timer.setEventHandler {
            let count = max(
                file.companionByteCount("-wal"), file.companionByteCount("-journal"))
            rotation.tell(.rotating, min(count, main), of: main, estimate)
        }
        timer.activate()
        defer {
            timer.cancel()
            // A report that has begun ends before that of the next step.
            queue.sync {}
        }
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
            return report.failed(error)
        }
    }

    /// Records the epoch in the keyring. Ends a replacement of the root, unless pages of the main
    /// file are still under the former one.
    ///
    /// - Returns: Why it could not; `nil` if it did.
    private func record(
        _ change: Change, in open: OpenKeyring, isWholeFile: Bool
    ) -> StoreError? {
        let (epoch, now) = (change.epoch, core.configuration.secondsSince1970)
        do throws(StoreError) {
            try open.change { (content, root) throws(StoreError) in
                guard content.rootID == change.root.key.id(for: content.id) else {
                    throw StoreError.otherRoot(open.file)
                }
                content.name(epoch, under: root, now: now)
                if isWholeFile { content.forgetFormerRoot() }
            }
            return nil
        } catch {
            core.pool.events.rotationIsUnrecorded(error)
            return error
        }
    }

    // MARK: Checks

    /// Authenticates every page under the new key. While a read keeps the new pages in the WAL,
    /// works without the write lock: the whole file would be checked under it.
    ///
    /// - Returns: Why it could not; `nil` if it did.
    /// - Throws: `.damaged` for pages that fail.
    private func verifyAgain(_ estimate: Duration, isWholeFile: Bool) throws -> StoreError? {
        do {
            try verify(.verifyingAgain, estimate, locksWriters: isWholeFile)
            return nil
        } catch let error as StoreError where error.code != .damaged {
            return error
        }
    }

    /// Authenticates every page.
    ///
    /// - Returns: The number of pages.
    /// - Throws: `.damaged` for pages that fail; otherwise as `Store.verify`.
    @discardableResult
    private func verify(
        _ phase: RotationProgress.Phase, _ estimate: Duration?, locksWriters: Bool = true
    ) throws -> Int {
        let pageByteCount = core.pool.profile.pageByteCount
        var verification = Verification(
            core: core, scope: .part(1, of: 1),
            progress: progress.map { _ in
                {
                    tell(
                        phase, $0.pageCount * pageByteCount, of: $0.pageCountTotal * pageByteCount,
                        estimate)
                }
            }, cancellation: phase == .verifying ? cancellation : nil)
        verification.locksWriters = locksWriters
        // Reads and writes of the store go on meanwhile, and need the other cores.
        verification.threadCountMax = 1
        let report = try verification.run()
        guard report.isGood else {
            let pages = report.damagedPages + report.damagedFramePages
            throw StoreError(
                .damaged,
                phase == .verifying
                    ? "pages fail authentication, so the key was not changed"
                    : "the key was rotated, and pages fail authentication under the new one",
                hint: "verify says what they hold. Restore the store from a backup.",
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
