import CSQLCipher

extension Handle {
    /// Drops the pages that a rollback has restored from the journal.
    ///
    /// Must follow every rollback without WAL, because SQLCipher may have misread page 1. The pager
    /// copies the page from the journal into the cache, lets the b-tree look at its header, and only
    /// then decrypts it. Mostly ciphertext is no header, and the b-tree looks again. In one of about
    /// 10 000 rollbacks it looks like one. The connection then takes page 1 for damaged, or misses
    /// objects of the schema, as long as the page is in the cache. `RestoredPageTests` meets it.
    ///
    /// A rollback in WAL reads pages again from the log instead, and decrypts them first. Undoing a
    /// savepoint showed no such page in 80 000 tries.
    ///
    /// - Complexity: O(*pages in the cache*), which later reads have to decrypt again.
    func dropRestoredPages() {
        guard !LogFile(handle: self).isOpen else { return }
        sqlite3_db_release_memory(db)
    }
}
