import CSQLCipher

/// Changes the key of every page in place, and proves it.
///
/// `sqlite3_rekey_v2` returns success even when it did nothing: on a busy peer, a full disk, an I/O
/// error, a damaged page. The connection then holds the new key in memory, and the next write
/// mixes two keys in one file, which nobody can read again. Hence these steps:
///
/// 1. `synchronous = EXTRA`, whatever the configuration's durability. With NORMAL, a power loss can
///    undo a change that was reported, and the old key is valid again.
/// 2. `BEGIN EXCLUSIVE`, whose `SQLITE_BUSY` is real. The rekey commits that transaction.
/// 3. The rekey. Its result code means nothing and is ignored.
/// 4. Close the connection, whatever happened, without running anything else on it.
/// 5. Prove the change: a fresh connection must open with the new key, and one with the old key
///    must fail. If not, the old key must still open, and the error says why the change failed.
/// 6. Move the WAL into the main file, which has the old key until then (`RekeyedWAL`). A rotation
///    does that later, when writers go on already.
///
/// The salt is kept: when processes were killed during a change of key *and* salt, 35 to 56 of 60
/// files opened with neither key.
struct Rekey: ~Copyable {
    let file: FileLocation
    let profile: CipherProfile
    let configuration: Configuration
    let cacheByteCount: Int
    let keyring: KeyringPolicy

    /// The effect of a keyring next to the file on the change.
    enum KeyringPolicy {
        /// It prevents the change: no slot of it would open the store.
        case refuse
        /// It gets another name after the change.
        case abandon
        /// It stays, because the new key is one of its keys. The caller moves the WAL.
        case keep
    }

    /// The state after the attempt: an open connection, under the new key or the old one.
    struct Outcome {
        let state: OpenFile
        /// The report of the change, or the reason why the old key is still valid.
        let result: Result<RekeyReport, StoreError>
    }

    /// Changes the key of every page to `newKey`, and proves which key the file has afterwards.
    ///
    /// - Parameters:
    ///   - state: The connection to rekey, with no transaction open. Closed afterwards, unless this
    ///     call throws before any change.
    ///   - newKey: The key to change to.
    ///   - willClose: Called while the lock is held, to end the connection's statements.
    /// - Returns: A new connection: under the new key with a report, or under the old key with the
    ///   reason for the failure.
    /// - Throws: Before any change, with `state` still open: `.readOnly` for a file with several
    ///   names, `.misuse` for an empty key, the same key or another salt, `.busy` if another
    ///   connection or process holds the file, `.full` or `.io` if the journal or the WAL has no
    ///   room, `.damaged` for bytes behind the end of the database. After the attempt, with `state`
    ///   closed: `.damaged` if neither key opens the file, `.engine` if both do, or the error that
    ///   prevented the proof. Each comes with the key that is valid now.
    func run(
        _ state: OpenFile, to newKey: borrowing StoreKey, willClose: () -> Void
    ) throws(RekeyFailure) -> Outcome {
        let beginning = ContinuousClock.now
        let key = try prepare(state, for: newKey)
        willClose()
        let systemError = change(state.handle, to: key)
        state.handle.close()
        return try prove(
            new: key, of: state, systemError: systemError, since: beginning)
    }

    /// Refuses a change that cannot succeed, and begins an exclusive transaction on `state`.
    ///
    /// - Returns: The new key.
    /// - Throws: What `run` throws before any change; no transaction is then open.
    private func prepare(
        _ state: OpenFile, for newKey: borrowing StoreKey
    ) throws(RekeyFailure) -> RawKey {
        try RekeyFailure.wrapping { () throws(StoreError) in
            try file.requireOneName()
            if keyring == .refuse { try KeyringFile(of: file).requireAbsent() }
            let key = try Self.derive(newKey, from: state.key, profile: profile)
            try requireRoom(state.handle)
            try begin(state.handle, key: state.key)
            return key
        }
    }

    /// Refuses a change that cannot succeed, without a lock.
    ///
    /// - Throws: `.readOnly` for a file with several names; `.full`, `.io` without room; `.damaged`
    ///   for bytes behind the end of the database.
    func requirePossible(_ state: OpenFile) throws(StoreError) {
        try file.requireOneName()
        try requireRoom(state.handle)
        try requireNothingBehind(state.handle, key: state.key)
    }

    /// Bytes that the journal or the WAL grows to: every page with its frame header.
    static func neededByteCount(pageCount: Int, profile: CipherProfile) -> Int {
        WriteAheadLog.offset(ofFrame: pageCount, pageByteCount: profile.pageByteCount)
    }

