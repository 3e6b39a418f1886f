import CSQLCipher

/// How far a checkpoint goes, and whom it waits for.
/// See <https://www.sqlite.org/c3ref/wal_checkpoint_v2.html>.
public enum CheckpointMode: Int32, Sendable, CaseIterable {
    /// Moves what it can without waiting for anybody.
    case passive
    /// Waits for writers, and for readers of older snapshots; then moves everything.
    case full
    /// The same, and waits until all readers read the file alone: the next write
    /// starts the log anew.
    case restart
    /// The same, and cuts the log to no bytes.
    case truncate
}

/// What a checkpoint found and did.
public struct CheckpointResult: Sendable, Hashable {
    /// Frames (changed pages) in the log, 0 after it was cut.
    public let logFrameCount: Int
    /// Of those, how many stand in the main file by now.
    public let checkpointedFrameCount: Int
}

extension Connection {
    /// Moves the write-ahead log into the main file.
    ///
    /// SQLite does so by itself when the log has 1 000 pages, and when the last connection closes.
    ///
    /// - Parameters:
    ///   - mode: How far to go, and whom to wait for.
    ///   - schema: Which file: `main`, or the name of an attached one.
    /// - Returns: What it found and did; `nil` if the database has no write-ahead log.
    /// - Throws: `StoreError` `.busy` if somebody did not end in time (of `.passive` the counts
    ///   tell), or if another connection runs a checkpoint; `.damaged`, `.full`, `.io`,
    ///   `.readOnly`; `.misuse` inside a transaction or while a statement is at a row; `.notFound`
    ///   if nothing is attached under that name.
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

    /// A checkpoint that waits for nobody; `nil` if another connection runs one.
    func moveLog() throws(StoreError) -> CheckpointResult? {
        do throws(StoreError) {
            return try current().checkpoint(.passive)
        } catch  where error.code == .busy {
            return nil
        }
    }

    /// Puts what checkpoints wrote onto the disk: one beside which the log grew leaves that to the
    /// next, which then takes longer. Nothing depends on it, so a failure is that one's to tell.
    func syncMainFile() {
        if let handle { _ = coffer_sync_main_file(handle.db) }
    }

    /// How a checkpoint of the whole log went.
    enum WholeLogOutcome {
        case done
        /// What could be moved, was.
        case readersRemain
        /// Another connection runs a checkpoint.
        case isRunning
    }

    /// A checkpoint after which the next write starts the log anew: it waits for those who read
    /// what only the log has, and for so long. Who begins to read once all is moved needs the file
    /// alone.
    func moveWholeLog(waiting patience: Duration) throws(StoreError) -> WholeLogOutcome {
        let policy = busyPolicy
        busyPolicy = .timeout(patience)
        defer { busyPolicy = policy }
        let beginning = ContinuousClock.now
        do throws(StoreError) {
            _ = try current().checkpoint(.restart)
            return .done
        } catch  where error.code == .busy {
            // Nobody waits for another checkpoint: that is said at once.
            return beginning.duration(to: .now) < patience / 2 ? .isRunning : .readersRemain
        }
    }

    /// Moves the log and cuts it to no bytes, if nobody uses it now.
    ///
    /// - Returns: Whether it is cut.
    func cutLog() throws(StoreError) -> Bool {
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
    /// - Returns: `nil` if the database has no write-ahead log.
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
            logFrameCount: Int(logCount), checkpointedFrameCount: Int(doneCount))
    }
}
