import CSQLCipher

/// Opens a file that is only read: its content stays as it is, nothing stays behind beside it, and
/// nobody is locked out.
///
/// | Beside the file | it is opened |
/// |---|---|
/// | nothing | for writing: the last connection that may write removes what SQLite made |
/// | a journal | for writing, since a hot one has to be played back first |
/// | a log with content | for reading: who may write would move the log into the file |
///
/// In each case `query_only` keeps it from being changed. Where a log and its index cannot be made
/// (the disk is full, or the folder may not be written), or would lock the owner out, a file
/// without either is read at rest (`FileAtRest`).
extension PhysicalOpen {
    /// Keys, proves and configures a handle that has seen no key, or opens another in its place.
    ///
    /// - Throws: As `prepare`; `.readOnly` if a log or journal is pending that this user cannot or
    ///   must not deal with.
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
        if file.isWithoutLogOrIndex, !file.isWritable || file.lockedOutOwner != nil,
            try journalMode(handle, key: key) == .wal
        {
            // Nobody could remove what would be made beside a file that may only be read.
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

    /// - Throws: `.busy` if the file is changed; `.readOnly` if a log or journal comes meanwhile;
    ///   as `prepare`.
    func openAtRest(
        in journalMode: Configuration.JournalMode, key: borrowing RawKey
    ) throws(StoreError) -> Handle {
        let rest = try FileAtRest(
            file, journalMode: journalMode, patience: configuration.busyTimeout)
        // Something may have come while it was waited for.
        if let refusal = refusal(isLockOut: false, cause: nil) { throw refusal }
        let handle = try Handle(
            path: rest.uri, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs: configuration.vfs)
        handle.rest = rest
        try prepare(handle, key: key)
        if let failure = rest.failure() { throw failure }
        return handle
    }

    /// The mode in the header; if another key opens that, the mode that a log beside it shows.
    private func journalMode(
        _ handle: Handle, key: borrowing RawKey
    ) throws(StoreError) -> Configuration.JournalMode {
        let page = try handle.rawBytes(at: 0, count: profile.pageByteCount) ?? []
        let header = page.withUnsafeBytes {
            FirstPage(decrypting: $0, key: key, profile: profile)
        }
        return header?.isWAL ?? (file.companionByteCount("-wal") > 0) ? .wal : .delete
    }

    /// Why the main file alone is not the whole truth, and this user cannot have the rest.
    private func refusal(isLockOut: Bool, cause: StoreError?) -> StoreError? {
        let remedy =
            file.otherOwner.map { "Run it as \($0), who owns the file" }
            ?? "Allow writing to the file and its folder"
        if file.hasJournal {
            return StoreError(
                .readOnly,
                "a crash has left a journal beside \(file.path), which must be played back before "
                    + "anything is read, and this user cannot write there",
                hint: "\(remedy): any verb that reads plays it back.",
                resultCode: cause?.resultCode, cause: cause)
        }
        let byteCount = file.companionByteCount("-wal")
        guard byteCount > 0 else { return nil }
        let reason =
            isLockOut
            ? "the index that reading it takes would lock out the owner of the file"
            : "this user can neither use nor make the index that reading it takes"
        return StoreError(
            .readOnly, "\(file.path) has a log of \(byteCount) bytes, and \(reason)",
            hint: "\(remedy), or read a copy of both, made while nobody uses them.",
            resultCode: cause?.resultCode, cause: cause)
    }
}

extension FileLocation {
    /// How to open the file so that reading leaves it as it is: see `PhysicalOpen.prepared`.
    var sourceRole: PhysicalOpen.Role {
        // A journal is deleted when it was played back: without that it would be hot again.
        guard companionByteCount("-journal") == 0 else { return isWritable ? .source : .readOnly }
        return companionByteCount("-wal") > 0 ? .readOnly : .source
    }

    /// Whether a journal stands beside the file that SQLite may have to play back. It takes one
    /// without the magic for no journal: `readJournalHdr` in `pager.c`. One that this user cannot
    /// read counts.
    var hasJournal: Bool {
        guard companionByteCount("-journal") >= 8 else { return false }
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        return companionStart("-journal", count: 8).map { $0 == magic } ?? true
    }

    fileprivate var isWithoutLogOrIndex: Bool {
        ["-wal", "-shm"].contains { suffix in (try? Self.information(path + suffix)) == nil }
    }
}

extension StoreError {
    /// Whether the engine could not make or change what it had to.
    fileprivate var isAboutWriting: Bool {
        let code = (resultCode ?? 0) & 0xff
        return [SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM].contains(code) || self.code == .full
    }
}
