extension Store {
    /// Checks every page's authentication, then the structure.
    ///
    /// Covers the whole main file, free pages too, and every committed frame of the write-ahead
    /// log; then `integrity_check` and `foreign_key_check`. Reads and writes go on meanwhile: a
    /// page that fails is read again under the write lock before it is reported, and the log is
    /// checked under it.
    ///
    /// - Parameter progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: What was found; damage is reported, not thrown.
    /// - Throws: `StoreError` `.busy` if no connection or lock became free in time, `.wrongKey` if
    ///   another process changed the key, `.closed`, `.io`; `.misuse` inside a body.
    /// - Complexity: O(*pages*) time; O(1) memory.
    public func verify(
        progress: ((VerificationProgress) -> Void)? = nil
    ) throws -> VerificationReport {
        try core.requireOutside()
        return try Verification(core: core, progress: progress).run { false }
    }

    /// Checks every page's authentication, then the structure, off the cooperative pool.
    ///
    /// - Parameter progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: What was found; damage is reported, not thrown.
    /// - Throws: As the synchronous form; `StoreError` `.cancelled` if the task is cancelled.
    public func verify(
        progress: (@Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> VerificationReport {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await Self.offPool { [core] in
                try Verification(core: core, progress: progress).run { cancellation.isCancelled }
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}
