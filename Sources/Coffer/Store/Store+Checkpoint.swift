extension Store {
    /// Moves the WAL into the main file.
    ///
    /// ```swift
    /// try await store.checkpoint(.truncate)   // before a file system snapshot
    /// ```
    ///
    /// A store does this by itself, alongside its writes. Use it before something copies the file,
    /// or when the WAL's bytes matter. Later writes wait until it has ended; reads go on.
    ///
    /// - Parameter mode: How far to go. All but `.passive` wait for reads that need the WAL, as
    ///   long as `Configuration.waitTimeout`.
    /// - Returns: The outcome; `nil` if the store has no WAL.
    /// - Throws: `StoreError` `.busy` if a write or a read did not end in time: with `.passive`
    ///   only a write, because the outcome tells what reads hold back. `.readOnly`, `.damaged`,
    ///   `.full`, `.io`; `.misuse` inside a body of the store; `.closed`.
    /// - Complexity: O(*pages in the WAL*).
    /// - Note: The corresponding C function is `sqlite3_wal_checkpoint_v2`.
    @discardableResult
    public func checkpoint(_ mode: CheckpointMode = .passive) throws -> CheckpointResult? {
        try core.checkpoint(mode)
    }

    /// Moves the WAL into the main file, as the synchronous form does.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled before it
    ///   begins.
    @discardableResult
    public func checkpoint(_ mode: CheckpointMode = .passive) async throws -> CheckpointResult? {
        try await Self.cancellableOffPool { [core] cancellation in
            try core.checkpoint(mode, cancellation)
        }
    }
}

extension StoreCore {
    fileprivate func checkpoint(
        _ mode: CheckpointMode, _ cancellation: Cancellation? = nil
    ) throws -> CheckpointResult? {
        try requireOutside()
        try requireWritable()
        try waitForWriter(cancellation)
        defer { queue.gate.leave() }
        // Its connection would be in the way of a checkpoint that truncates.
        return try checkpointer.pausing { try pool.currentWriter().checkpoint(mode) }
    }
}
