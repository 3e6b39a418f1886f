import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The replication of a store to a remote: an encrypted copy that follows the commits.
///
/// ```swift
/// let remote = try FolderRemote("/mnt/backups/notes")
/// let replica = try await store.replicate(to: remote)
/// try await store.write { tx in try tx.insert(note) }
/// try await replica.caughtUp()  // the note is in the remote
/// ```
///
/// The remote gets the pages as they are in the file, encrypted, in sealed records: it sees their
/// sizes and times, and nothing else. Each record has a digest of the whole file, so that a restore
/// proves that nothing is missing.
///
/// The store never waits for the remote. While it cannot be reached, commits stay where they are,
/// and are sent afterwards: `status` and `ReplicaOptions.failed` tell. The replication goes on
/// until `close()`, also if nobody keeps this value.
public actor Replica {
    private let store: Store
    private let source: ReplicaSource
    let reader: LogReader
    private let writer: LogWriter
    private let options: ReplicaOptions
    private let health: ReplicaHealth
    /// Of the pages that the remote has.
    private var tags: PageTags
    private let tagFile: PageTagFile
    /// Until the replication ends.
    private var lock: PageTagFile.Lock?
    /// The tags that were last written to `tagFile`: the next write leaves them out.
    private var writtenTags = PageTags()
    private var version: PageVersion?
    private var position: ReplicaPosition?
    private var end: StoreError?
    private var isClosing = false
    private var timer: Task<Void, Never>?
    private var callCount = 0
    private var servedCallCount = 0
    private var pass: Pass?
    /// The keyring that the remote has got; `nil` for a store without one.
    private var keyring: KeyringNote?
    /// Whether no record names that keyring yet.
    private var isKeyringDue = false
    /// The keyring that the last record names, until those before it are deleted.
    private var namedKeyring: KeyringName?
    private var keyringCount: UInt64 = 0
    /// When the next pass looks whether the remote still has the keyring.
    private var keyringCheck: ContinuousClock.Instant?
    /// Compares all tags even if the file has the version that it had, unless that is certain.
    private var comparison = PeriodicCheck()
    /// Looks whether the remote still has the last record, if a pass has nothing to send.
    private var remoteCheck = PeriodicCheck()
    /// The snapshot that is being made.
    private var maker: SnapshotMaker?
    private var maintenance: Task<Bool, any Error>?
    /// The last snapshot; `nil` until it was looked for, or made.
    private var lastSnapshot: LastSnapshot?
    /// After a failure of it: nothing is tried before.
    private var nextTry: ContinuousClock.Instant?
    /// Whether what the last snapshot allows to be deleted may still be there.
    private var isDeletionDue = false
    private var snapshotFailure: (any Error)?
    /// The parts of a snapshot that failed, by their number: the next one takes those that fit.
    private var unfinished: [Int: SnapshotIndex.Part] = [:]

    private var keys: ReplicaKeys { reader.keys }

    private var maintenanceReader: LogReader {
        LogReader(access: reader.access.forMaintenance, keys: reader.keys)
    }

    private struct LastSnapshot {
        /// Its record, or that of the term which began with no page.
        let date: Date
        /// When this process made it; `nil` if another one did.
        var instant: ContinuousClock.Instant?
        /// The digest of all pages of the file at that time.
        let digest: UInt128
        let index: SnapshotIndex?
    }

    /// A pass that runs, and how many calls it serves: those that came before it began.
    private struct Pass {
        let task: Task<Void, any Error>
        let callCount: Int
    }

    /// The schedule of a check: passes make it every five minutes, and earlier if a caller asks.
    private struct PeriodicCheck {
        private var next: ContinuousClock.Instant?
        private var isAsked = false

        private static let pause = Duration.seconds(300)

        /// Lets the next pass that begins make the check.
        mutating func ask() { isAsked = true }

        /// Whether a pass that begins now makes the check. A caller that asks later gets the next
        /// pass.
        mutating func take(at now: ContinuousClock.Instant) -> Bool {
            defer { isAsked = false }
            return isAsked || next.map { now >= $0 } ?? true
        }

        /// Notes that a pass which began at `instant` has made the check.
        mutating func done(at instant: ContinuousClock.Instant) { next = instant + Self.pause }
    }

    init(
        _ store: Store, _ source: ReplicaSource, _ reader: LogReader, _ writer: LogWriter,
        _ options: ReplicaOptions, _ health: ReplicaHealth, lock: PageTagFile.Lock?,
        tags: PageTags, version: PageVersion?, keyring: KeyringNote?, position: ReplicaPosition?
    ) {
        (self.store, self.source, self.reader, self.writer) = (store, source, reader, writer)
        (self.options, self.health, self.tags) = (options, health, tags)
        tagFile = PageTagFile(beside: source.path, of: reader.keys)
        self.lock = lock
        (self.version, self.keyring, self.position) = (version, keyring, position)
        namedKeyring = options.deletes ? keyring?.name : nil
    }

    /// Sends commits by itself from now on. The task keeps the replica.
    func begin() {
        health.reports.began(at: position.map(\.description) ?? "")
        let interval = max(options.interval, .seconds(1))
        timer = Task { [options] in
            while !Task.isCancelled, self.end == nil {
                guard (try? await options.sleep(interval)) != nil else { return }
                // The pass has told of its failure.
                guard (try? await self.sendAll()) != nil else { continue }
                // Passes go on beside it.
                Task { try? await self.maintain() }
            }
        }
    }

    // MARK: Verbs

    /// Waits until everything that was committed before the call is in the remote, and survives a
    /// loss of power there.
    ///
    /// - Returns: The position of it.
    /// - Throws: `StoreError` `.fenced` if another owner has taken over; `.wrongKey` if the store
    ///   has got another key; `.remoteDamaged` if the remote has lost a record; `.closed`. These
    ///   end the replication. `.damaged` if a page of the store fails authentication;
    ///   `.remoteDenied`, `.remoteUnfit`; errors of reading the store, such as `.suspended`.
    ///   `CancellationError` ends the wait and not the work. While the remote cannot be reached the
    ///   call waits.
    /// - Complexity: O(*pages*) after a commit: 16 bytes of each page are read, and those that have
    ///   changed are sent. If none has, the remote is asked once for the last record.
    @discardableResult
    public func caughtUp() async throws -> ReplicaPosition {
        guard !isClosing else { throw end ?? Self.closed }
        comparison.ask()
        remoteCheck.ask()
        try await sendAll()
        guard let position else {
            throw StoreError(.engine, "a pass of a replica has no position")
        }
        return position
    }

    /// What is known about the replica now.
    public var status: ReplicaStatus {
        ReplicaStatus(
            position: position, sentDate: health.sentDate, failure: health.failure,
            snapshotDate: health.snapshotDate, snapshotFailure: health.snapshotFailure, end: end)
    }

    /// Sends what is left, says to the remote that the owner has stopped, and ends the replication.
    /// The next run of the same owner then goes on at once. A second call does nothing.
    ///
    /// While the remote cannot be reached the call waits. Cancel its task to give up.
    ///
    /// - Throws: As `caughtUp()`. The replication has ended all the same. Only the last commits may
    ///   be missing, and an owner of another name has to be told to take over.
    public func close() async throws {
        guard !isClosing else { return }
        if let end { throw end }
        isClosing = true
        timer?.cancel()
        defer {
            end = end ?? Self.closed
            lock = nil
            pass?.task.cancel()
        }
        maker = nil
        if let maintenance {
            maintenance.cancel()
            _ = try? await maintenance.valueUnlessCancelled()
        }
        comparison.ask()
        try await sendAll()
        let writer = writer
        try await Task { try await writer.close() }.valueUnlessCancelled()
        health.reports.closed()
    }

    /// Ends a replication whose first transfer has failed or was cancelled, and tells the remote if
    /// it answers soon: then the next run need not wait.
    func giveUp() async {
        isClosing = true
        end = end ?? Self.closed
        pass?.task.cancel()
        let (pass, writer) = (pass, writer)
        let farewell = Task {
            _ = await pass?.task.result
            try await writer.close()
        }
        // The caller may be cancelled already, which must not end this wait.
        let wait = Task { try? await farewell.valueUnlessCancelled() }
        let limit = Task { [options] in
            try? await options.sleep(Self.farewellTime)
            wait.cancel()
            farewell.cancel()
        }
        await wait.value
        limit.cancel()
        lock = nil
    }

    /// How long `giveUp()` waits for the remote.
    private static let farewellTime = Duration.seconds(5)

    private static var closed: StoreError { StoreError(.closed, "the replica is closed") }

    // MARK: Passes

    /// Waits for a pass that begins after the call.
    private func sendAll() async throws {
        try Task.checkCancellation()
        callCount += 1
        let call = callCount
        while servedCallCount < call {
            let pass = self.pass ?? beginPass()
            do {
                try await pass.task.valueUnlessCancelled()
            } catch {
                // An earlier pass has failed for its own callers.
                if pass.callCount >= call || Task.isCancelled { throw error }
            }
        }
    }

    /// Calls that wait for a pass.
    var waitingCallCount: Int { callCount - servedCallCount }

    private func beginPass() -> Pass {
        let callCount = callCount
        let now = options.currentInstant()
        let comparesAll = comparison.take(at: now)
        let asksRemote = remoteCheck.take(at: now)
        let task = Task {
            defer { self.pass = nil }
            if let end { throw end }
            let beginning = ContinuousClock.now
            do {
                let maker = maker
                try await sendKeyring()
                let hasSent = try await send(comparingAll: comparesAll)
                if comparesAll { comparison.done(at: now) }
                // A remote that loses its last record would not be noticed while nothing is sent.
                if asksRemote, !hasSent { try await writer.requireLast() }
                if asksRemote || hasSent { remoteCheck.done(at: now) }
                if let maker, maker.hasAll { try await endSnapshot() }
            } catch {
                if let error = error as? StoreError, Self.endings.contains(error.code) {
                    (end, lock) = (error, nil)
                    health.reports.ended(error)
                }
                if !(error is CancellationError) { health.failed(error) }
                throw error
            }
            servedCallCount = max(servedCallCount, callCount)
            health.passed(in: beginning.duration(to: .now))
        }
        let pass = Pass(task: task, callCount: callCount)
        self.pass = pass
        return pass
    }

    /// After these no later pass can succeed.
    private static let endings: [StoreError.Code] = [
        .fenced, .wrongKey, .closed, .remoteDamaged, .remoteUnfit,
    ]

    /// Sends the keyring, if it has changed, or if the remote has lost it: nothing opens the
    /// replica without it. The pass then names it in a record.
    private func sendKeyring() async throws {
        let (store, source) = (store, source)
        let newest = try await Store.offPool { _ in try store.replicaKeyring(of: source) }
        guard let newest else { return }
        if let keyring, keyring.isOf(newest), try await isThere(keyring) { return }
        let name = KeyringName(term: await writer.last.term, number: keyringCount)
        keyringCount += 1
        try await KeyringObjects(access: reader.access).put(newest, as: name)
        (keyring, isKeyringDue) = (KeyringNote(name, newest, epoch: nil), true)
    }

    private func isThere(_ keyring: KeyringNote) async throws -> Bool {
        let now = options.currentInstant()
        if let keyringCheck, now < keyringCheck { return true }
        guard try await KeyringObjects(access: reader.access).has(keyring) else { return false }
        keyringCheck = now + .seconds(3600)
        return true
    }

    /// The pages of a part, at the beginning: 64 MiB of them.
    private var firstPartPageCount: Int { max(1, (64 << 20) / source.pageByteCount) }

    /// Sends what the remote does not have.
    ///
    /// - Parameter comparesAll: Whether to compare all tags, unless the version is certain.
    /// - Returns: Whether a record was sent.
    private func send(comparingAll comparesAll: Bool) async throws -> Bool {
        var hasSent = false
        var limit = firstPartPageCount
        var sentCount = 0
        while true {
            let (store, source, keys, tags) = (store, source, keys, tags)
            let isTrusted = version?.isCertain == true || !comparesAll
            let version = isKeyringDue || !isTrusted ? nil : version
            let changes = try await Store.offPool { [limit] cancellation in
                Unchecked(
                    try PageChanges(
                        of: store, source, since: tags, version, keys, limit: limit, cancellation))
            }.value
            guard let changes else { return hasSent }
            self.version = nil
            if changes.spool.count > 0 || changes.tags != tags || position == nil || isKeyringDue {
                try await send(changes, after: sentCount)
                hasSent = true
            }
            sentCount += changes.spool.count
            if changes.isWhole {
                let isWritten = tagFile.write(changes.tags, since: writtenTags)
                writtenTags = isWritten ? changes.tags : PageTags()
            }
            (self.tags, self.version) = (changes.tags, changes.version)
            guard !changes.isWhole else { return hasSent }
            // So that the parts catch up with a store that changes all the time.
            limit *= 2
        }
    }

    /// - Parameter count: Pages that the pass has sent before.
    private func send(_ changes: PageChanges, after count: Int) async throws {
        let spool = changes.spool
        let pagesOfRecord = ReplicaRecord.pageCountMax(pageByteCount: spool.pageByteCount)
        // The next run goes on behind the last record of a first transfer that breaks off.
        let isFirst = position == nil
        var sentTags = tags
        if isFirst { sentTags.cut(to: changes.pageCount, keys) }
        var sent = 0
        repeat {
            let end = min(sent + pagesOfRecord, spool.count)
            var record = ReplicaRecord(time: options.currentDate())
            record.pages = try spool.pages(sent..<end)
            record.pageCount = UInt32(changes.pageCount)
            record.endsCommit = changes.isWhole && end == spool.count
            let numbers = spool.numbers[sent..<end]
            if isFirst { sentTags.set(numbers, from: changes.tags, keys) }
            record.digest = isFirst ? sentTags.digest : changes.tags.digest
            record.note.keyring = keyring
            record.note.keyring?.epoch = changes.epoch
            sent = end
            let position = try await writer.append(.segment, record)
            // From here on, to wait for the remote is better than to end the run.
            reader.access.lengthenLimit()
            maker?.note(numbers, changes.tags)
            if isFirst { tagFile.write(sentTags, of: numbers) }
            if isKeyringDue, options.deletes { namedKeyring = keyring?.name }
            if record.endsCommit { (self.position, isKeyringDue) = (position, false) }
            let byteCount = record.pages.count * spool.pageByteCount
            health.reports.sent(byteCount: byteCount)
            options.progress(
                ReplicaProgress(
                    sentByteCount: (count + sent) * spool.pageByteCount,
                    byteCountTotal: (count + spool.count + changes.restCount)
                        * spool.pageByteCount))
        } while sent < spool.count
    }

    // MARK: Snapshots

    /// Makes a snapshot if it is time for one, and deletes what is not kept any more. The replica
    /// does that by itself after a pass; a program that closes it after each pass calls this one.
    ///
    /// - Returns: Whether a snapshot was made.
    /// - Throws: As `caughtUp()`; `.remoteDamaged` if the remote does not have a part as it was
    ///   sent. The replication goes on, and the next call tries again.
    /// - Complexity: O(*pages*): the digest of each part is compared, and the parts that have
    ///   changed are sent.
    @discardableResult
    public func maintain() async throws -> Bool {
        guard !isClosing, end == nil else { throw end ?? Self.closed }
        guard maintenance == nil else { return false }
        if let nextTry, nextTry > options.currentInstant() { return false }
        let task = Task {
            defer { (maintenance, maker) = (nil, nil) }
            do {
                return try await maintainNow()
            } catch {
                nextTry = options.currentInstant() + Self.pauseOfTries
                if !isClosing, !(error is CancellationError) { health.maintenanceFailed(error) }
                throw error
            }
        }
        maintenance = task
        return try await task.valueUnlessCancelled()
    }

    private func maintainNow() async throws -> Bool {
        var failure: (any Error)?
        do {
            try await deleteFormerKeyrings()
        } catch {
            // A remote that does not let them be deleted gets snapshots all the same.
            failure = error
        }
        let isDue = try await isSnapshotDue()
        if isDue {
            try await makeSnapshot()
            isDeletionDue = options.deletes
        }
        if isDeletionDue {
            let retention = Retention(reader: maintenanceReader, end: await writer.snapshot)
            if let index = lastSnapshot?.index, index.kept.isEmpty {
                // Parts of runs that ended before their first snapshot did.
                _ = try await retention.deleteParts(
                    before: index.begin, but: Set(index.parts.map(\.name)))
            }
            _ = try await retention.run()
            isDeletionDue = false
        }
        if let failure { throw failure }
        if isDue { health.maintained() }
        return isDue
    }

    private func deleteFormerKeyrings() async throws {
        guard let name = namedKeyring else { return }
        _ = try await KeyringObjects(access: maintenanceReader.access).deleteAll(before: name)
        if namedKeyring == name { namedKeyring = nil }
    }

    /// How long nothing is tried again after a failure.
    private static let pauseOfTries = Duration.seconds(3600)

    private func isSnapshotDue() async throws -> Bool {
        let last: LastSnapshot
        if let lastSnapshot {
            last = lastSnapshot
        } else {
            last = try await findLastSnapshot()
            lastSnapshot = last
        }
        let interval = max(options.snapshotInterval, .seconds(60))
        guard last.digest != tags.digest else { return false }
        // No clock that is set makes a process have two snapshots at once.
        if let instant = last.instant { return options.currentInstant() - instant >= interval }
        let now = reader.access.estimatedTime ?? options.currentDate()
        // A record of a clock that was wrong does not put it off.
        return abs(now.timeIntervalSince(last.date)) >= interval / .seconds(1)
    }

    private func findLastSnapshot() async throws -> LastSnapshot {
        if let slot = await writer.snapshot {
            let record = try await maintenanceReader.existing(slot).record
            return LastSnapshot(
                date: record.moment, digest: record.digest,
                index: try await maintenanceReader.index(at: slot))
        }
        let begin = try await maintenanceReader.existing(
            Slot(term: writer.wholeTerm ?? 1, number: 0))
        return LastSnapshot(date: begin.record.moment, digest: begin.record.digest, index: nil)
    }

    private func makeSnapshot() async throws {
        // Parts are read from the file as it is, and must fit what the passes have sent.
        comparison.ask()
        // Between two passes `tags` are of the last record.
        repeat { try await sendAll() } while pass != nil
        try Task.checkCancellation()
        guard let position else { return }
        snapshotFailure = nil
        maker = SnapshotMaker(
            store, source, keys, maintenanceReader.access, begin: position.slot, tags: tags,
            previous: lastSnapshot?.index, unfinished: unfinished)
        while let maker, !maker.hasAll {
            try Task.checkCancellation()
            let made = try await maker.make()
            unfinished[maker.parts.count] = made.part
            self.maker?.add(made)
            health.reports.sent(byteCount: made.byteCount)
        }
        // Its pass writes the record.
        comparison.ask()
        try await sendAll()
        if let snapshotFailure { throw snapshotFailure }
        unfinished = [:]
    }

    /// Ends a snapshot after a pass that began when all parts were made. The pass does not fail
    /// with the snapshot, unless another owner has taken over.
    private func endSnapshot() async throws {
        guard let maker, let position else { return }
        self.maker = nil
        do {
            try maker.require(tags)
            try await writeRecord(of: maker, end: position.slot)
        } catch let error as StoreError where error.code == .fenced {
            throw error
        } catch {
            snapshotFailure = error
        }
    }

    private func writeRecord(of maker: SnapshotMaker, end: Slot) async throws {
        var former: (record: Slot, index: SnapshotIndex)?
        if let record = await writer.snapshot {
            former = (record, try await maintenanceReader.index(at: record))
        }
        let kept = try await keptSnapshots(former)
        let historyCount =
            max(2, min(options.keptHistorySnapshotCount, options.keptSnapshotCount)) - 1
        let whole = kept.count >= historyCount ? kept[kept.count - historyCount] : nil
        var record = await writer.state
        record.time = options.currentDate()
        record.note.index = SnapshotIndex(
            begin: maker.begin, end: end, kept: kept,
            whole: [whole, former?.index.whole].compactMap(\.self).max { $0.record < $1.record },
            parts: maker.parts)
        // If it fails, the log knows whether the remote has got it.
        lastSnapshot = nil
        try await writer.append(.snapshot, record)
        lastSnapshot = LastSnapshot(
            date: reader.access.estimatedTime ?? record.time, instant: options.currentInstant(),
            digest: record.digest, index: record.note.index)
        health.madeSnapshot()
    }

    /// The snapshots that a new one keeps, the oldest first.
    private func keptSnapshots(
        _ former: (record: Slot, index: SnapshotIndex)?
    ) async throws -> [SnapshotIndex.Kept] {
        guard let former else { return [] }
        let record = try await maintenanceReader.existing(former.record).record
        let kept =
            former.index.kept + [
                SnapshotIndex.Kept(
                    record: former.record, begin: former.index.begin, end: former.index.end,
                    moment: record.moment, remoteTime: record.remoteTime)
            ]
        return kept.suffix(max(2, options.keptSnapshotCount) - 1)
    }
}

/// A value that one task hands to another and does not keep.
private struct Unchecked<T>: @unchecked Sendable {
    // Unchecked because of the spool in it: the thread that made it has let it go.
    let value: T

    init(_ value: T) {
        self.value = value
    }
}
