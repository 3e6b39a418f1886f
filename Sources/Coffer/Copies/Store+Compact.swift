extension Store {
    /// Rewrites the store without the pages that hold nothing, and gives their space back to the
    /// disk.
    ///
    /// ```swift
    /// let report = try await store.compact { progress in
    ///     print(progress.step, progress.count, "of", progress.countTotal)
    /// }
    /// print("\(report.oldByteCount - report.byteCount) bytes are free again")
    /// ```
    ///
    /// Every row is copied into an unfinished file next to the store, under the store's key. Each
    /// page of that file is then authenticated, its structure is checked, and each row is compared
    /// with the store's. Only then its pages take the place of the store's, in one transaction: a
    /// crash at any moment leaves the old content or the new one. The file keeps its name, so that
    /// other connections and processes go on.
    ///
    /// Unlike the engine's VACUUM, this keeps the row ids of every table, holds no content in
    /// memory, and tells when a page was damaged. It needs free space for twice the new size;
    /// without a WAL for the new size and the old one.
    ///
    /// Writes wait until it has ended, those of other processes too: some of them may time out with
    /// `.busy`. Reads go on; without a WAL only those of other processes, and until the pages are
    /// replaced. A read that began before keeps the old pages in the WAL: the file becomes shorter
    /// with a checkpoint after that read (see ``CompactReport/isShortened``).
    ///
    /// - Parameter progress: Called on the working thread, about once for every 256 rows or pages.
    ///   In it a write of this store throws `.wouldDeadlock`, and without a WAL a read as well.
    /// - Returns: What was copied, and the old and new size.
    /// - Throws: `StoreError` `.full` or `.io` if there is no room, checked first and found later;
    ///   `.busy` if a write does not end in time, or without a WAL a read of another process;
    ///   `.damaged` if a page of the store fails authentication or an index does not fit its table;
    ///   `.unsupported` naming what cannot be copied, such as an index that needs a function which
    ///   no connection of this store has, or for a store without a file; `.readOnly`, `.closed`;
    ///   `.misuse` inside a body. After an error the store has its old content.
    /// - Complexity: O(*bytes*) time, about that of two copies; O(1) memory.
    @discardableResult
    public func compact(
        progress: ((CopyProgress) -> Void)? = nil
    ) throws -> CompactReport {
        try core.compact(CopyMonitor(progress: progress))
    }

    /// Rewrites the store without the pages that hold nothing, off the cooperative pool.
    ///
    /// - Parameter progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: What was copied, and the old and new size.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled before the
    ///   new pages begin to replace the old ones, and then the store has its old content.
    @discardableResult
    public func compact(
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> CompactReport {
        try await Self.cancellable(progress) { [core] monitor in try core.compact(monitor) }
    }
}

extension Store {
    /// Gives free pages of a store that was created with ``Configuration/incrementalVacuum`` back
    /// to the disk, in one short write.
    ///
    /// ```swift
    /// while try await store.incrementalVacuum(pageCount: 1_000) > 0 {}
    /// ```
    ///
    /// It moves pages from the end of the file into free ones and cuts the end off; with a WAL the
    /// file becomes shorter at the next checkpoint. `compact(progress:)` gives everything back,
    /// works on every store, and proves what it wrote.
    ///
    /// - Parameter pageCount: The most pages to give back; below 1 means none.
    /// - Returns: How many pages were given back; 0 if none was free.
    /// - Throws: `StoreError` `.unsupported` for a file that was created without it; otherwise as
    ///   `write(mode:timeout:fileID:line:_:)`.
    /// - Complexity: O(`pageCount`).
    /// - Note: The corresponding SQL is `PRAGMA incremental_vacuum`.
    @discardableResult
    public func incrementalVacuum(pageCount: Int) throws -> Int {
        try write { tx in try tx.incrementalVacuum(pageCount: pageCount) }
    }

    /// Gives free pages back to the disk, as the synchronous form does.
    @discardableResult
    public func incrementalVacuum(pageCount: Int) async throws -> Int {
        try await write { tx in try tx.incrementalVacuum(pageCount: pageCount) }
    }
}

extension WriteTransaction {
    fileprivate func incrementalVacuum(pageCount: Int) throws -> Int {
        let handle = try connection().current()
        guard try handle.firstInteger("PRAGMA auto_vacuum") == 2 else {
            throw StoreError(
                .unsupported, "the file was created without incremental vacuum",
                hint: "Use compact(), which needs none.")
        }
        let before = try handle.firstInteger("PRAGMA freelist_count")
        // With 0 the engine would give back all.
        guard pageCount > 0, before > 0 else { return 0 }
        let count = Swift.min(pageCount, before)
        try handle.run("PRAGMA incremental_vacuum(\(count))")
        return before - (try handle.firstInteger("PRAGMA freelist_count"))
    }
}

/// The result of `Store.compact(progress:)`.
public struct CompactReport: Sendable, Equatable {
    /// What the store contains: tables, rows, pages.
    public let content: CopyReport
    /// Bytes of the file and its WAL before.
    public let oldByteCount: Int
    /// Bytes of the file and its WAL now.
    public let byteCount: Int
    /// Whether the file has its new length and neither file nor WAL has old content. `false` while
    /// a read needs the old pages, or if the disk failed after the new ones were committed:
    /// `checkpoint(.truncate)` finishes it later, and so does closing the store.
    public let isShortened: Bool

    init(_ content: CopyReport, from old: StoreSize, to new: StoreSize, isCut: Bool) {
        self.content = content
        oldByteCount = old.byteCount
        byteCount = new.byteCount
        isShortened = isCut
    }
}

extension StoreCore {
    /// - Parameter didUnlock: As in `Compaction`.
    func compact(
        _ monitor: CopyMonitor, didUnlock: @escaping () -> Void = {}
    ) throws(StoreError) -> CompactReport {
        try requireOutside()
        try requireWritable()
        try waitForWriter(monitor.cancellation)
        defer { queue.gate.leave() }
        // Its connection would be in the way of the checkpoint that shortens the file.
        let report = try checkpointer.pausing { () throws(StoreError) in
            // A write in the progress closure would wait for itself.
            try HeldStore.hold(queue.gate) { () throws(StoreError) in
                try Compaction(pool: pool, monitor: monitor, didUnlock: didUnlock).run()
            }
        }
        if !report.isShortened { checkpointer.owe() }
        return report
    }
}
