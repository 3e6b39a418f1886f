extension Store {
    /// Copies every row of every page that is not damaged into a new store.
    ///
    /// ```swift
    /// let report = try Store.salvage(damagedAt: "notes.db", key: key, to: "rest.db")
    /// for table in report.tables { print(table.name, table.rowCount, table.gaps) }
    /// ```
    ///
    /// Use it if `verify()` finds damage and there is no backup. It reads the file by itself: no
    /// page needs to be intact, not even the first. Every page is authenticated, and what fails is
    /// left out, so that no damaged value gets into the new store. The report says what is missing.
    /// A row that has no place in its table is in a table of its own, `lost_and_found`.
    ///
    /// Commits in the WAL count. If the last one there cannot be read, the report says so. A page
    /// that a deleted row has left can come back into `lost_and_found` if the list of free pages is
    /// damaged.
    ///
    /// The damaged store is not changed, and nobody may have it open. If this user may not write
    /// it, an open connection is not noticed, which the report says as well.
    ///
    /// - Parameters:
    ///   - path: The damaged store.
    ///   - key: Its key. If the first 16 bytes of the file are damaged, only a raw key with its
    ///     salt opens it.
    ///   - newPath: The path of the new store, at which there is nothing yet.
    ///   - newKey: The key of the new store; `nil` for the same key.
    ///   - configuration: Its `profile` is that of both stores; `nil` finds out that of the damaged
    ///     store.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: What the new store has, and what it lacks.
    /// - Throws: `StoreError` `.wrongKey` if the key opens no page; `.busy` or `.alreadyOpen` if
    ///   somebody has the store open; `.busy` if a journal lies next to it; `.alreadyExists`,
    ///   `.notFound`, `.notEncrypted`, `.notAStore`, `.truncated`, `.full`, `.io`; `.damaged` if
    ///   the new file did not keep what was written; `.misuse` for an empty key. After an error
    ///   there is nothing at `newPath`.
    /// - Complexity: O(*bytes*) time; some bytes of memory for each page, and the largest row.
    public static func salvage(
        damagedAt path: String, key: borrowing StoreKey, to newPath: String,
        newKey: borrowing StoreKey? = nil, configuration: Configuration = .init(),
        progress: ((CopyProgress) -> Void)? = nil
    ) throws -> SalvageReport {
        let newKey = newKey.copy() ?? key.copy()
        let monitor = CopyMonitor(progress: progress)
        return try Salvage(configuration: configuration, monitor: monitor)
            .run(path, key: key, to: newPath, newKey: newKey)
    }

    /// Copies every row of every page that is not damaged into a new store, off the cooperative
    /// pool.
    ///
    /// - Parameters:
    ///   - path: The damaged store.
    ///   - key: Its key.
    ///   - newPath: The path of the new store, at which there is nothing yet.
    ///   - newKey: The key of the new store; `nil` for the same key.
    ///   - configuration: Its `profile` is that of both stores; `nil` finds out that of the damaged
    ///     store.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: What the new store has, and what it lacks.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled, and
    ///   then there is nothing at `newPath`.
    public static func salvage(
        damagedAt path: String, key: borrowing StoreKey, to newPath: String,
        newKey: borrowing StoreKey? = nil, configuration: Configuration = .init(),
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> SalvageReport {
        let newKey = KeyBox(newKey.copy() ?? key.copy())
        let key = KeyBox(key.copy())
        return try await cancellable(progress) { monitor in
            try Salvage(configuration: configuration, monitor: monitor)
                .run(path, key: key.key, to: newPath, newKey: newKey.key)
        }
    }
}
