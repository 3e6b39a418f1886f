extension Store {
    /// Gives the store the key of a new epoch, derived from the root of its keyring, in place.
    ///
    /// ```swift
    /// let report = try store.rotate(maximumPause: .seconds(120)) { progress in
    ///     print(progress.phase, progress.byteCount, progress.byteCountTotal)
    /// }
    /// ```
    ///
    /// A rotation ends the use of one AES key. **It takes access from nobody who ever had the root
    /// key, a root backup or a credential**, because all data keys come from the root. It locks out
    /// whoever has one raw data key only.
    ///
    /// In WAL reads go on, and writes wait while the pages are written; without WAL both wait.
    /// Other processes that opened the store by its keyring go on by themselves. Programs that
    /// opened it by its raw data key end with `.wrongKey`. A crash leaves the old key or the new
    /// one, and every credential opens both.
    ///
    /// - Parameters:
    ///   - maximumPause: The longest pause of writes that the estimate may have; `nil` for
    ///     `Configuration.maximumRotationPause`.
    ///   - progress: Called on Coffer's threads, several times a second. Reports
    ///     ``RotationProgress`` with the estimated pause right before writes begin to wait.
    /// - Returns: What was changed, and what is left to do.
    /// - Throws: `StoreError` `.misuse` for a store without a keyring, while the root is not kept,
    ///   and inside a body of this store; `.tooBig` if writes would wait for longer than allowed;
    ///   `.busy` if another process rotates the key, if a transaction of another process does not
    ///   end within `busyTimeout`, or if they leave no gap within `rotationTimeout`, or within the
    ///   longest pause, counted in time that the tries kept others from the file; `.damaged` for a
    ///   page that fails authentication; `.full` if the disk has no room for the journal or the
    ///   WAL; `.io`; `.readOnly` for a store that was opened for reading only, or a file with
    ///   several names; `.keyringMissing`, `.keyringMismatch`, `.keyringDamaged`; `.suspended`,
    ///   `.closed`; `.wouldDeadlock` in a cycle of waits. The key was not changed then, unless the
    ///   error says so.
    /// - Complexity: O(*pages*) time and disk (the journal or WAL grows to the size of the file);
    ///   8 bytes of memory for each page.
    @discardableResult
    public func rotate(
        maximumPause: Duration? = nil,
        progress: (@Sendable (RotationProgress) -> Void)? = nil
    ) throws -> RotationReport {
        try KeyRotation(
            core, maximumPause: maximumPause, progress: progress
        ).run()
    }

    /// Gives the store the key of a new epoch, without blocking a thread of the cooperative pool.
    ///
    /// Cancelling the task ends a rotation that has not begun to write.
    ///
    /// - Parameters:
    ///   - maximumPause: As in the synchronous form.
    ///   - progress: As in the synchronous form.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form; `CancellationError`.
    @discardableResult
    public func rotate(
        maximumPause: Duration? = nil,
        progress: (@Sendable (RotationProgress) -> Void)? = nil
    ) async throws -> RotationReport {
        try await Self.cancellableOffPool { [core] cancellation in
            try KeyRotation(
                core, maximumPause: maximumPause, progress: progress, cancellation: cancellation
            ).run()
        }
    }
}
