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
    private let keys: ReplicaKeys
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
    private var version: [UInt8]?
    private var position: ReplicaPosition?
    private var end: StoreError?
    private var isClosing = false
    private var timer: Task<Void, Never>?
    private var callCount = 0
    private var servedCallCount = 0
    private var pass: Pass?

    /// A pass that runs, and how many calls it serves: those that came before it began.
    private struct Pass {
        let task: Task<Void, any Error>
        let callCount: Int
    }

    init(
        _ store: Store, _ source: ReplicaSource, _ keys: ReplicaKeys, _ writer: LogWriter,
        _ options: ReplicaOptions, _ health: ReplicaHealth, lock: PageTagFile.Lock?,
        tags: PageTags, version: [UInt8]?, position: ReplicaPosition?
    ) {
        (self.store, self.source, self.keys, self.writer) = (store, source, keys, writer)
        (self.options, self.health, self.tags) = (options, health, tags)
        tagFile = PageTagFile(beside: source.path, of: keys)
        self.lock = lock
        (self.version, self.position) = (version, position)
    }

    /// Sends commits by itself from now on. The task keeps the replica.
    func begin() {
        health.reports.began(at: position.map(\.description) ?? "")
        let interval = max(options.interval, .seconds(1))
        timer = Task { [options] in
            while !Task.isCancelled, self.end == nil {
                guard (try? await options.sleep(interval)) != nil else { return }
                // The pass has told of its failure.
                try? await self.sendAll()
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
    /// - Complexity: O(*pages*): 16 bytes of each page are read, and those that have changed are
    ///   sent.
    @discardableResult
    public func caughtUp() async throws -> ReplicaPosition {
        guard !isClosing else { throw end ?? Self.closed }
        try await sendAll()
        guard let position else {
            throw StoreError(.engine, "a pass of a replica has no position")
        }
        return position
    }

    /// What is known about the replica now.
    public var status: ReplicaStatus {
        ReplicaStatus(
            position: position, sentDate: health.sentDate, failure: health.failure, end: end)
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

    private func beginPass() -> Pass {
        let callCount = callCount
        let task = Task {
            defer { self.pass = nil }
            if let end { throw end }
            let beginning = ContinuousClock.now
            do {
                try await send()
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

    /// The pages of a part, at the beginning: 64 MiB of them.
    private var firstPartPageCount: Int { max(1, (64 << 20) / source.pageByteCount) }

    private func send() async throws {
        var limit = firstPartPageCount
        var sentCount = 0
        while true {
            let (store, source, keys, tags, version) = (store, source, keys, tags, version)
            let changes = try await Store.offPool { [limit] cancellation in
                Unchecked(
                    try PageChanges(
                        of: store, source, since: tags, version, keys, limit: limit, cancellation))
            }.value
            guard let changes else { return }
            self.version = nil
            if changes.spool.count > 0 || changes.tags != tags || position == nil {
                try await send(changes, after: sentCount)
            }
            sentCount += changes.spool.count
            if changes.isWhole {
                let isWritten = tagFile.write(changes.tags, since: writtenTags)
                writtenTags = isWritten ? changes.tags : PageTags()
            }
            (self.tags, self.version) = (changes.tags, changes.version)
            guard !changes.isWhole else { return }
            // So that the parts catch up with a store that changes all the time.
            limit *= 2
        }
    }

    /// - Parameter count: Pages that the pass has sent before.
    private func send(_ changes: PageChanges, after count: Int) async throws {
        let spool = changes.spool
        let pagesOfRecord = max(1, ReplicaRecord.maximumPageByteCount / spool.pageByteCount)
        var sent = 0
        repeat {
            let end = min(sent + pagesOfRecord, spool.count)
            var record = ReplicaRecord(time: options.currentDate())
            record.pages = try spool.pages(sent..<end)
            record.pageCount = UInt32(changes.pageCount)
            record.digest = changes.tags.digest
            record.endsCommit = changes.isWhole && end == spool.count
            sent = end
            let position = try await writer.append(.segment, record)
            if record.endsCommit { self.position = position }
            let byteCount = record.pages.count * spool.pageByteCount
            health.reports.sent(byteCount: byteCount)
            options.progress(
                ReplicaProgress(
                    sentByteCount: (count + sent) * spool.pageByteCount,
                    byteCountTotal: (count + spool.count + changes.restCount)
                        * spool.pageByteCount))
        } while sent < spool.count
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
