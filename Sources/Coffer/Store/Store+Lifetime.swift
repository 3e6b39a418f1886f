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
    /// under the old key, with every row. If it is not proven which key the file has, the error
    /// says so. If the file then has the new key, reads and writes throw `.wrongKey` until
    /// `reopen(with:)`.
    ///
    /// - Parameters:
    ///   - key: The new key. Never empty. The salt is kept.
    ///   - abandonsKeyring: Whether a keyring of the store gets another name, because its slots do
    ///     not open the store afterwards. `false` refuses a store with a keyring. The renamed
    ///     keyring opens earlier copies of the store.
    /// - Returns: A report that says whether the main file without its WAL is under the new key as
    ///   well. In WAL, a read of another process can delay that until the read ends; see
    ///   ``RekeyReport``.
    /// - Throws: `StoreError` `.busy` if running work does not end within `waitTimeout` or another
    ///   process holds the file; `.full` if there is no room for the journal; `.damaged` if a page
    ///   fails authentication; `.io` if the file cannot be read or written; `.readOnly` for a store
    ///   that was opened for reading only, or a file with several names (hard links);
    ///   `.unsupported` for a store without a file; `.suspended`, `.closed`; `.misuse` inside a
    ///   body of this store, for a keyring that is not abandoned, for an empty key, for the same
    ///   key or for another salt; `.wouldDeadlock` in a cycle of waits: running work waits, in a
    ///   body of another store, for something that waits for `rekey`.
    /// - Complexity: O(*pages*) time and disk (the journal grows to the size of the file);
    ///   O(1) memory.
    @discardableResult
    public func rekey(
        to key: borrowing StoreKey, abandonsKeyring: Bool = false
    ) throws -> RekeyReport {
        do throws(RekeyFailure) {
            return try core.rekey(to: key, abandonsKeyring ? .abandon : .refuse)
        } catch {
            throw error.error
        }
    }

    /// Changes the key of every page, in place, without blocking a thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - key: The new key. Never empty. The salt is kept.
    ///   - abandonsKeyring: As in the synchronous form.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form. Cancelling the task does not stop the change.
    @discardableResult
    public func rekey(
        to key: borrowing StoreKey, abandonsKeyring: Bool = false
    ) async throws -> RekeyReport {
        do throws(RekeyFailure) {
            return try await changeKey(to: key, abandonsKeyring: abandonsKeyring)
        } catch {
            throw error.error
        }
    }

    /// Changes the key as `rekey(to:)` does.
    ///
    /// - Throws: The error of `rekey(to:)`, and which key the file has now.
    package func changeKey(
        to key: borrowing StoreKey, abandonsKeyring: Bool = false
    ) async throws(RekeyFailure) -> RekeyReport {
        let key = KeyBox(key.copy())
        return try await Self.offPool { [core] () throws(RekeyFailure) in
            try core.rekey(to: key.key, abandonsKeyring ? .abandon : .refuse)
        }
    }

    /// Moves the pages that a key change left in the WAL into the main file. Does not stop writers
    /// of other processes.
    ///
    /// - Parameter abandonsKeyring: Whether a keyring that is left of the change gets another name.
    /// - Returns: The report, whose `oldPageCount` is the number of pages that still have another
    ///   key.
    /// - Throws: `StoreError` `.damaged` if such pages remain although the whole WAL was moved;
    ///   `.busy` and `.unsupported` as `rekey(to:)`; `.suspended`, `.closed`.
    /// - Complexity: O(*pages*).
    package func finishRekey(abandonsKeyring: Bool = false) async throws -> RekeyReport {
        try await Self.offPool { [core] () throws(StoreError) in
            try core.finishRekey(abandonsKeyring: abandonsKeyring)
        }
    }

    /// The id of the key that the store is open with; after a change of the key, that of the new
    /// one.
    ///
    /// - Throws: `StoreError` `.unsupported` for a store without a file; otherwise as `read(_:)`.
    /// - Complexity: O(1).
    public func keyID() throws -> KeyID {
        try read { tx in try tx.connection().keyID() }
    }

    /// Whether the main file without its WAL opens with the store's key.
    ///
    /// `false` while a key change is in the WAL and was not moved yet. Also `false` if page 1 of
    /// the main file is damaged or missing.
    ///
    /// - Throws: `StoreError` `.io` if the main file cannot be read; otherwise as `read(_:)`.
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

    /// Reopens every connection with another key, after another process has changed the file's key.
    /// A suspended store is open again afterwards.
    ///
    /// Before this call, reads and writes throw `.wrongKey`.
    ///
    /// - Parameter key: The key that the file has now.
    /// - Throws: `StoreError` `.wrongKey` and other errors of opening, which leave the store as it
    ///   was; `.alreadyOpen` if another store of this process has the file; `.busy` if running work
    ///   does not end within `waitTimeout`; `.unsupported` for a store without a file; `.closed`;
    ///   `.misuse` inside a body of this store, or if the cipher settings of the file have changed;
    ///   `.wouldDeadlock` as for `rekey(to:)`.
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

    /// Closes the file, which releases every lock, and refuses reads and writes until `resume()`.
    ///
    /// Use it where the system ends processes that hold a lock in the background. Running reads and
    /// writes may end within `waitTimeout`; after that they are stopped, undone and throw
    /// `.suspended`. Reads and writes that wait in the queue or come later throw `.suspended` as
    /// well. A second call does nothing. The key stays in memory. Another store of this process may
    /// open the file meanwhile.
    ///
    /// - Throws: `StoreError` `.busy` if a body did not end although it was stopped, because it
    ///   does not use the store: the store then goes on; `.closed`; `.unsupported` for a store
    ///   without a file, because everything would be lost; `.misuse` inside a body of this store;
    ///   `.wouldDeadlock` as for `rekey(to:)`: the store then goes on.
    public func suspend() throws {
        try core.suspend()
    }

    /// Closes the file and refuses reads and writes until `resume()`, without blocking a thread
    /// of the cooperative pool.
    ///
    /// - Throws: As the synchronous form.
    public func suspend() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.suspend() }
    }

    /// Opens the file again after `suspend()`, and admits reads and writes. Does nothing if the
    /// store is not suspended.
    ///
    /// - Throws: The errors of opening, such as `.notFound` if the file went away, `.alreadyOpen`
    ///   while another store of this process has it, or `.wrongKey` if another process has changed
    ///   the key in the meantime: the store is then still suspended, see `reopen(with:)`;
    ///   `.misuse`, `.busy` and `.wouldDeadlock` as for `suspend()`.
    public func resume() throws {
        try core.resume()
    }

    /// Opens the file again after `suspend()`, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Throws: As the synchronous form.
    public func resume() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.resume() }
    }

    // MARK: End

    /// Waits for running reads and writes, and for those that queued before it, then closes the
    /// file. A second call does nothing. The contents of a store without a file are gone.
    ///
    /// Later reads and writes throw `.closed`.
    ///
    /// - Throws: `StoreError` `.busy` if running work does not end within `waitTimeout`; the store
    ///   is then still open. `.misuse` inside a body of this store; `.wouldDeadlock` as for
    ///   `rekey(to:)`.
    public func close() throws {
        try core.close()
    }

    /// Waits for running reads and writes, then closes the file. A second call does nothing.
    ///
    /// - Throws: As the synchronous form.
    public func close() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.close() }
    }

    /// Refuses reads and writes that wait or come later, lets running ones end, then closes the
    /// file. For the end of a server, which has no time for a queue.
    ///
    /// ```swift
    /// try await store.shutDown()
    /// ```
    ///
    /// Waiting and later work throws `.closed`. Running work may end within `waitTimeout`; after
    /// that it is stopped, undone and throws `.closed`. A write that has returned is durable. A
    /// second call does nothing, also after `close()`, which lets waiting work run first.
    ///
    /// - Throws: `StoreError` `.busy` if a body did not end although it was stopped, because it
    ///   does not use the store: the store then goes on; `.misuse` inside a body of this store;
    ///   `.wouldDeadlock` as for `rekey(to:)`: the store then goes on.
    /// - Complexity: O(*waiting*), after the running work.
    public func shutDown() throws {
        try core.shutDown()
    }

    /// Refuses waiting and later work, lets running work end and closes the file, without blocking
    /// a thread of the cooperative pool.
    ///
    /// - Throws: As the synchronous form. Cancelling the task does not stop it.
    public func shutDown() async throws {
        try await Self.offPool { [core] () throws(StoreError) in try core.shutDown() }
    }
}
