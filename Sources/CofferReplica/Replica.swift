import Coffer

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
/// and are sent afterwards.
public actor Replica {
    private let store: Store
    private let source: ReplicaSource
    private let keys: ReplicaKeys
    private let writer: LogWriter
    private let options: ReplicaOptions
    /// What the replica has.
    private var tags: PageTags
    private var version: [UInt8]?
    private var position: ReplicaPosition?
    private var end: StoreError?
    private var passes = PassCount()
    private var timer: Task<Void, Never>?

    /// Which calls a pass serves: those that came before it began.
    private struct PassCount {
        var callCount = 0
        var servedCallCount = 0
        var running: Task<Void, any Error>?
    }

    init(
        _ store: Store, _ source: ReplicaSource, _ keys: ReplicaKeys, _ writer: LogWriter,
        _ options: ReplicaOptions, tags: PageTags, position: ReplicaPosition?
    ) {
        (self.store, self.source, self.keys, self.writer) = (store, source, keys, writer)
        (self.options, self.tags, self.position) = (options, tags, position)
    }

    /// Sends commits by itself from now on.
    func begin() {
        let interval = max(options.interval, .seconds(1))
        timer = Task { [weak self, options] in
            while !Task.isCancelled {
                guard (try? await options.sleep(interval)) != nil, let self else { return }
                do {
                    try await self.caughtUp()
                } catch {
                    options.failed(error)
                    if await self.hasEnded { return }
                }
            }
        }
    }

    private var hasEnded: Bool { end != nil }

    // MARK: Verbs

    /// Waits until everything that was committed before the call is in the remote, and survives a
    /// loss of power there.
    ///
    /// - Returns: The position of it.
    /// - Throws: `StoreError` `.fenced` if another owner has taken over; `.closed`; `.damaged` if a
    ///   page of the store fails authentication; `.remoteDenied`, `.remoteUnfit`; errors of reading
    ///   the store, such as `.suspended`. While the remote cannot be reached the call waits.
    /// - Complexity: O(*pages*): 16 bytes of each page are read, and those that have changed are
    ///   sent.
    @discardableResult
    public func caughtUp() async throws -> ReplicaPosition {
        passes.callCount += 1
        let call = passes.callCount
        while passes.servedCallCount < call {
            if let running = passes.running {
                _ = await running.result
                continue
            }
            let served = passes.callCount
            let pass = Task { try await self.pass() }
            passes.running = pass
            let result = await pass.result
            passes.running = nil
            try result.get()
            passes.servedCallCount = max(passes.servedCallCount, served)
        }
        guard let position else {
            throw StoreError(.engine, "a pass of a replica has no position")
        }
        return position
    }

    /// What is known about the replica now.
    public var status: ReplicaStatus {
        ReplicaStatus(position: position, end: end)
    }

    /// Sends what is left, says to the remote that the owner has stopped, and ends the replication.
    /// Another owner may then take over at once. A second call does nothing.
    ///
    /// - Throws: As `caughtUp()`. The replication has ended all the same; only the last commits may
    ///   be missing, and another owner of another name has to be told to take over.
    public func close() async throws {
        guard end == nil else { return }
        timer?.cancel()
        defer { end = StoreError(.closed, "the replica is closed") }
        try await caughtUp()
        try await writer.close()
    }

    // MARK: Passes

    private func pass() async throws {
        if let end { throw end }
        do {
            try await send()
        } catch {
            if let error = error as? StoreError, error.code == .fenced {
                end = error
                timer?.cancel()
            }
            throw error
        }
    }

    private func send() async throws {
        let (store, keys, tags, version, path) = (store, keys, tags, version, source.path)
        let changes = try await Store.offPool { cancellation in
            Unchecked(
                try PageChanges(
                    of: store, since: tags, version, keys, beside: path, cancellation))
        }.value
        guard let changes else { return }
        self.version = nil
        if changes.spool.count > 0 || changes.tags != tags || position == nil {
            try await send(changes)
        }
        (self.tags, self.version) = (changes.tags, changes.version)
    }

    private func send(_ changes: PageChanges) async throws {
        let spool = changes.spool
        let pagesOfRecord = max(1, ReplicaRecord.maximumPageByteCount / spool.pageByteCount)
        var sent = 0
        repeat {
            let end = min(sent + pagesOfRecord, spool.count)
            var record = ReplicaRecord(time: options.currentDate())
            record.pages = try spool.pages(sent..<end)
            record.pageCount = UInt32(changes.tags.count)
            record.digest = changes.tags.digest
            record.endsCommit = end == spool.count
            sent = end
            let slot = try await writer.append(.segment, record)
            if record.endsCommit { position = ReplicaPosition(slot) }
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

/// What is known about a replica.
public struct ReplicaStatus: Sendable {
    /// The newest commit that the remote has acknowledged in this process; `nil` before the first.
    public let position: ReplicaPosition?
    /// Why the replication has ended; `nil` while it goes on.
    public let end: StoreError?
}
