extension Store {
    /// Checks every page's authentication, then the structure.
    ///
    /// Covers the whole main file, free pages too, and every committed frame of the write-ahead
    /// log; then `integrity_check` and `foreign_key_check`. A page that stands newer in the log is
    /// checked there (``VerificationReport/stalePageCount``). Reads and writes go on meanwhile: a
    /// page that fails is read again under the write lock before it is reported, and the log is
    /// checked under it; a store that is open for reading only reads again without it. If there
    /// is damage, the lock is kept until it is known which tables it concerns, which takes about
    /// as long again as the check of the pages. A store without a file has no pages on a disk: its
    /// structure is checked, whatever the scope.
    ///
    /// ```swift
    /// let report = try store.verify()
    /// for page in report.damagedPages { print(page) }  // page 17: a leaf of table note
    /// ```
    ///
    /// - Parameters:
    ///   - scope: How much is checked. A sample covers the pages drawn and the whole log, and
    ///     leaves out the structure.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: What was found; damage is reported, not thrown.
    /// - Throws: `StoreError` `.busy` if no connection or turn to write became free within
    ///   `waitTimeout`, or no lock within `busyTimeout`; `.wrongKey` if another process changed the
    ///   key, `.damaged` if the list of tables itself cannot be read, `.closed`, `.io`;
    ///   `.misuse` inside a body, or for an impossible sample.
    /// - Complexity: O(*pages to check*) time; one number for each page that is in the log, that
    ///   fails in the main file, or of the sample. If there is damage: O(*pages*) time, one bit for
    ///   each page.
    public func verify(
        _ scope: VerificationScope = .everything,
        progress: ((VerificationProgress) -> Void)? = nil
    ) throws -> VerificationReport {
        try core.requireOutside()
        return try Verification(core: core, scope: scope, progress: progress) { false }.run()
    }

    /// Checks every page's authentication, then the structure, off the cooperative pool.
    ///
    /// - Parameters:
    ///   - scope: How much is checked, as in the synchronous form.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: What was found; damage is reported, not thrown.
    /// - Throws: As the synchronous form; `StoreError` `.cancelled` if the task is cancelled.
    /// - Complexity: As the synchronous form.
    public func verify(
        _ scope: VerificationScope = .everything,
        progress: (@Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> VerificationReport {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await Self.offPool { [core] in
                try Verification(core: core, scope: scope, progress: progress) {
                    cancellation.isCancelled
                }.run()
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}
