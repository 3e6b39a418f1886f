/// Rewrites a store's content without the pages that hold nothing, and proves the new pages before
/// they take the place of the old ones.
///
/// 1. Lock the file against writers: with a WAL by the first step of the engine's page copy, which
///    keeps the lock until the end, otherwise by `BEGIN IMMEDIATE`. Reads go on.
/// 2. Copy every row into an unfinished file next to the store, under the store's key.
/// 3. Check that file: its structure, and each row against the store's.
/// 4. Copy its pages into the store in one transaction, which authenticates each of them. Until its
///    commit the store has its old content, whatever happens, and afterwards the new one.
/// 5. Move the WAL into the file, which shortens it.
///
/// The file keeps its name and its inode: a rename would leave every open connection, here and in
/// other processes, with a file that is gone.
struct Compaction {
    let pool: ConnectionPool
    let monitor: CopyMonitor
    /// Called without a WAL in the moment in which no lock is held.
    var didUnlock: () -> Void = {}

    private static let schema = "coffer_compact"
    /// For each of the connections that copy.
    private var cacheByteCount: Int { min(4 << 20, pool.configuration.maximumCacheByteCount) }

    /// Only for the holder of the write gate, while no checkpoint of the store runs.
    ///
    /// - Throws: As `Store.compact(progress:)`.
    func run() throws(StoreError) -> CompactReport {
        let file = try pool.requireFile("nothing on a disk could become smaller")
        let writer = try pool.currentWriter()
        // Frees the space of the WAL, unless somebody reads it, and that of killed compactions.
        _ = try? writer.cutWAL()
        for left in UnfinishedFile.all(of: file.location) { left.removeIfLeft() }
        let old = try StoreSize(of: writer.current(), file.location)
        try requireRoom(for: old, in: writer.current().journalMode(), file.location)
        let result = try replace(writer, in: file)
        // While a read needs old pages, they stay. The new ones are safe in the WAL.
        let isCut = (try? writer.cutWAL()) ?? false
        let new = try? StoreSize(of: pool.openWriter().current(), file.location)
        return CompactReport(
            CopyReport(result, profile: pool.profile), from: old, to: new ?? old, isCut: isCut)
    }

    /// Refuses work for which there is no room: for the copy, and for the WAL or the journal.
    ///
    /// - Throws: `.full` if the disk has no room; `.io` if the copy or the log would exceed the
    ///   largest file that this process may write.
    private func requireRoom(
        for store: StoreSize, in mode: Configuration.JournalMode, _ file: FileLocation
    ) throws(StoreError) {
        let profile = pool.profile
        let copy = store.usedPageCount * profile.pageByteCount
        // A WAL gets every new page, a journal every old one.
        let logged = mode == .wal ? store.usedPageCount : store.pageCount
        let log = WriteAheadLog.offset(ofFrame: logged, pageByteCount: profile.pageByteCount)
        if let limit = FileLocation.maximumWritableByteCount, limit < max(copy, log) {
            throw StoreError(
                .io,
                "compacting \(file.path) makes a file of \(max(copy, log)) bytes, and this "
                    + "process may not write a file of more than \(limit)",
                hint: "Raise the limit (ulimit -f) and try again: nothing was changed.")
        }
        guard let free = file.freeByteCount(), free < copy + log else { return }
        throw StoreError(
            .full,
            "compacting \(file.path) needs \(copy + log) free bytes next to it, and there are "
                + "\(free)",
            hint: "Free some space and try again: nothing was changed.")
    }

    // MARK: Steps

    private func replace(
        _ writer: Connection, in file: StoreFile
    ) throws(StoreError) -> CopyCheck.Result {
        writer.finalizeStatements()
        // Pages that replace others pass through its cache once.
        writer.fitCache(to: cacheByteCount)
        defer { pool.fitCache(of: writer) }
        let target = try writer.current()
        let copy = try UnfinishedCopy.make(
            of: target, file, pool.configuration, cacheByteCount: cacheByteCount)
        let source = try copy.open()
        defer { source.close() }
        let lock = try WriteLock(
            on: target, copy: source, pageByteCount: pool.profile.pageByteCount)
        do throws(StoreError) {
            let result = try fill(copy, source)
            let backup = try lock.handOver(didUnlock)
            try swap(backup, from: source)
            lock.end()
            target.probing.cleanMissCount = nil
            writer.forgetAttachments()
            return result
        } catch {
            lock.end()
            // A rollback may have restored pages: a fresh connection reads them again.
            writer.close()
            throw error
        }
    }

