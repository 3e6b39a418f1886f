import CSQLCipher

/// Keys, proves and configures a freshly opened handle: every connection passes here.
///
/// The order matters: open, key, cipher settings, then anything else. A cipher setting before the
/// key is ignored, and `journal_mode` before the key writes a plaintext header.
struct PhysicalOpen {
    enum Role {
        /// Reads and writes; sets the journal mode.
        case writer
        /// Reads alongside a writer of the same process; `query_only`.
        case reader
        /// Opened for reading only.
        case readOnly
        /// Only read, and left as it is: `query_only`, in its own journal mode. Opened for writing
        /// if the system allows it, because only then a hot journal is rolled back.
        case source
        /// The only connection to a database that has no file: no journal mode, nothing on disk.
        case privateDatabase

        var flags: Int32 {
            switch self {
            case .readOnly: SQLITE_OPEN_READONLY
            case .privateDatabase: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .writer, .reader, .source: SQLITE_OPEN_READWRITE
            }
        }
    }

    let file: FileLocation
    let profile: CipherProfile
    let configuration: Configuration
    let role: Role
    let cacheByteCount: Int

    /// Opens the file with a key, checks that the key fits by reading the schema, and configures
    /// the handle.
    ///
    /// - Throws: `.wrongKey` if the key does not fit page 1; `.truncated` if the file is shorter
    ///   than page 1 says; `.damaged` if the schema cannot be read; `.readOnly` if a writer may not
    ///   write; `.busy`, `.io`; `StoreError.replaced` if the path leads to another file by now.
    func open(key: borrowing RawKey) throws(StoreError) -> Handle {
        let handle = try Handle(path: file.path, flags: role.flags, vfs: configuration.vfs)
        return try prepared(handle, key: key)
    }

    /// Sets the key, reads the schema and configures, as `open(key:)`, on a handle that is open but
    /// has seen no key.
    ///
    /// - Throws: As `open(key:)`. The handle stays open.
    func prepare(_ handle: Handle, key: borrowing RawKey) throws(StoreError) {
        if role != .privateDatabase, handle.rest == nil {
            try handle.lockNamedFile(file, patience: configuration.busyTimeout)
        }
        try unlock(handle, key: key)
        try protect(handle)
        try prove(handle, key: key)
        try configure(handle)
        if role == .writer { try ZeroPageCheck.followJournalMode(of: handle) }
    }

    /// Sets the key and the cipher settings of the profile on a handle that has seen no key. Reads
    /// no page, so a wrong key is not an error here.
    ///
    /// The key comes with its salt, so the engine derives nothing in `kdf_iter` rounds: they stay
    /// as they are.
    ///
    /// - Throws: The engine's error if it refuses the key or a setting.
    func unlock(_ handle: Handle, key: borrowing RawKey) throws(StoreError) {
        let timeout = configuration.busyTimeout.milliseconds
        sqlite3_busy_timeout(handle.db, Int32(clamping: timeout))
        let code = key.withKeyText { text in
            sqlite3_key_v2(handle.db, "main", text.baseAddress, Int32(text.count))
        }
        guard code == SQLITE_OK else { throw handle.error(code) }
        try handle.run("PRAGMA cipher_page_size = \(profile.pageByteCount)")
        // Settings of one connection on both engines: the defaults of other connections do not
        // change.
        switch profile.pageMAC {
        case .none: try handle.run("PRAGMA cipher_use_hmac = OFF")
        case .bigEndian: try handle.run("PRAGMA cipher_hmac_pgno = be")
        case .littleEndian: break
        }
        guard try Engine.capabilities.cipherMajorVersion >= 4 else { return }
        let hash = profile.hash == .sha512 ? "SHA512" : "SHA1"
        try handle.run("PRAGMA cipher_hmac_algorithm = HMAC_\(hash)")
        // The KDF matters for raw keys too: it derives the key of the MAC.
        try handle.run("PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_\(hash)")
        // SQLCipher 4 writes a block of errors to stderr for every wrong key.
        try handle.run("PRAGMA cipher_log_level = \(Engine.cipherLogLevel.rawValue)")
    }

    /// Reads the schema: a wrong key shows at the first use of a page.
    ///
    /// - Throws: `.wrongKey`; `.truncated` if the file is shorter than page 1 says; `.damaged`,
    ///   with the pages, if the schema cannot be read; `.busy`.
    private func prove(_ handle: Handle, key: borrowing RawKey) throws(StoreError) {
        do throws(StoreError) {
            if role != .privateDatabase { try ZeroPageCheck.install(on: handle) }
            try handle.loadSchema { () throws(StoreError) in
                // The read lock has opened the WAL.
                if role != .privateDatabase { try ZeroPageCheck.install(on: handle) }
            }
            if role != .privateDatabase {
                try ZeroPageCheck.removeIfAutoVacuum(on: handle)
                if let cut = try cutInsidePage(handle, key: key) { throw cut }
            }
        } catch  where error.code == .damaged || error.code == .sql {
            // A page whose MAC is wrong fails with SQLITE_ERROR, and this SQL is right.
            if let truncation = try truncation(handle, key: key) { throw truncation }
            throw try damage(handle, key: key, cause: error)
        }
    }

    /// The `.damaged` error for a schema that cannot be read although the key fits page 1. It has
    /// the numbers of at most 16 damaged pages, counted from 1; none if the profile has no MAC.
    private func damage(
        _ handle: Handle, key: borrowing RawKey, cause: StoreError
    ) throws(StoreError) -> StoreError {
        var damaged: [Int] = []
        if profile.pageMAC != .none {
            damaged = try RawPages(handle, key: key, profile: profile).damaged(maximumCount: 16)
        }
        return StoreError(
            .damaged, "the key is right, but the schema of \(file.path) cannot be read",
            hint: "Restore the file from a backup.", pages: damaged,
            resultCode: cause.resultCode, cause: cause)
    }

