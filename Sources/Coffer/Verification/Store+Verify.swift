extension Store {
    /// Checks every page's authentication, then the structure.
    ///
    /// ```swift
    /// let report = try store.verify()
    /// for page in report.damagedPages { print(page) }  // page 17: a leaf of table note
    /// ```
    ///
    /// Covers the whole main file, including free pages, and every committed frame of the WAL; then
    /// `integrity_check` and `foreign_key_check`. If the WAL has a newer version of a page, that
    /// version is checked (``VerificationReport/stalePageCount``).
    ///
    /// The cores of the machine, eight at most, authenticate pages at the same time where they
    /// follow each other; those of a sample seldom do. The check of the structure uses one core. In
    /// WAL mode on SQLCipher 4 it runs at the same time as that of the pages, on another thread, if
    /// the store has 4 MiB and that leaves a connection for other reads. SQLCipher 3 cannot
    /// interrupt it.
    ///
    /// In WAL mode, reads and writes continue during the check. Before a failing page is reported,
    /// it is read again under the write lock, which also covers the check of the WAL. A store that
    /// is open for reading only reads again without that lock. If there is damage, the lock is kept
    /// until the affected tables are known, which takes about as long again as the check of the
    /// pages. Without WAL, the check's read lock keeps writers waiting.
    ///
    /// A store without a file has no pages on disk: only its structure is checked, whatever the
    /// scope.
    ///
    /// - Parameters:
    ///   - scope: How much is checked. A sample covers the drawn pages and the whole WAL, but not
    ///     the structure.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The result of the check; damage is reported, not thrown.
    /// - Throws: `StoreError` `.busy` if no connection or write slot became free within
    ///   `waitTimeout`, or no lock within `busyTimeout`; `.wrongKey` if another process changed the
    ///   key, `.damaged` if the list of tables itself cannot be read, `.closed`, `.suspended`;
    ///   `.io` if the size of the file or the index of the WAL cannot be read; `.wouldDeadlock` in
    ///   the body of another store, if a wait would close a cycle of waits; `.misuse` inside a body
    ///   of this store, or for a sample of less than 1 page or a fraction that is not above 0 and
    ///   up to 1.
    /// - Complexity: O(*pages to check*) time; 256 KiB of memory for each core, and one number
    ///   for each page that is in the WAL, that fails in the main file, or that is in the sample.
    ///   If there is damage: O(*pages*) time, one bit for each page.
    public func verify(
        _ scope: VerificationScope = .everything,
        progress: ((VerificationProgress) -> Void)? = nil
    ) throws -> VerificationReport {
        try core.requireOutside()
        return try Verification(core: core, scope: scope, progress: progress).run()
    }

    /// Checks every page's authentication, then the structure, off the cooperative pool.
    ///
    /// - Parameters:
    ///   - scope: How much is checked, as in the synchronous form.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The result of the check; damage is reported, not thrown.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled.
    /// - Complexity: As the synchronous form.
    public func verify(
        _ scope: VerificationScope = .everything,
        progress: (@Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> VerificationReport {
        try await Self.cancellableOffPool { [core] cancellation in
            try Verification(
                core: core, scope: scope, progress: progress, cancellation: cancellation
            ).run()
        }
    }
}

extension Store {
    /// Checks that the key still opens the file and that its first page is authentic, without
    /// reading the rest. `verify(_:progress:)` checks every page.
    ///
    /// - Throws: `StoreError` `.wrongKey` if another process has changed the key, `.damaged`,
    ///   `.truncated`, `.io`; otherwise as `read`.
    /// - Complexity: O(1).
    public func check() throws {
        try core.read { tx in try tx.connection().check() }
    }

    /// Checks the same, without blocking a thread of the cooperative pool.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled.
    public func check() async throws {
        try await core.read { tx in try tx.connection().check() }
    }
}
