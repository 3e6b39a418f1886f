import CSQLCipher

/// Moves the WAL into the main file after a change of the key. Until then the WAL has the new pages
/// and the main file still has the old ones.
///
/// `wal_checkpoint(TRUNCATE)` alone holds the write lock for its whole length: writers waited 0.8 s
/// for 411 MB. If a read needs the old pages, it moves nothing and waits for the whole busy
/// timeout. So passive checkpoints move the WAL while writers continue, and the last step waits for
/// nobody.
struct RekeyedWAL {
    /// Under the new key, with no transaction open.
    let open: OpenFile

    /// Moves the WAL into the main file, as far as no read keeps it, and reports the result.
    ///
    /// Does not throw: an error of the checkpoint is in the report. Leaves the handle with a busy
    /// timeout of 0, until its owner installs another one.
    ///
    /// - Parameters:
    ///   - beginning: When the change began, for the report's duration.
    ///   - isCounted: Whether old pages are counted by their MACs even if the engine says that it
    ///     moved all pages. Otherwise their number is then 0.
    /// - Returns: The report. If old pages cannot be counted, all pages count as old.
    func report(
        since beginning: ContinuousClock.Instant, isCounted: Bool = false
    ) -> RekeyReport {
        var failure: StoreError?
        var isMoved = false
        do throws(StoreError) {
            isMoved = try move()
        } catch {
            // Another connection is running a checkpoint, which moves the WAL as well.
            if error.code != .busy { failure = error }
        }
        let count = open.handle.databasePageCount ?? 0
        let oldCount = isMoved && !isCounted ? 0 : oldPageCount(of: count) ?? max(count, 1)
        return RekeyReport(
            pageCount: count, oldPageCount: oldCount, duration: beginning.duration(to: .now),
            checkpointFailure: oldCount == 0 ? nil : failure, isWALMoved: isMoved)
    }

    /// The report before the WAL is moved: the whole main file counts as old if there is a WAL.
    func unmovedReport(since beginning: ContinuousClock.Instant) -> RekeyReport {
        let count = open.handle.databasePageCount ?? 0
        let hasWAL = open.file.companionByteCount("-wal") > 0
        return RekeyReport(
            pageCount: count, oldPageCount: hasWAL ? max(count, 1) : 0,
            duration: beginning.duration(to: .now), checkpointFailure: nil, isWALMoved: !hasWAL)
    }

    /// Moves the WAL into the main file by checkpoints that wait for nobody, and truncates it if
    /// nobody reads it.
    ///
    /// - Returns: Whether all of it was moved, or there is none; `false` if a read keeps part of
    ///   the WAL.
    /// - Throws: `.busy` if another connection runs a checkpoint; errors of the checkpoint.
    private func move() throws(StoreError) -> Bool {
        sqlite3_busy_timeout(open.handle.db, 0)
        guard try open.handle.checkpoint(.passive) != nil else { return true }
        // Syncs the main file here, without the lock that TRUNCATE would hold while syncing it.
        _ = coffer_sync_main_file(open.handle.db)
        guard let result = try open.handle.checkpoint(.passive),
            result.checkpointedFrameCount == result.walFrameCount
        else { return false }
        // Everything is moved by now. If a reader keeps the WAL from being truncated, no harm is
        // done.
        _ = try? open.handle.checkpoint(.truncate)
        return true
    }

    /// The number of pages of the main file whose MAC does not fit the new key; `nil` if there are
    /// no pages or the file cannot be read.
    ///
    /// - Complexity: O(*pages*).
    private func oldPageCount(of pageCount: Int) -> Int? {
        guard pageCount > 0 else { return nil }
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        return try? pages.foreignCount(of: pageCount)
    }
}
