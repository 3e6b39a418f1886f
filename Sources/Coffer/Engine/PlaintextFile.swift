import CSQLCipher

/// A SQLite database without encryption: where a store's content comes from or goes to.
enum PlaintextFile {
    /// Opens an existing one, to be read and left as it is.
    ///
    /// - Throws: `.notFound`, `.truncated`; `.notAStore` if it is encrypted or no database;
    ///   `.damaged`, `.busy`, `.io`.
    static func openSource(
        _ file: FileLocation, _ configuration: Configuration
    ) throws(StoreError) -> Handle {
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        let handle = try Handle(path: file.path, flags: file.sourceRole.flags)
        guard try handle.rawByteCount() > 0 else {
            throw StoreError(.truncated, "\(file.path) is empty", hint: "Restore the file.")
        }
        guard let start = try handle.rawBytes(at: 0, count: 16), FirstBytes.isPlaintext(start)
        else {
            throw StoreError(
                .notAStore, "\(file.path) is not a plaintext SQLite database",
                hint: "If it is an encrypted one, use Store.migrate, or open it with its key.")
        }
        do throws(StoreError) {
            try configure(handle, configuration)
            try handle.run("PRAGMA query_only = ON")
        } catch  where error.code == .wrongKey {
            throw StoreError(
                .damaged, "\(file.path) begins like a SQLite database and is none",
                hint: "Restore the file from a backup.", cause: error)
        }
        return handle
    }

    /// The settings that concern reading, then a read of the schema.
    static func configure(_ handle: Handle, _ configuration: Configuration) throws(StoreError) {
        sqlite3_busy_timeout(handle.db, Int32(clamping: configuration.busyTimeout.milliseconds))
        try handle.run("PRAGMA temp_store = MEMORY")
        try handle.run("PRAGMA cache_size = -\(CopyTarget.cacheByteCount >> 10)")
        _ = coffer_set_option(handle.db, Int32(coffer_option_load_extension), 0)
        _ = coffer_set_option(handle.db, Int32(coffer_option_trusted_schema), 0)
        _ = try handle.firstText("SELECT count(*) FROM sqlite_master")
    }
}
