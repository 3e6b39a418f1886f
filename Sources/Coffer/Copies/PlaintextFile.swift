import CSQLCipher

/// A SQLite database without encryption: the source or target of a copy.
enum PlaintextFile {
    /// Opens an existing one, to be read and left as it is.
    ///
    /// - Throws: `.notFound`, `.truncated`; `.notAStore` if it is encrypted or not a database,
    ///   `.unsupported` if it is encrypted behind a plaintext header; `.damaged`, `.busy`, `.io`.
    static func openSource(
        _ file: FileLocation, _ configuration: Configuration
    ) throws(StoreError) -> Handle {
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        let handle = try Handle(
            path: file.path, flags: file.sourceRole.flags, vfs: configuration.vfs)
        guard try handle.rawByteCount() > 0 else {
            throw StoreError(.truncated, "\(file.path) is empty", hint: "Restore the file.")
        }
        if let start = try handle.rawBytes(at: 0, count: FirstBytes.count),
            FirstBytes.hasPlaintextHeader(start)
        {
            throw FirstBytes.plaintextHeader(of: file)
        }
        guard let start = try handle.rawBytes(at: 0, count: 16), FirstBytes.isPlaintext(start)
        else {
            throw StoreError(
                .notAStore, "\(file.path) is not a plaintext SQLite database",
                hint: "If it is an encrypted one, use Store.upgrade, or open it with its key.")
        }
        if let header = try handle.rawBytes(at: 0, count: 100) {
            try requireWhole(file, byteCount: try handle.rawByteCount(), header: header)
        }
        do throws(StoreError) {
            try configure(handle, configuration)
            try handle.run("PRAGMA query_only = ON")
        } catch  where error.code == .wrongKey {
            throw StoreError(
                .damaged, "\(file.path) begins like a SQLite database but is not one",
                hint: "Restore the file from a backup.", cause: error)
        }
        return handle
    }

    /// Applies the settings that concern reading, then reads the schema.
    static func configure(_ handle: Handle, _ configuration: Configuration) throws(StoreError) {
        sqlite3_busy_timeout(handle.db, Int32(clamping: configuration.busyTimeout.milliseconds))
        try handle.run("PRAGMA temp_store = MEMORY")
        try handle.setCacheByteCount(CopyTarget.cacheByteCount)
        _ = coffer_set_option(handle.db, Int32(coffer_option_load_extension), 0)
        _ = coffer_set_option(handle.db, Int32(coffer_option_trusted_schema), 0)
        try JSONFunction.install(on: handle)
        _ = try handle.firstText("SELECT count(*) FROM sqlite_master")
    }

    /// Refuses a file that is shorter than its header says.
    ///
    /// SQLite fills a missing part of the last page with zeros, and not even `integrity_check`
    /// reports it. With a WAL or journal next to it, the file may lag behind for good reason.
    ///
    /// - Throws: `.truncated`.
    private static func requireWhole(
        _ file: FileLocation, byteCount: Int, header: [UInt8]
    ) throws(StoreError) {
        guard !file.hasPendingChanges else { return }
        func integer(_ offset: Int, _ count: Int) -> Int {
            header[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
        }
        // "or the value 1 representing a page size of 65536"; the page count is valid if "the
        // 4-byte change counter at offset 24 exactly matches the 4-byte version-valid-for number at
        // offset 92": https://www.sqlite.org/fileformat2.html#the_database_header
        let size = integer(16, 2) == 1 ? 65536 : integer(16, 2)
        let pageCount = integer(24, 4) == integer(92, 4) ? integer(28, 4) : 0
        guard size > 0, byteCount % size == 0, byteCount / size >= pageCount else {
            throw StoreError(
                .truncated,
                "\(file.path) has \(byteCount) bytes, but its first page says \(pageCount) "
                    + "pages of \(size) bytes",
                hint: "The end is missing: restore the file from a backup.")
        }
    }
}
