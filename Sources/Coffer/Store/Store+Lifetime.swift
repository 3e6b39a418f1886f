/// The key, the pause and the end of a store.
extension Store {
    // MARK: Key

    /// Changes the key of every page, in place.
    ///
    /// ```swift
    /// let report = try store.rekey(to: .passphrase(text))
    /// if !report.isWholeFile { … }
    /// ```
    ///
    /// Waits for running reads and writes and closes every reader. Before it returns, it proves the
    /// change: a fresh connection opens with the new key, and the old key no longer opens. A crash
    /// leaves the old key or the new one. After `rekey` has returned, a power loss does not bring
    /// the old key back, whatever the configuration's durability. After a failure the store goes on
    /// under the old key, with every row. The error says so if no proof was possible. If the new
    /// key then holds, reads and writes throw `.wrongKey` until ``reopen(with:)``.
    ///
    /// - Parameter key: The new key. Never empty. The salt is kept.
    /// - Returns: Whether the main file without its WAL is under the new key as well. In WAL, a
    ///   read of another process can delay that until the read ends; see ``RekeyReport``.
    /// - Throws: `StoreError` `.busy` if running work does not end within `waitTimeout` or another
    ///   process holds the file; `.full` if there is no room for the journal; `.damaged` if a page
    ///   fails authentication; `.io`; `.readOnly`; `.unsupported` without a file; `.misuse` inside
    ///   a body, for the same key or for another salt; `.wouldDeadlock` in a cycle of waits:
    ///   running work waits, in a body of another store, for something that waits for `rekey`.
    /// - Complexity: O(*pages*) time and disk (the journal grows to the size of the file);
    ///   O(1) memory.
    @discardableResult
    public func rekey(to key: borrowing StoreKey) throws -> RekeyReport {
        do throws(RekeyFailure) {
            return try core.rekey(to: key)
        } catch {
            throw error.error
        }
    }

    /// Changes the key of every page, in place, without blocking a thread of the cooperative pool.
    ///
    /// - Parameter key: The new key. Never empty. The salt is kept.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form. It cannot be cancelled once it runs.
    @discardableResult
    public func rekey(to key: borrowing StoreKey) async throws -> RekeyReport {
        do throws(RekeyFailure) {
            return try await changeKey(to: key)
        } catch {
            throw error.error
        }
    }

    /// Changes the key of the file, as `rekey(to:)`. Throws an error that also says which key the
    /// file then has: the old one, the new one, neither, or that it is not known.
    package func changeKey(to key: borrowing StoreKey) async throws(RekeyFailure) -> RekeyReport {
        let key = KeyBox(key.copy())
        return try await Self.offPool { [core] () throws(RekeyFailure) in
            try core.rekey(to: key.key)
        }
    }

    /// Moves the pages that a key change left in the WAL into the main file, without stopping
    /// another process's writer, and counts the pages that still have another key.
    ///
    /// - Complexity: O(*pages*).
    package func finishRekey() async throws -> RekeyReport {
        try await Self.offPool { [core] () throws(StoreError) in try core.finishRekey() }
    }

    /// Whether the main file without its WAL opens with the key.
    ///
    /// It does not while a key change is in the WAL and was not moved yet.
    ///
    /// - Throws: `StoreError` `.io` if the main file cannot be read; errors of a read.
    /// - Complexity: O(1).
    package func opensWithoutWAL() throws -> Bool {
        try read { tx in
            let open = try tx.connection().fileState()
            let pages = RawPages(open.handle, key: open.key, profile: open.profile)
            for attempt in 0..<WALFile.tryCount {
                // A checkpoint of another process may be in the middle of writing the page.
                if attempt > 0 { sleepBriefly() }
                if try pages.opensAlone() { return true }
            }
            return false
        }
    }

    /// Reopens every connection with another key, after another process has changed it.
    ///
    /// Until then reads and writes throw `.wrongKey`.
    ///
    /// - Parameter key: The key that the file has now.
    /// - Throws: `StoreError` `.wrongKey` and other errors of opening, which leave the store as it
    ///   was; `.busy` if running work does not end within `waitTimeout`; `.unsupported` without a
    ///   file; `.misuse` inside a body; `.wouldDeadlock` as for ``rekey(to:)``.
    public func reopen(with key: borrowing StoreKey) throws {
        try core.reopen(with: key)
    }

    /// Reopens every connection with another key, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Throws: As the synchronous form.
    public func reopen(with key: borrowing StoreKey) async throws {
        let key = KeyBox(key.copy())
        try await Self.offPool { [core] () throws(StoreError) in try core.reopen(with: key.key) }
    }

    // MARK: Pause

    /// Closes the file and admits nothing until ``resume()``: every lock is released.
    ///
    /// Use it where the system ends processes that hold a lock in the background. Running work may
    /// end within `waitTimeout`; after that it is stopped, undone and gets `.suspended`. Work that
    /// waits in the queue or comes later gets `.suspended` as well. Safe to call twice. The key
    /// stays in memory.
    ///
    /// - Throws: `StoreError` `.busy` if a body did not end even then, because it does not use the
    ///   store: the store then goes on; `.closed`; `.unsupported` without a file, because
    ///   everything would be lost; `.misuse` inside a body; `.wouldDeadlock` as for ``rekey(to:)``:
    ///   the store then goes on.
    public func suspend() throws {
        try core.suspend()
    }

    /// Closes the file and admits nothing until ``resume()``, without blocking a thread of the
    /// cooperative pool.
    ///
    /// - Throws: As the synchronous form.
    public func suspend() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.suspend() }
    }

    /// Opens the file again after ``suspend()``. Does nothing if the store is not suspended.
    ///
    /// - Throws: The errors of opening, such as `.notFound` if the file went away, or `.wrongKey`
    ///   if another process has changed the key in the meantime: the store is then still suspended,
    ///   see ``reopen(with:)``; `.misuse`, `.busy` and `.wouldDeadlock` as for ``suspend()``.
    public func resume() throws {
        try core.resume()
    }

    /// Opens the file again after ``suspend()``, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Throws: As the synchronous form.
    public func resume() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.resume() }
    }

    // MARK: End

    /// Waits for running reads and writes, and for those that queued before it, then closes the
    /// file. Safe to call twice. The contents of a store without a file are gone.
    ///
    /// Later work gets `.closed`.
    ///
    /// - Throws: `StoreError` `.busy` if running work does not end within `waitTimeout`; the
    ///   store is then still open. `.misuse` inside a body; `.wouldDeadlock` as for ``rekey(to:)``.
    public func close() throws {
        try core.close()
    }

    /// Waits for running reads and writes, then closes the file. Safe to call twice.
    ///
    /// - Throws: As the synchronous form.
    public func close() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.close() }
    }
}