    /// Refuses a change whose journal or WAL has no room. If there is none, it first tries to
    /// truncate the WAL by a checkpoint.
    ///
    /// - Throws: `.full` if the disk has no room; `.io` if the file would exceed the largest file
    ///   that this process may write.
    private func requireRoom(_ handle: Handle) throws(StoreError) {
        guard try lack(handle) != nil else { return }
        // Truncates the WAL, which makes its space free, unless another process reads it.
        _ = try? handle.checkpoint(.truncate)
        if let lack = try lack(handle) { throw lack }
    }

    /// The reason why the journal or the WAL cannot grow enough: `.full` for the disk, `.io` for
    /// the limit of this process. `nil` if it can, or if the file system does not report its free
    /// bytes. The change may append to an existing WAL, because the WAL does not restart while
    /// another process reads it.
    ///
    /// - Throws: Errors of reading the page count.
    private func lack(_ handle: Handle) throws(StoreError) -> StoreError? {
        let pageCount = try handle.firstInteger("PRAGMA page_count")
        let needed = Self.neededByteCount(pageCount: pageCount, profile: profile)
        let byteCount = needed + file.companionByteCount("-wal")
        if let limit = FileLocation.maximumWritableByteCount, limit < byteCount {
            return StoreError(
                .io,
                "changing the key of \(file.path) makes a file of \(byteCount) bytes, and this "
                    + "process may not write a file of more than \(limit)",
                hint: "Raise the limit (ulimit -f) and try again: nothing was changed.")
        }
        guard let free = file.freeByteCount(), free < needed else { return nil }
        return StoreError(
            .full,
            "changing the key needs \(needed) free bytes next to \(file.path), and there are "
                + "\(free)",
            hint: "Free some space and try again: nothing was changed.")
    }

    /// Begins an exclusive transaction whose commit a power loss cannot undo, by `synchronous =
    /// EXTRA`.
    ///
    /// - Throws: `.busy` if another connection or process holds the file, `.damaged` for bytes
    ///   behind the end of the database. Then no transaction is open, and `synchronous` is as
    ///   before.
    private func begin(_ handle: Handle, key: borrowing RawKey) throws(StoreError) {
        let synchronous = try handle.firstInteger("PRAGMA synchronous")
        // In WAL it is FULL, and without it FULL that also makes the end of the journal durable.
        try handle.run("PRAGMA synchronous = EXTRA")
        do throws(StoreError) {
            try handle.run(.beginExclusive)
            try requireNothingBehind(handle, key: key)
        } catch {
            if handle.isInTransaction { try? handle.run(.rollback) }
            try? handle.run("PRAGMA synchronous = \(synchronous)")
            throw error
        }
    }

    /// Refuses bytes behind the end of the database that are not pages under `key`. The engine
    /// would treat them as pages, which fail. With a WAL the file may be longer until a checkpoint
    /// truncates it; the engine then takes the page count from the WAL. So a file with frames in
    /// its WAL is not checked.
    ///
    /// - Throws: `.damaged` if there are such bytes.
    private func requireNothingBehind(
        _ handle: Handle, key: borrowing RawKey
    ) throws(StoreError) {
        guard file.companionByteCount("-wal") <= WriteAheadLog.headerByteCount,
            let pageCount = handle.databasePageCount
        else { return }
        let pages = RawPages(handle, key: key, profile: profile)
        let surplus = try pages.foreignByteCount(behind: pageCount)
        if surplus > 0 { throw Self.surplus(surplus, file) }
    }

    static func surplus(_ byteCount: Int, _ file: FileLocation) -> StoreError {
        StoreError(
            .damaged,
            "\(byteCount) bytes follow the end of the database in \(file.path), and SQLCipher "
                + "would treat them as pages: the key was not changed",
            hint: "Make a copy with backup, which leaves them out, and change the key of the copy.")
    }

    /// Derives the key that all pages will have, with the salt of the old key.
    ///
    /// - Throws: `.misuse` for an empty key or a raw key of a wrong size, for a key equal to the
    ///   old one, or for a key with another salt.
    static func derive(
        _ newKey: borrowing StoreKey, from old: borrowing RawKey, profile: CipherProfile
    ) throws(StoreError) -> RawKey {
        try newKey.check()
        let salt = old.salt
        if let other = newKey.salt, other != salt {
            throw StoreError(
                .misuse, "the new key carries a different salt than the file",
                hint: "Give only the 32 bytes of the key: a salt cannot change in place.")
        }
        let key = try KeyDerivation.rawKey(from: newKey, salt: salt, profile: profile)
        guard !key.isEqual(to: old) else {
            throw StoreError(.misuse, "the file has the new key already")
        }
        return key
    }

    /// Changes the key of every page, and commits the open transaction. SQLCipher's result code
    /// means nothing and is ignored.
    ///
    /// - Returns: The error number of the connection's last failed system call, or 0: the only
    ///   trace of a failure.
    private func change(_ handle: Handle, to key: borrowing RawKey) -> Int32 {
        key.withKeyText { text in
            _ = sqlite3_rekey_v2(handle.db, "main", text.baseAddress, Int32(text.count))
        }
        return sqlite3_system_errno(handle.db)
    }

