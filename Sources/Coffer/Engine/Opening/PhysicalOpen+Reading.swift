import CSQLCipher

/// Opens a file only for reading: its content stays as it is, no new file remains next to it, and
/// nobody is locked out.
///
/// | Next to the file | it is opened |
/// |---|---|
/// | nothing | for writing: the last connection that may write removes what SQLite made |
/// | a journal | for writing, since a hot one has to be played back first |
/// | a non-empty WAL | for reading: a writing connection would move the WAL into the file |
///
/// In each case `query_only` prevents changes. A WAL or its index sometimes cannot be created (the
/// disk is full, or the folder is not writable), or would lock the owner out. A file without
/// pending changes is then read at rest (`FileAtRest`).
extension PhysicalOpen {
    /// Prepares a handle that has seen no key, and returns it. For reading only, may instead return
    /// another handle, which reads the file at rest without locks.
    ///
    /// - Throws: As `prepare`; `.readOnly` if a writer may not write, or a reader finds a WAL or
    ///   journal that this user cannot or must not handle; as `openAtRest`.
    func prepared(_ handle: Handle, key: borrowing RawKey) throws(StoreError) -> Handle {
        guard role == .source || role == .readOnly else {
            do throws(StoreError) {
                try prepare(handle, key: key)
            } catch  where error.isAboutWriting {
                if let refusal = file.companionRefusal(error) { throw refusal }
                guard file.isWritable else { throw file.notWritable.with(cause: error) }
                throw error
            }
            return handle
        }
        if file.isWithoutWALOrIndex, !file.isWritable || file.lockedOutOwner != nil,
            try journalMode(handle, key: key) == .wal
        {
            // Nobody could remove files created next to a file that may only be read.
            if let refusal = refusal(isLockOut: file.isWritable, cause: nil) { throw refusal }
            return try openAtRest(in: .wal, key: key)
        }
        do throws(StoreError) {
            try prepare(handle, key: key)
            return handle
        } catch  where error.isAboutWriting {
            if let refusal = refusal(isLockOut: false, cause: error) {
                throw error.code == .full ? error : refusal
            }
            return try openAtRest(in: journalMode(handle, key: key), key: key)
        }
    }

    /// Opens the file without locks, once it has been unchanged for more than two seconds. Every
    /// later read throws `.busy` if the file has changed since then.
    ///
    /// - Throws: `.busy` if the file is changed; `.readOnly` if a WAL or journal appears in the
    ///   meantime; as `prepare`.
    func openAtRest(
        in journalMode: Configuration.JournalMode, key: borrowing RawKey
    ) throws(StoreError) -> Handle {
        let rest = try FileAtRest(
            file, journalMode: journalMode, patience: configuration.busyTimeout)
        // A WAL or journal may have appeared during the wait.
        if let refusal = refusal(isLockOut: false, cause: nil) { throw refusal }
        let handle = try Handle(
            path: rest.uri, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs: configuration.vfs)
        handle.rest = rest
        try prepare(handle, key: key)
        if let failure = rest.failure() { throw failure }
        return handle
    }

    /// The mode in the header, `.wal` or `.delete`. If the key does not decrypt the header, it is
    /// `.wal` if a non-empty WAL exists.
    private func journalMode(
        _ handle: Handle, key: borrowing RawKey
    ) throws(StoreError) -> Configuration.JournalMode {
        let page = try handle.rawBytes(at: 0, count: profile.pageByteCount) ?? []
        let header = page.withUnsafeBytes {
            FirstPage(decrypting: $0, key: key, profile: profile)
        }
        return header?.isWAL ?? (file.companionByteCount("-wal") > 0) ? .wal : .delete
    }

    /// `.readOnly` if a journal to play back or a non-empty WAL is next to the file, so that the
    /// file alone is incomplete; otherwise `nil`.
    ///
    /// - Parameters:
    ///   - isLockOut: Whether the message says that a WAL index would lock out the file's owner.
    ///   - cause: The error that the result gets as its cause.
    private func refusal(isLockOut: Bool, cause: StoreError?) -> StoreError? {
        let remedy =
            file.otherOwner.map { "Run it as \($0), who owns the file" }
            ?? "Allow writing to the file and its folder"
        if file.hasJournal {
            return StoreError(
                .readOnly,
                "a crash has left a journal next to \(file.path), which must be played back before "
                    + "anything is read, and this user cannot write there",
                hint: "\(remedy): any verb that reads plays it back.",
                resultCode: cause?.resultCode, cause: cause)
        }
        let byteCount = file.companionByteCount("-wal")
        guard byteCount > 0 else { return nil }
        let reason =
            isLockOut
            ? "the index needed to read it would lock out the owner of the file"
            : "this user can neither use nor make the index needed to read it"
        return StoreError(
            .readOnly, "\(file.path) has a WAL of \(byteCount) bytes, and \(reason)",
            hint: "\(remedy), or read a copy of the file and its WAL, made while nobody uses them.",
            resultCode: cause?.resultCode, cause: cause)
    }
}

extension FileLocation {
    /// How to open the file so that reading leaves it as it is: see `PhysicalOpen.prepared`.
    var sourceRole: PhysicalOpen.Role {
        // A journal is deleted after its playback: otherwise it would be hot again.
        guard companionByteCount("-journal") == 0 else { return isWritable ? .source : .readOnly }
        return companionByteCount("-wal") > 0 ? .readOnly : .source
    }

    /// Whether a journal exists that SQLite may have to play back. SQLite ignores one without the
    /// magic: `readJournalHdr` in `pager.c`. A journal that this user cannot read counts.
    var hasJournal: Bool {
        let magic = RollbackJournal.magic
        guard companionByteCount("-journal") >= magic.count else { return false }
        return companionStart("-journal", count: magic.count).map { $0 == magic } ?? true
    }

    fileprivate var isWithoutWALOrIndex: Bool {
        ["-wal", "-shm"].contains { suffix in (try? Self.information(path + suffix)) == nil }
    }
}

extension StoreError {
    /// Whether the engine could not create or change a file that it had to.
    fileprivate var isAboutWriting: Bool {
        guard !isAboutReplacement else { return false }
        let code = (resultCode ?? 0) & 0xff
        return [SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM].contains(code) || self.code == .full
    }
}
