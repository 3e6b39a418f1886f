import CSQLCipher

/// The log after a change of the key: it has the new pages, and the main file still the old ones.
///
/// `wal_checkpoint(TRUNCATE)` alone holds the write lock for its whole length: writers waited 0.8 s
/// for 411 MB. Beside a read that needs the old pages it moves nothing, and waits for the whole
/// busy timeout. So the log is moved beside the writers, and the last step waits for nobody.
struct RekeyedLog {
    /// Under the new key, with no transaction open.
    let open: Connection.FileState

    /// Moves the log and tells what came of it.
    ///
    /// Leaves the handle with a busy timeout of 0, until its owner installs another one.
    ///
    /// - Parameter isCounted: Whether pages are counted by their MACs also where the engine says
    ///   that it moved them all.
    func report(
        since beginning: ContinuousClock.Instant, isCounted: Bool = false
    ) -> RekeyReport {
        var failure: StoreError?
        var isMoved = false
        do throws(StoreError) {
            isMoved = try move()
        } catch {
            // Another connection runs a checkpoint: its work counts as well.
            if error.code != .busy { failure = error }
        }
        let count = open.handle.databasePageCount ?? 0
        let oldCount = isMoved && !isCounted ? 0 : oldPageCount(of: count) ?? max(count, 1)
        return RekeyReport(
            pageCount: count, oldPageCount: oldCount, duration: beginning.duration(to: .now),
            checkpointFailure: oldCount == 0 ? nil : failure, isLogMoved: isMoved)
    }

    /// - Returns: `false` if a read keeps a part of the log.
    private func move() throws(StoreError) -> Bool {
        sqlite3_busy_timeout(open.handle.db, 0)
        guard try open.handle.checkpoint(.passive) != nil else { return true }
        // The main file is synced here, without the lock that TRUNCATE would sync it under.
        _ = coffer_sync_main_file(open.handle.db)
        guard let result = try open.handle.checkpoint(.passive),
            result.checkpointedFrameCount == result.logFrameCount
        else { return false }
        // All is moved by now. A log that stays, because somebody reads it, does no harm.
        _ = try? open.handle.checkpoint(.truncate)
        return true
    }

    /// Pages of the main file that are not authentic under the key; `nil` if it cannot be read.
    ///
    /// - Complexity: O(*pages*).
    private func oldPageCount(of pageCount: Int) -> Int? {
        guard pageCount > 0 else { return nil }
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        return try? pages.foreignCount(of: pageCount)
    }
}