    private func prove(
        new: consuming RawKey, of before: OpenFile, systemError: Int32,
        since beginning: ContinuousClock.Instant
    ) throws(RekeyFailure) -> Outcome {
        if let handle = try attempt(new) {
            guard try attempt(before.key) == nil else {
                throw RekeyFailure(
                    StoreError(.engine, "both keys open \(file.path)", hint: "Report this."),
                    .unproven)
            }
            let state = OpenFile(handle: handle, key: new, file: file, profile: profile)
            let wal = RekeyedWAL(open: state)
            var report =
                keyring == .keep
                ? wal.unmovedReport(since: beginning) : wal.report(since: beginning)
            if keyring == .abandon { report.abandon(KeyringFile(of: file)) }
            return Outcome(state: state, result: .success(report))
        }
        guard let handle = try attempt(before.key) else {
            throw RekeyFailure(
                StoreError(
                    .damaged, "neither the old nor the new key opens \(file.path)",
                    hint: "Restore the file from a backup, and report this."),
                .neither)
        }
        let failure: StoreError
        do throws(StoreError) {
            failure = try reason(handle, key: before.key, systemError: systemError)
        } catch {
            throw RekeyFailure(error)
        }
        let state = OpenFile(
            handle: handle, key: before.key.copy(), file: file, profile: profile,
            keyring: before.keyring)
        return Outcome(state: state, result: .failure(failure))
    }

    /// Opens a fresh connection to the file with this key.
    ///
    /// - Returns: `nil` if the file does not open with this key (`.wrongKey`).
    /// - Throws: Any other error of opening, as `.unproven`.
    private func attempt(_ key: borrowing RawKey) throws(RekeyFailure) -> Handle? {
        let physical = PhysicalOpen(
            file: file, profile: profile, configuration: configuration, role: .writer,
            cacheByteCount: cacheByteCount)
        do throws(StoreError) {
            return try physical.open(key: key)
        } catch  where error.code == .wrongKey {
            return nil
        } catch {
            throw RekeyFailure(
                StoreError(
                    error.code, "it is not proven which key the file has: \(error.message)",
                    hint: "Open the file again with the new key, and with the old one if that "
                        + "fails.",
                    cause: error),
                .unproven)
        }
    }

    // MARK: Why it failed

    private func reason(
        _ handle: Handle, key: borrowing RawKey, systemError: Int32
    ) throws(StoreError) -> StoreError {
        let byteCount = try handle.rawByteCount()
        let kept = "the key of \(file.path) was not changed and the old key still opens it"
        let pages = RawPages(handle, key: key, profile: profile)
        let damaged = try pages.damaged(
            maximumCount: 16, of: handle.databasePageCount ?? .max)
        if !damaged.isEmpty {
            return StoreError(
                .damaged, "\(kept): pages fail authentication",
                hint: "Restore the file from a backup.", pages: damaged)
        }
        if let free = file.freeByteCount(), free < byteCount {
            return StoreError(
                .full, "\(kept): it needs \(byteCount) free bytes, and there are \(free)",
                hint: "Free some space and try again.")
        }
        if systemError != 0 {
            return StoreError(
                .io, "\(kept): \(systemErrorText(systemError))",
                hint: "Correct that and try again.")
        }
        return StoreError(.io, "\(kept): the engine gave no reason", hint: "Try again.")
    }
}

/// A change of the key that failed, and the key that is valid now.
package struct RekeyFailure: Error {
    package enum Key {
        case old, new
        /// The result could not be proven.
        case unproven
        /// Neither key opens the file.
        case neither
    }

    package let error: StoreError
    package let key: Key

    init(_ error: StoreError, _ key: Key = .old) {
        self.error = error
        self.key = key
    }

    /// Runs `work`, which must not change the key of the file, and returns its result.
    ///
    /// - Throws: The error of `work`, with the old key as the valid one.
    static func wrapping<T: ~Copyable>(
        _ work: () throws(StoreError) -> T
    ) throws(RekeyFailure) -> T {
        do throws(StoreError) {
            return try work()
        } catch {
            throw RekeyFailure(error)
        }
    }
}

