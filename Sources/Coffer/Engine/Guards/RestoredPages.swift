import CSQLCipher

extension Handle {
    /// Drops the pages that a rollback has restored from the journal.
    ///
    /// Must follow every rollback without WAL, because SQLCipher may have misread page 1. The pager
    /// copies the page from the journal into the cache, lets the b-tree read its header, and only
    /// then decrypts it. Ciphertext rarely looks like a header; if not, the b-tree reads the header
    /// again later. After one of about 10 000 failed commits it does. The connection then
    /// reports page 1 as damaged for as long as the page stays in the cache.
    ///
    /// A rollback in WAL reads the pages from the WAL and decrypts them first. Rolling back to a
    /// savepoint left no such page in 80 000 tries.
    ///
    /// - Complexity: O(*pages in the cache*); later reads decrypt them again.
    func dropRestoredPages() {
        guard !LogFile(handle: self).isOpen else { return }
        sqlite3_db_release_memory(db)
    }
}
