/// The result of `Store.restore`.
public struct RestoreReport: Sendable, Equatable {
    /// The content of the restored store, which was checked.
    public let copy: CopyReport
    /// The path of the store that was replaced, with its WAL next to it; `nil` if there was none.
    public let oldPath: String?
    /// Whether the store keeps the keyring that it had, because it has the root of the backup. Its
    /// slots are the newer ones: a credential that was removed after the backup stays out.
    public let keepsKeyring: Bool
}

extension Store {
    /// Puts a copy of a backup in the place of a store, and keeps the store under another name.
    ///
    /// ```swift
    /// let report = try Store.restore(from: "notes-2026-11.db", key: key, to: "notes.db")
    /// print(report.oldPath ?? "there was no store")  // …/notes.db.old-1
    /// ```
    ///
    /// The backup is verified first, then copied page by page, and every page of the copy is
    /// authenticated. Only then anything is renamed. The store that is replaced may be damaged, or
    /// no store at all: it is not read. It keeps its content, WAL and key under its new name,
    /// `notes.db.old-1`. The restored store has the key of the backup, and the permissions of the
    /// store that was replaced.
    ///
    /// If the process is killed, the store is the old one or the new one. In one moment it is the
    /// old one without the commits in its WAL; it is whole under its new name, and another run
    /// finishes the work.
    ///
    /// - Warning: Nobody may have the store open. A connection of another process is noticed if it
    ///   uses a WAL or is reading or writing. One that is idle and uses no WAL is not: what it
    ///   writes later is lost, or damages the restored store. A connection of Coffer that opens
    ///   meanwhile gets the restored store. Other programs do not look, and may work on the old
    ///   file with the WAL of the new one.
    /// - Parameters:
    ///   - backup: The path of a store, which is not changed. Others may use it.
    ///   - key: The key of the backup.
    ///   - path: The path of the store to replace, or at which there is nothing yet.
    ///   - configuration: Used for the backup and the copy.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The report of the checked copy, and where the old store is.
    /// - Throws: `StoreError` `.damaged` if the backup is; `.busy` or `.alreadyOpen` if somebody
    ///   has the store open; `.readOnly` if this user may not write it, because an open connection
    ///   would then go unnoticed; `.wrongKey`, `.notAStore` and others for the backup; `.full`,
    ///   `.io`; `.misuse` if both paths lead to one file. After an error the store is as it was. If
    ///   a file could not even be moved back, the message says where it is.
    /// - Complexity: O(*pages*) time, three passes; O(1) memory. It needs the backup's size of free
    ///   space.
    @discardableResult
    public static func restore(
        from backup: String, key: borrowing StoreKey, to path: String,
        configuration: Configuration = .init(), progress: ((CopyProgress) -> Void)? = nil
    ) throws -> RestoreReport {
        let monitor = CopyMonitor(progress: progress)
        return try Restoration(configuration: configuration, monitor: monitor)
            .run(from: backup, key: key, to: path)
    }

    /// Puts a copy of a backup in the place of a store, and keeps the store under another name, off
    /// the cooperative pool.
    ///
    /// - Parameters:
    ///   - backup: The path of a store, which is not changed.
    ///   - key: The key of the backup.
    ///   - path: The path of the store to replace, or at which there is nothing yet.
    ///   - configuration: Used for the backup and the copy.
    ///   - progress: Called on the working thread, about once for every 256 pages.
    /// - Returns: The report of the checked copy, and where the old store is.
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled before
    ///   anything was renamed, and then the store is as it was.
    @discardableResult
    public static func restore(
        from backup: String, key: borrowing StoreKey, to path: String,
        configuration: Configuration = .init(),
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> RestoreReport {
        let key = KeyBox(key.copy())
        return try await cancellable(progress) { monitor in
            try Restoration(configuration: configuration, monitor: monitor)
                .run(from: backup, key: key.key, to: path)
        }
    }
}