extension Connection {
    /// Changes the key of every page, in place.
    ///
    /// ```swift
    /// let report = try connection.rekey(to: .passphrase(text))
    /// if !report.isWholeFile { … }
    /// ```
    ///
    /// Success is proven before it is reported: a fresh connection opens with the new key, and the
    /// old key no longer opens. A crash leaves the old key or the new one, never a mixture. After
    /// the call has returned, a power loss does not restore the old key, whatever the
    /// configuration's durability.
    ///
    /// After a failure the connection is open under the old key, with every row. It is closed if
    /// the result could not be proven, or if neither key opens the file. It is also closed if the
    /// file could not be examined or set up again. The error says so.
    ///
    /// The connection is reopened, which ends its prepared statements and temporary tables.
    ///
    /// - Parameters:
    ///   - key: The new key. Must not be empty. The salt is kept.
    ///   - abandonsKeyring: Whether a keyring of the file gets another name, because its slots do
    ///     not open the file afterwards. `false` refuses a file with a keyring.
    /// - Returns: A report that says whether the main file without its WAL is also under the new
    ///   key. In WAL a read of another connection can delay that until it ends; see
    ///   ``RekeyReport``.
    /// - Throws: `StoreError` `.busy` if another connection or process holds the file; `.full` if
    ///   there is no room for the journal; `.damaged` if a page fails authentication or if bytes
    ///   are behind the end of the database; `.damaged` or `.engine` if neither key or both keys
    ///   open the file afterwards; `.io` if the file cannot be read or written; `.readOnly` if the
    ///   file was opened for reading only or has several names (hard links); `.misuse` inside a
    ///   transaction, with attached files, for a file with a keyring that is not abandoned, for an
    ///   empty key, for the same key or for another salt.
    /// - Complexity: O(*pages*) time and disk (the journal grows to the size of the file);
    ///   O(1) memory. It cannot be interrupted.
    /// - Note: SQLCipher: `sqlite3_rekey_v2`, whose result code is meaningless and is ignored.
    @discardableResult
    public func rekey(
        to key: borrowing StoreKey, abandonsKeyring: Bool = false
    ) throws -> RekeyReport {
        do throws(RekeyFailure) {
            return try changeKey(to: key, abandonsKeyring ? .abandon : .refuse).report
        } catch {
            throw error.error
        }
    }

    /// Changes the key as `rekey(to:)` does.
    ///
    /// - Returns: The report, and the file as it is open under the new key.
    /// - Throws: The error of `rekey(to:)`, and which key the file has now.
    func changeKey(
        to key: borrowing StoreKey, _ keyring: Rekey.KeyringPolicy
    ) throws(RekeyFailure) -> (report: RekeyReport, file: OpenFile) {
        let open = try RekeyFailure.wrapping { () throws(StoreError) in try requireRekeyable() }
        let rekey = Rekey(
            file: open.file, profile: open.profile, configuration: configuration,
            cacheByteCount: cacheByteCount, keyring: keyring)
        let outcome: Rekey.Outcome
        do throws(RekeyFailure) {
            outcome = try rekey.run(open, to: key) { finalizeStatements() }
        } catch {
            if open.handle.isClosed { close() }
            throw error
        }
        do throws(StoreError) {
            try replace(with: outcome.state)
        } catch {
            let isNew = if case .success = outcome.result { true } else { false }
            let change = isNew ? "changed" : "not changed"
            throw RekeyFailure(
                StoreError(
                    error.code,
                    "the key was \(change), but setting up the connection failed",
                    hint: "Open the file with the \(isNew ? "new" : "old") key.", cause: error),
                isNew ? .new : .old)
        }
        let report = try outcome.result.mapError { RekeyFailure($0) }.get()
        return (report, outcome.state)
    }

    /// Moves the pages that a change of the key left in the WAL into the main file. Counts, by
    /// their MACs, the pages of the main file that still have another key.
    ///
    /// - Returns: The report, with that count as `oldPageCount`.
    /// - Throws: `.damaged` if pages are not under the key although nothing is left in the WAL.
    func finishRekey() throws(StoreError) -> RekeyReport {
        let open = try fileState()
        defer { busyPolicy.install(on: open.handle) }
        let report = RekeyedWAL(open: open).report(since: .now, isCounted: true)
        guard report.isWALMoved, !report.isWholeFile else { return report }
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        let damaged = try pages.damaged(maximumCount: 16, of: report.pageCount)
        guard !damaged.isEmpty else {
            // Those pages were being written during the count.
            return RekeyedWAL(open: open).report(since: .now, isCounted: true)
        }
        throw StoreError(
            .damaged,
            "the key of \(open.file.path) was changed, and pages fail authentication under it",
            hint: "Keep the new key: with it Store.salvage saves the rows of other pages, and "
                + "verify lists what is lost.",
            pages: damaged)
    }

    private func requireRekeyable() throws(StoreError) -> OpenFile {
        let open = try fileState()
        guard mode != .readOnly else {
            throw StoreError(.readOnly, "the file was opened for reading only")
        }
        try requireNothingAttached()
        guard !open.handle.isInTransaction else {
            throw StoreError(
                .misuse,
                "the key cannot change inside a transaction or while a statement is at a row",
                hint: "End the transaction first: the engine would commit it.")
        }
        return open
    }
}
