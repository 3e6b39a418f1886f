import CSQLCipher

extension Store {
    /// Runs `body` with all pages of the store as of one moment.
    ///
    /// The content of that moment survives a loss of power: the WAL is synced first, or the folder,
    /// from which a commit has deleted its journal. Reads and writes go on meanwhile; without WAL,
    /// writes wait.
    ///
    /// - Parameter source: The file as it was when the replication began.
    /// - Throws: What `body` throws; `.wrongKey` if the store has got another key since then;
    ///   `.busy` if commits follow each other too fast to find a moment between two; otherwise as
    ///   `read`.
    package func withPages<T>(
        of source: ReplicaSource, _ cancellation: Cancellation? = nil,
        _ body: (borrowing PageSnapshot) throws -> T
    ) throws -> T {
        guard let result = try withPages(of: source, since: nil, cancellation, body) else {
            throw StoreError(.engine, "the pages of a store are the same as those of no moment")
        }
        return result
    }

    /// Runs `body` with all pages of the store as of one moment, as `withPages(of:_:_:)` does.
    ///
    /// - Parameter version: Of a moment that `body` has seen; `nil` if it has seen none.
    /// - Returns: `nil` without a call of `body` if the store has that version.
    package func withPages<T>(
        of source: ReplicaSource, since version: PageVersion?, _ cancellation: Cancellation? = nil,
        _ body: (borrowing PageSnapshot) throws -> T
    ) throws -> T? {
        for _ in 0..<Self.momentTryCount {
            // Not as the store was opened: another program may have changed the mode. A transaction
            // of its own asks, because the question fixes what a transaction sees.
            let (mode, earlier) = try core.read(cancellation: cancellation) { tx in
                let handle = try tx.connection().fileState().handle
                let mode = try handle.journalMode()
                return (mode, mode == .wal ? try Self.index(of: WALFile(handle: handle)) : nil)
            }
            let moment = try core.read(cancellation: cancellation) { tx -> Moment<T> in
                let connection = try tx.connection()
                let open = try connection.fileState()
                guard case .own(let epoch) = try source.pageKey(open, of: core.pool.file) else {
                    return .passed
                }
                let log = WALFile(handle: open.handle)
                // With a keyring a transaction reads something when it begins.
                let before = source.hasKeyring || mode != .wal ? earlier : try Self.index(of: log)
                // Fixes what the transaction sees.
                _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
                let index = mode == .wal ? try Self.index(of: log) : nil
                guard try index == before && open.handle.journalMode() == mode else {
                    return .passed
                }
                let found = try PageSnapshot.version(
                    of: open, index, core.pool.configuration.stampOfOldFile)
                if let version, found == version { return .seen }
                let isDurable = try sync(open.handle, hasWAL: index != nil)
                return .new(
                    try body(
                        PageSnapshot(
                            open, index, isDurable ? found : nil, epoch: epoch, in: tx.access)))
            }
            switch moment {
            case .new(let result): return result
            case .seen: return nil
            case .passed: continue
            }
        }
        throw StoreError(
            .busy, "other connections commit without a pause", hint: "Try again.")
    }

    /// A try to see all pages as of one moment.
    private enum Moment<T> {
        case new(T)
        /// Its version was seen before.
        case seen
        /// Something was committed meanwhile.
        case passed
    }

    /// - Returns: Whether what was committed survives a loss of power. The next pass tries again
    ///   otherwise.
    private func sync(_ handle: Handle, hasWAL: Bool) throws(StoreError) -> Bool {
        if hasWAL {
            try Self.syncWAL(handle)
            return true
        }
        // Most programs do not sync the end of their rollback journal.
        return core.pool.file?.location.syncFolder() ?? false
    }

    private static func index(of log: WALFile) throws(StoreError) -> WALFile.Index {
        guard let index = try log.index() else {
            throw StoreError(.io, "the index of the write-ahead log cannot be read")
        }
        return index
    }

    private static let momentTryCount = 1000

    private static func syncWAL(_ handle: Handle) throws(StoreError) {
        let code = coffer_sync_wal(handle.db)
        guard code == SQLITE_OK || code == SQLITE_NOTFOUND else {
            throw StoreError.of(nil, code: code, sql: nil)
        }
    }

    /// The file that a replica is of.
    ///
    /// - Throws: `.unsupported` for a store without a file; `.misuse` if it has a keyring, and does
    ///   not keep its root; `.busy` while the root is being replaced.
    package func replicaSource() throws -> ReplicaSource {
        guard let file = core.pool.file else {
            throw StoreError(.unsupported, "a store in memory cannot be replicated")
        }
        return try ReplicaSource(file)
    }

    /// The keyring as it is now; `nil` for a store without one. While the store does not keep its
    /// root, it is the one that the store has read last: no other can be authenticated.
    ///
    /// - Throws: `.wrongKey` if it has another root than `source`; `.tooManyFiles`,
    ///   `.needsNewerProgram` if it cannot be read.
    package func replicaKeyring(of source: ReplicaSource) throws -> ReplicaKeyring? {
        try source.newestKeyring(of: core.pool.file)
    }

    /// Runs work that may take long, on one of Coffer's threads.
    package static func offPool<T: Sendable>(
        cancellable work: @escaping @Sendable (Cancellation) throws -> T
    ) async throws -> T {
        try await cancellableOffPool(work)
    }
}