    /// `.truncated` if the file ends inside its last page, which the engine takes for a whole one
    /// until it reads it; otherwise `nil`.
    ///
    /// A WAL or journal may hold the rest. The size is compared twice, because a writer that comes
    /// and goes meanwhile extends the file.
    private func cutInsidePage(
        _ handle: Handle, key: borrowing RawKey
    ) throws(StoreError) -> StoreError? {
        let byteCount = try handle.rawByteCount()
        guard !byteCount.isMultiple(of: profile.pageByteCount), !file.hasPendingChanges,
            let truncation = try truncation(handle, key: key),
            try handle.rawByteCount() == byteCount
        else { return nil }
        return truncation
    }

    /// `.truncated` if the file is shorter than the number of pages in its header; `nil` if not, or
    /// if page 1 does not decrypt to a header.
    private func truncation(
        _ handle: Handle, key: borrowing RawKey
    ) throws(StoreError) -> StoreError? {
        let byteCount = try handle.rawByteCount()
        guard let page = try handle.rawBytes(at: 0, count: profile.pageByteCount) else {
            return nil
        }
        let pageCount = page.withUnsafeBytes { bytes in
            FirstPage(decrypting: bytes, key: key, profile: profile)?.pageCount
        }
        guard let pageCount, pageCount * profile.pageByteCount > byteCount else { return nil }
        return StoreError(
            .truncated,
            "\(file.path) has \(byteCount) bytes, but its first page says "
                + "\(pageCount) pages of \(profile.pageByteCount) bytes",
            hint: "The end is missing: restore the file from a backup.")
    }

    /// Gives the handle everything that takes no page of the file to set.
    ///
    /// Comes before the first statement that the handle keeps. SQLite compiles each statement again
    /// after a change of the authorizer, a function, or a flag such as `query_only`.
    private func protect(_ handle: Handle) throws(StoreError) {
        // Sorting and temporary tables stay in memory: on disk they would be plaintext.
        try handle.run("PRAGMA temp_store = MEMORY")
        let code = coffer_set_option(handle.db, SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        guard code == SQLITE_OK else { throw handle.error(code) }
        let isLater = role == .reader && configuration.tokenizerModules.isEmpty
        try HostileDefence.install(
            on: handle,
            tokenizerModules: isLater
                ? nil : [HostileDefence.tokenizerModule] + configuration.tokenizerModules)
        try JSONFunction.install(on: handle)
        if role != .writer, role != .privateDatabase { try handle.run("PRAGMA query_only = ON") }
        handle.authorizer.install(on: handle.db)
    }

    /// Sets what belongs to a file that was proven to open: its cache, its journal, its syncs.
    private func configure(_ handle: Handle) throws(StoreError) {
        try handle.setCacheByteCount(cacheByteCount)
        // Truncates a WAL that grew during a long read once it restarts; SQLite would keep its
        // size.
        if role == .writer {
            try handle.run("PRAGMA journal_size_limit = \(configuration.maximumWALByteCount)")
        }
        if role == .writer || role == .reader { try requireWritable(handle) }
        if role == .writer { try JournalModeChange(handle: handle, file: file).set(configuration) }
        try handle.run("PRAGMA synchronous = \(try synchronous(handle))")
    }

    /// The value of `PRAGMA synchronous` for the configured durability: `NORMAL` or `FULL` with a
    /// WAL, `EXTRA` with a rollback journal. Throws errors of reading the journal mode.
    ///
    /// SQLite deletes a rollback journal to commit, and syncs the folder then only with EXTRA.
    /// Otherwise a power loss brings the journal back, and it undoes an acknowledged commit. It
    /// also damages a file that the commit made shorter, because the journal has no copy of the
    /// pages that were cut off. So it is EXTRA whatever the durability.
    /// "EXTRA provides additional durability if the commit is followed closely by a power loss":
    /// <https://www.sqlite.org/pragma.html#pragma_synchronous>.
    private func synchronous(_ handle: Handle) throws(StoreError) -> String {
        guard try isWAL(handle) else { return "EXTRA" }
        return configuration.durability == .power ? "FULL" : "NORMAL"
    }

    /// Whether the file has a WAL. Throws errors of reading the journal mode.
    ///
    /// A writer has just set the configured mode, or found it. Nobody can leave WAL alongside the
    /// writer of a reader, because that takes an exclusive lock.
    private func isWAL(_ handle: Handle) throws(StoreError) -> Bool {
        guard role == .writer || role == .reader, configuration.journalMode != .existing else {
            return try handle.journalMode() == .wal
        }
        return configuration.journalMode == .wal
    }

    /// Refuses a handle that SQLite has opened for reading only, which it does silently if it may
    /// not write the file.
    ///
    /// - Throws: `.readOnly` for such a handle.
    private func requireWritable(_ handle: Handle) throws(StoreError) {
        guard sqlite3_db_readonly(handle.db, "main") == 1 else { return }
        throw file.notWritable
    }
}

extension Duration {
    /// Whole milliseconds, rounded down, never negative.
    var milliseconds: Int {
        let parts = components
        let (product, overflow) = Int(parts.seconds).multipliedReportingOverflow(by: 1000)
        guard !overflow else { return Int.max }
        return max(0, product + Int(parts.attoseconds / 1_000_000_000_000_000))
    }
}
