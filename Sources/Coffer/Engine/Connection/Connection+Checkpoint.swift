import CSQLCipher

/// How far a checkpoint goes, and whom it waits for.
/// See <https://www.sqlite.org/c3ref/wal_checkpoint_v2.html>.
public enum CheckpointMode: Int32, Sendable, CaseIterable {
    /// Moves as many frames as it can without waiting for anybody.
    case passive
    /// Waits for writers, and for readers of older snapshots; then moves everything.
    case full
    /// The same, and waits until all readers read only the main file: the next write restarts the
    /// WAL.
    case restart
    /// The same, and truncates the WAL to zero bytes.
    case truncate
}

/// The outcome of a checkpoint.
public struct CheckpointResult: Sendable, Hashable {
    /// Frames (changed pages) in the WAL, 0 after it was truncated.
    public let walFrameCount: Int
    /// The number of these frames that are in the main file now.
    public let checkpointedFrameCount: Int
}

extension Connection {
    /// Moves the WAL into the main file.
    ///
    /// SQLite does so by itself when the WAL has 1 000 pages, and when the last connection closes.
    ///
    /// - Parameters:
    ///   - mode: How far to go, and whom to wait for.
    ///   - schema: The file: `main`, or the name of an attached one.
    /// - Returns: The outcome; `nil` if the database has no WAL.
    /// - Throws: `StoreError` `.busy` if a reader or writer did not end in time (`.passive` shows
    ///   this in its counts instead), or if another connection runs a checkpoint; `.damaged`,
    ///   `.full`, `.io`, `.readOnly`; `.misuse` inside a transaction or while a statement has a
    ///   current row; `.notFound` if no file is attached under that name.
    /// - Complexity: O(*frames*) time.
    /// - Note: The corresponding C function is `sqlite3_wal_checkpoint_v2`.
    @discardableResult
    public func checkpoint(
        _ mode: CheckpointMode = .passive, in schema: String = "main"
    ) throws -> CheckpointResult? {
        let handle = try requireNoTransaction()
        guard self.mode != .readOnly else {
            throw StoreError(.readOnly, "the file was opened for reading only")
        }
        guard (["main"] + handle.attachedNames).contains(where: { $0.isSameIdentifier(as: schema) })
        else {
            throw StoreError(.notFound, "no file is attached under that name")
        }
        return try handle.checkpoint(mode, in: schema)
    }

    /// Runs a passive checkpoint of the main file, and returns its outcome. `nil` if another
    /// connection runs a checkpoint, or the database has no WAL.
    ///
    /// - Throws: Errors of the checkpoint other than `.busy`; otherwise as `current()`.
    func moveWAL() throws(StoreError) -> CheckpointResult? {
        do throws(StoreError) {
            return try current().checkpoint(.passive)
        } catch  where error.code == .busy {
            return nil
        }
    }

    /// Syncs the main file, and ignores a failure. A checkpoint during which the WAL grew leaves
    /// the sync to the next one, which then takes longer. Nothing depends on this sync, so the next
    /// checkpoint reports a failure.
    func syncMainFile() {
        if let handle { _ = coffer_sync_main_file(handle.db) }
    }

    /// The outcome of a checkpoint of the whole WAL.
    enum WholeWALOutcome {
        case done
        /// Every frame that could be moved was moved.
        case readersRemain
        /// Another connection runs a checkpoint.
        case isRunning
    }

    /// Runs a checkpoint after which the next write restarts the WAL.
    ///
    /// It waits for readers of content that only the WAL has, with `patience` as the busy timeout.
    /// A read that begins after everything is moved needs only the main file.
    ///
    /// - Returns: `.done` if the checkpoint succeeded. If the engine reported `.busy`: `.isRunning`
    ///   if it did so before half of `patience` had passed, otherwise `.readersRemain`.
    /// - Throws: Errors of the checkpoint other than `.busy`; otherwise as `current()`.
    func moveWholeWAL(waiting patience: Duration) throws(StoreError) -> WholeWALOutcome {
        let policy = busyPolicy
        busyPolicy = .timeout(patience)
        defer { busyPolicy = policy }
        let beginning = ContinuousClock.now
        do throws(StoreError) {
            _ = try current().checkpoint(.restart)
            return .done
        } catch  where error.code == .busy {
            // SQLite does not wait for another checkpoint: it reports one at once.
            return beginning.duration(to: .now) < patience / 2 ? .isRunning : .readersRemain
        }
    }

    /// Moves the WAL of the main file and truncates it to zero bytes, without waiting.
    ///
    /// - Returns: `true` if the WAL was truncated or the database has none; `false` if a reader, a
    ///   writer or another checkpoint prevents it.
    /// - Throws: Errors of the checkpoint other than `.busy`; otherwise as `current()`.
    func cutWAL() throws(StoreError) -> Bool {
        let policy = busyPolicy
        busyPolicy = .none
        defer { busyPolicy = policy }
        do throws(StoreError) {
            _ = try current().checkpoint(.truncate)
            return true
        } catch  where error.code == .busy {
            return false
        }
    }
}

extension Handle {
    /// Runs a checkpoint of the database `schema`.
    ///
    /// - Returns: Its outcome; `nil` if the database has no WAL.
    /// - Throws: The engine's error, such as `.busy`.
    func checkpoint(
        _ mode: CheckpointMode, in schema: String = "main"
    ) throws(StoreError) -> CheckpointResult? {
        var logCount: Int32 = -1
        var doneCount: Int32 = -1
        let code = sqlite3_wal_checkpoint_v2(db, schema, mode.rawValue, &logCount, &doneCount)
        guard code == SQLITE_OK else { throw error(code) }
        // "If *pnLog and *pnCkpt are set to -1 … the database is not in WAL mode".
        guard logCount >= 0, doneCount >= 0 else { return nil }
        return CheckpointResult(
            walFrameCount: Int(logCount), checkpointedFrameCount: Int(doneCount))
    }
}