    /// Copies all rows into the unfinished file, and checks it.
    private func fill(
        _ copy: borrowing UnfinishedCopy, _ source: Handle
    ) throws(StoreError) -> CopyCheck.Result {
        let connection = try pool.openForCopy(cacheByteCount: cacheByteCount)
        defer { connection.close() }
        let handle = try connection.current()
        try copy.attach(to: handle, as: Self.schema)
        let transfer = RowTransfer(handle: handle, schema: Self.schema)
        let content = try transfer.run(watch: copy.watch(monitor, of: handle))
        // Attached again, so that the check reads what is in the file.
        try Attachment.detach(Self.schema, from: handle)
        try copy.attach(to: handle, as: Self.schema)
        return try CopyCheck(
            handle: source, cipher: copy.cipher, monitor: monitor,
            structure: (handle, Self.schema), authenticatesAllPages: false
        ).run(content)
    }

    /// Copies all pages into the store, and commits. It cannot be cancelled, because the last page
    /// commits.
    private func swap(_ backup: PageBackup, from source: Handle) throws(StoreError) {
        var isDone = false
        repeat {
            // The last page alone, after all others have proven authentic.
            let count = min(backup.remainingCount - 1, CopyMonitor.interval)
            do throws(StoreError) {
                if count < 1, let failure = source.probeFailure() { throw failure }
                isDone = try backup.step(pageCount: max(count, 1))
            } catch  where error.code == .damaged {
                throw StoreError(
                    .damaged, "the copy, which was checked, cannot be read; it was removed",
                    hint: "The store is as it was. The disk did not keep what was written.",
                    cause: error)
            }
            monitor.progress?(
                CopyProgress(
                    step: .replacingPages, count: backup.doneCount,
                    countTotal: backup.pageCount))
        } while !isDone
    }
}

/// The sizes of an open store.
struct StoreSize {
    /// Bytes of the main file and of the WAL.
    let byteCount: Int
    let pageCount: Int
    /// Pages that hold something.
    let usedPageCount: Int

    init(of handle: Handle, _ file: FileLocation) throws(StoreError) {
        byteCount = try handle.rawByteCount() + file.companionByteCount("-wal")
        pageCount = try handle.firstInteger("PRAGMA page_count")
        usedPageCount = pageCount - (try handle.firstInteger("PRAGMA freelist_count"))
    }
}

/// Keeps every other connection from writing the store, from before the copy until its pages take
/// the place of the store's.
private final class WriteLock {
    private let target: Handle
    private let copy: Handle
    private let pageByteCount: Int
    private var backup: PageBackup?

    /// With a WAL, the first step of the engine's page copy takes the lock and keeps it until its
    /// end. Without one that step would keep readers out too, among them the one that copies. So a
    /// transaction takes the lock, which readers do not notice.
    ///
    /// The mode is that of the file under the lock, because another process may have changed it
    /// since the store was opened. The page copy begins after that transaction. Until then nobody
    /// can leave the WAL, because SQLite refuses that while a connection uses it, and a commit in
    /// between is copied.
    ///
    /// - Parameter copy: Of at least one page.
    /// - Throws: `.busy` if another connection writes.
    init(on target: Handle, copy: Handle, pageByteCount: Int) throws(StoreError) {
        (self.target, self.copy, self.pageByteCount) = (target, copy, pageByteCount)
        try target.run(.beginImmediate)
        do throws(StoreError) {
            guard try target.journalMode() == .wal else { return }
            try target.run(.rollback)
            try begin()
        } catch {
            end()
            throw error
        }
    }

    private func begin() throws(StoreError) {
        let backup = try PageBackup(from: copy, to: target)
        do throws(StoreError) {
            _ = try backup.step(pageCount: 0)
        } catch {
            try? backup.finish()
            throw error
        }
        self.backup = backup
    }

    /// The page copy, which holds the lock.
    ///
    /// A transaction has to end before. If another connection commits in that moment, its first
    /// page differs: each commit to a rollback journal writes the change counter, a change to WAL
    /// writes the file's version, and each write of a page encrypts it with a new random vector.
    ///
    /// - Throws: `.busy` if another connection has committed, or reads for longer than the busy
    ///   timeout.
    func handOver(_ didUnlock: () -> Void) throws(StoreError) -> PageBackup {
        if let backup { return backup }
        let firstPage = try target.rawBytes(at: 0, count: pageByteCount)
        try target.run(.rollback)
        didUnlock()
        try begin()
        guard let backup, try target.rawBytes(at: 0, count: pageByteCount) == firstPage
        else {
            throw StoreError(
                .busy, "another process wrote the store before its new pages could replace the old",
                hint: "Nothing was changed. Try again.")
        }
        return backup
    }

    /// Gives the lock back. What is not committed is undone.
    func end() {
        try? backup?.finish()
        backup = nil
        if target.isInTransaction { try? target.run(.rollback) }
    }
}
