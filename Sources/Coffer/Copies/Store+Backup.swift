extension Store {
    /// Copies the store into a new one, while reads and writes go on.
    ///
    /// One snapshot is copied, page by page, in a single read transaction, so commits of others do
    /// not restart the copy; without WAL, writes wait for that transaction. Then every page of the
    /// copy is authenticated and its structure checked. Only then the copy appears at `newPath`.
    ///
    /// - Parameters:
    ///   - newPath: The path of the copy, at which there is nothing yet.
    ///   - key: The key of the copy; `nil` for the store's key and salt. With another key the copy
    ///     gets that key's salt, or a random one. Nobody knows the key of a store without a file.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The report of the checked copy. The copy has the store's profile.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound` for a missing folder; `.damaged` with
    ///   page numbers where they are known, if a page of the store fails authentication or the copy
    ///   is not sound; `.busy`, `.full`, `.io`, `.closed`; `.misuse` inside a body, for an empty
    ///   key, or without a key if the store has no file.
    /// - Complexity: O(*pages*) time; O(1) memory. In WAL mode the WAL grows until the snapshot is
    ///   copied.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    @discardableResult
    public func backup(
        to newPath: String, key: borrowing StoreKey? = nil,
        progress: ((CopyProgress) -> Void)? = nil
    ) throws -> CopyReport {
        let monitor = CopyMonitor(progress: progress)
        return try Conversion(configuration: core.configuration, monitor: monitor)
            .backUp(core, to: newPath, key: key)
    }

    /// Copies the store into a new one, while reads and writes go on, off the cooperative pool.
    ///
    /// - Parameters:
    ///   - newPath: The path of the copy, at which there is nothing yet.
    ///   - key: The key of the copy; `nil` for the store's key and salt.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The report of the checked copy. The copy has the store's profile.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled, and
    ///   then there is nothing at `newPath`.
    @discardableResult
    public func backup(
        to newPath: String, key: borrowing StoreKey? = nil,
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> CopyReport {
        let key = KeyBox(key.copy())
        return try await Self.cancellable(progress) { [core] monitor in
            try Conversion(configuration: core.configuration, monitor: monitor)
                .backUp(core, to: newPath, key: key.key)
        }
    }
}
