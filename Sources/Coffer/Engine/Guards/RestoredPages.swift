import CSQLCipher

// SQLCipher may misread page 1 when a rollback without WAL restores it.
//
// The pager copies the page from the rollback journal into the cache, lets the b-tree read its
// header, and only then decrypts it. Ciphertext rarely looks like a header; if not, the b-tree
// reads the header again later. After one of about 10 000 rollbacks it does, with pages of 4 096
// bytes. The connection then reports page 1 as damaged, or misses objects of the schema, for as
// long as the page stays in the cache. Only page 1 stays there during a rollback. An owner's
// rollback of an adopted handle remains unknown to Coffer.
//
// A rollback in WAL reads the pages from the WAL and decrypts them first. A page that was in the
// journal before the savepoint or statement began is restored from plaintext in memory.

extension Handle {
    /// Whether the open transaction has written pages that a rollback takes from a journal.
    private var hasRollbackJournal: Bool {
        if coffer_has_rollback_journal(db, "main") != 0 { return true }
        return attached.contains { coffer_has_rollback_journal(db, $0.name) != 0 }
    }

    /// Sets `mayMisreadPages` if the open transaction has a rollback journal. Must run before
    /// ROLLBACK, because the journal is gone afterwards.
    func transactionWillRollBack() {
        if hasRollbackJournal { mayMisreadPages = true }
    }

    /// Sets `mayMisreadPages`, unless the main file has a WAL open and no file is attached. For a
    /// rollback that was not foreseen, such as one by SQLite itself. Does nothing on a closed
    /// handle, which has no cache.
    func transactionMayHaveRolledBack() {
        guard !isClosed else { return }
        if !attached.isEmpty || !WALFile(handle: self).isOpen { mayMisreadPages = true }
    }

    /// Empties the page cache and resets `mayMisreadPages`, if it is set.
    ///
    /// Must follow every rollback of a whole transaction. Does nothing inside a transaction, nor
    /// while a statement has a current row, because page 1 would stay in the cache.
    ///
    /// - Complexity: O(*pages in the cache*); later reads decrypt them again.
    func dropRestoredPages() {
        guard !isClosed, mayMisreadPages, !isInTransaction, runningCount == 0 else { return }
        mayMisreadPages = false
        sqlite3_db_release_memory(db)
    }

    /// Makes the b-tree read page 1 again, of each database with a rollback journal.
    ///
    /// Does nothing outside a transaction or without such a journal. No content changes. Must
    /// follow every rollback to a savepoint, and of a failed statement. Page 1 is written
    /// twice without a change: the first write puts it into the journal. The second is rolled
    /// back, which restores the page from plaintext.
    ///
    /// - Throws: Errors of the writes. The transaction must then be rolled back.
    func rereadFirstPages() throws(StoreError) {
        guard isInTransaction, hasRollbackJournal else { return }
        for name in ["main"] + attachedNames where coffer_has_rollback_journal(db, name) != 0 {
            let setting = "PRAGMA \(try name.quotedIdentifier()).user_version"
            let write = "\(setting) = \(try firstInteger(setting))"
            try run(
                """
                \(write); SAVEPOINT coffer_page; \(write);
                ROLLBACK TO coffer_page; RELEASE coffer_page
                """)
        }
    }
}
