import CSQLCipher

/// Verbs for the connection itself, not for the data.
extension Connection {
    /// Checks that the connection's key still opens the file: every call reads page 1 from the disk
    /// and the schema through the engine. For a database without a file, and for an adopted handle,
    /// it reads only the schema.
    ///
    /// If page 1 of the main file fails authentication, its frame in the WAL may be newer and is
    /// checked instead.
    ///
    /// A successful earlier read, or the fact that the library is SQLCipher, says nothing about the
    /// file as it is now. `Store.verify` checks every page.
    ///
    /// - Throws: `StoreError` `.wrongKey` if the key of this connection no longer opens the file,
    ///   `.damaged`, `.truncated`, `.busy`, `.io`; `.misuse` before the key is set; `.closed`.
    /// - Complexity: O(1); O(*frames in the WAL*) if page 1 of the main file fails, as after a
    ///   change of the key that no checkpoint has followed yet.
    public func check() throws {
        let handle = try current()
        try handle.readSchemaAgain()
        guard case .open(_, let file?) = state else { return }
        let pages = RawPages(handle, key: file.key, profile: file.profile)
        guard try pages.count() > 0 else {
            throw StoreError(
                .truncated, "\(file.file.path) is shorter than one page",
                hint: "Restore the file from a backup.")
        }
        for _ in 0..<4 {
            if try pages.isAuthentic(1) { return }
            if try pages.isAuthentic(1, in: pages.walPages()) { return }
            // Another process may have been in the middle of writing it.
            sleepBriefly()
        }
        throw StoreError(
            .damaged, "page 1 of \(file.file.path) failed authentication",
            hint: "Restore the file from a backup.", pages: [1])
    }

    /// Discards the compiled statements that are cached by their text.
    ///
    /// Statements of `prepare(_:)` stay valid.
    public func clearStatementCache() {
        cache.removeAll()
        forgetAttachments()
    }

    /// Passes the engine's own handle to `body`, for operations that Coffer has no verb for, and
    /// returns the result of `body`.
    ///
    /// Coffer's guarantees do not hold there: no result is checked, and zeros of a damaged page
    /// look like data. Do not close the handle, set a key, an authorizer or a busy handler, or
    /// begin a transaction that outlives `body`.
    ///
    /// - Parameter body: Receives the `sqlite3 *`, which is valid until it returns.
    /// - Throws: Errors of `body`; `StoreError` `.misuse` before the key is set, `.closed`.
    public func withUnsafeHandle<T>(_ body: (OpaquePointer) throws -> T) throws -> T {
        let handle = try current()
        // It may read pages without the probe noticing, or change the schema.
        defer {
            handle.probing.cleanMissCount = nil
            forgetAttachments()
        }
        return try handle.guardingSchema { try body(handle.db) }
    }
}
