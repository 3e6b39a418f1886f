extension Store {
    // MARK: Plaintext to store

    /// Copies a plaintext SQLite database into a new store.
    ///
    /// Everything is copied: tables with their row ids, indexes, triggers, views, virtual tables
    /// with their data, `user_version`, `application_id`, `auto_vacuum` and the encoding. The copy
    /// is compared with the source row by row, every page is authenticated and the structure
    /// checked before it appears at `newPath`; until then nothing is there. The source is not
    /// changed, except that SQLite rolls back a hot journal, as it does for any reader. The source
    /// stays plaintext: delete it when you have opened the copy.
    ///
    /// - Parameters:
    ///   - path: The plaintext database. During the copy others may read it, and in WAL mode write
    ///     it.
    ///   - newPath: The path of the new store, at which there is nothing yet.
    ///   - key: The key of the new store. Never empty.
    ///   - configuration: Its `profile` is that of the new store, the engine's default if `nil`.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: The report of the checked copy.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound`; `.notAStore` if the source is not a
    ///   plaintext database; `.damaged` if its structure is not sound; `.unsupported` naming what
    ///   cannot be copied; `.needsNewerEngine`, `.truncated`, `.busy`, `.full`, `.io`; `.misuse`
    ///   for an empty key.
    /// - Complexity: O(*bytes*) time; memory for the largest index.
    @discardableResult
    public static func encrypt(
        plaintextAt path: String, to newPath: String, key: borrowing StoreKey,
        configuration: Configuration = .init(), progress: ((CopyProgress) -> Void)? = nil
    ) throws -> CopyReport {
        let monitor = CopyMonitor(progress: progress)
        return try Conversion(configuration: configuration, monitor: monitor)
            .encrypt(plaintextAt: path, to: newPath, key: key)
    }

    /// Copies a plaintext SQLite database into a new store, off the cooperative pool.
    ///
    /// - Parameters:
    ///   - path: The plaintext database.
    ///   - newPath: The path of the new store, at which there is nothing yet.
    ///   - key: The key of the new store. Never empty.
    ///   - configuration: Its `profile` is that of the new store, the engine's default if `nil`.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: The report of the checked copy.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled, and
    ///   then there is nothing at `newPath`.
    @discardableResult
    public static func encrypt(
        plaintextAt path: String, to newPath: String, key: borrowing StoreKey,
        configuration: Configuration = .init(),
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> CopyReport {
        let key = KeyBox(key.copy())
        return try await cancellable(progress) { monitor in
            try Conversion(configuration: configuration, monitor: monitor)
                .encrypt(plaintextAt: path, to: newPath, key: key.key)
        }
    }

    // MARK: Other formats to store

    /// Copies an encrypted database of another format into a new store in the current format.
    ///
    /// Reads the formats of SQLCipher 1, 2 and 3, with pages of any size, and that of SQLCipher 4
    /// if the engine is SQLCipher 4. Copies and checks as
    /// `encrypt(plaintextAt:to:key:configuration:progress:)` does. Never changes the source.
    /// Files of SQLCipher 1 have no MAC, so the check covers only their structure, not each value.
    ///
    /// - Parameters:
    ///   - path: The file to read. During the copy other connections may read it, and in WAL mode
    ///     write it.
    ///   - key: The key of that file.
    ///   - newPath: The path of the new store. No file may exist there.
    ///   - newKey: The key of the new store; `nil` for the same key.
    ///   - configuration: Its `profile` is that of the new store, the engine's default if `nil`.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: The report of the checked copy.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound`; `.wrongKey`, `.notEncrypted`,
    ///   `.notAStore`, `.truncated`, `.needsNewerEngine` for the source; `.damaged` with page
    ///   numbers where they are known; `.unsupported` naming what cannot be copied; `.busy`,
    ///   `.full`, `.io`; `.misuse` for an empty key.
    /// - Complexity: O(*bytes*) time; memory for the largest index.
    @discardableResult
    public static func upgrade(
        from path: String, key: borrowing StoreKey, to newPath: String,
        newKey: borrowing StoreKey? = nil, configuration: Configuration = .init(),
        progress: ((CopyProgress) -> Void)? = nil
    ) throws -> CopyReport {
        let newKey = newKey.copy() ?? key.copy()
        let monitor = CopyMonitor(progress: progress)
        return try Conversion(configuration: configuration, monitor: monitor)
            .upgrade(from: path, key: key, to: newPath, newKey: newKey)
    }

    /// Copies an encrypted database of another format into a new store in the current format, off
    /// the cooperative pool.
    ///
    /// - Parameters:
    ///   - path: The file to read.
    ///   - key: The key of that file.
    ///   - newPath: The path of the new store, at which there is nothing yet.
    ///   - newKey: The key of the new store; `nil` for the same key.
    ///   - configuration: Its `profile` is that of the new store, the engine's default if `nil`.
    ///   - progress: Called on the working thread, about once for every 256 rows or pages.
    /// - Returns: The report of the checked copy.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled, and
    ///   then there is nothing at `newPath`.
    @discardableResult
    public static func upgrade(
        from path: String, key: borrowing StoreKey, to newPath: String,
        newKey: borrowing StoreKey? = nil, configuration: Configuration = .init(),
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> CopyReport {
        let newKey = KeyBox(newKey.copy() ?? key.copy())
        let key = KeyBox(key.copy())
        return try await cancellable(progress) { monitor in
            try Conversion(configuration: configuration, monitor: monitor)
                .upgrade(from: path, key: key.key, to: newPath, newKey: newKey.key)
        }
    }

    // MARK: Store to plaintext

    /// Copies the store into a new plaintext SQLite database.
    ///
    /// - Warning: Anyone who can read that file, or the disk after it was deleted, can read all of
    ///   the store. Write it to a place that you would trust with the key.
    ///
    /// One snapshot is copied; reads, and in WAL mode writes, go on during the copy. The copy is
    /// compared with the store row by row and its structure checked before it appears at `newPath`.
    /// The store stays as it is.
    ///
    /// - Parameters:
    ///   - newPath: The path of the new file, at which there is nothing yet.
    ///   - progress: Called on the working thread, about once for every 256 rows.
    /// - Returns: The report of the checked copy; its `profile` is `nil`.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound` for a missing folder; `.damaged` with
    ///   page numbers where they are known; `.unsupported` naming what cannot be copied; `.busy`,
    ///   `.full`, `.io`, `.closed`; `.misuse` inside a body.
    /// - Complexity: O(*bytes*) time; memory for the largest index.
    @discardableResult
    public func decrypt(
        to newPath: String, progress: ((CopyProgress) -> Void)? = nil
    ) throws -> CopyReport {
        let monitor = CopyMonitor(progress: progress)
        return try Conversion(configuration: core.configuration, monitor: monitor)
            .decrypt(core, to: newPath)
    }

    /// Copies the store into a new plaintext SQLite database, off the cooperative pool.
    ///
    /// - Warning: Anyone who can read that file, or the disk after it was deleted, can read all of
    ///   the store. Write it to a place that you would trust with the key.
    /// - Parameters:
    ///   - newPath: The path of the new file, at which there is nothing yet.
    ///   - progress: Called on the working thread, about once for every 256 rows.
    /// - Returns: The report of the checked copy; its `profile` is `nil`.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled, and
    ///   then there is nothing at `newPath`.
    @discardableResult
    public func decrypt(
        to newPath: String, progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> CopyReport {
        try await Self.cancellable(progress) { [core] monitor in
            try Conversion(configuration: core.configuration, monitor: monitor)
                .decrypt(core, to: newPath)
        }
    }

    // MARK: Inside

    /// Runs a copy on a thread that may block. The task's cancellation stops it while it waits for
    /// the store, and at the next progress report: one is made every `CopyMonitor.interval` rows or
    /// pages.
    static func cancellable<Report: Sendable>(
        _ progress: (@Sendable (CopyProgress) -> Void)?,
        _ work: @escaping @Sendable (CopyMonitor) throws -> Report
    ) async throws -> Report {
        try await cancellableOffPool { cancellation in
            try work(CopyMonitor(progress: progress, cancellation: cancellation))
        }
    }
}
