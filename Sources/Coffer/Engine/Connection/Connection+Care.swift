import CSQLCipher

/// What concerns the connection itself, not the data.
extension Connection {
    /// Reads page 1 from the disk and the schema through the engine, each time anew.
    ///
    /// Of a page 1 that stands newer in the write-ahead log its frame there is read.
    ///
    /// That an earlier read went well, or that the library is SQLCipher, says nothing about the
    /// file as it is now. `Store.verify` looks at every page.
    ///
    /// - Throws: `StoreError` `.wrongKey` if the key of this connection does not open the file any
    ///   more, `.damaged`, `.truncated`, `.busy`, `.io`; `.misuse` before the key is set;
    ///   `.closed`.
    /// - Complexity: O(1); O(*frames of the log*) if page 1 of the main file fails, as after a
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
            if try pages.isAuthentic(1, in: pages.logPages()) { return }
            // Another process may have been half-way through writing it.
            sleepBriefly()
        }
        throw StoreError(
            .damaged, "page 1 of \(file.file.path) failed authentication",
            hint: "Restore the file from a backup.", pages: [1])
    }

    /// Forgets the compiled statements that are kept for the next use of their text.
    ///
    /// Statements of `prepare(_:)` live on.
    public func clearStatementCache() {
        cache.removeAll()
        forgetAttachments()
    }

    /// Lends the engine's own handle, for what Coffer has no verb for.
    ///
    /// Nothing of Coffer's holds there: no result is probed, and zeros of a damaged page look like
    /// data. Do not close it, set a key, an authorizer or a busy handler, or begin a transaction
    /// that outlives `body`.
    ///
    /// - Parameter body: Gets the `sqlite3 *`, which is valid until it returns.
    /// - Throws: What `body` throws; `StoreError` `.misuse` before the key is set, `.closed`.
    public func withUnsafeHandle<T>(_ body: (OpaquePointer) throws -> T) throws -> T {
        let handle = try current()
        // It may read pages behind the probe's back, or change the schema.
        defer {
            handle.cleanMissCount = nil
            forgetAttachments()
        }
        return try handle.guardingSchema { try body(handle.db) }
    }
}
