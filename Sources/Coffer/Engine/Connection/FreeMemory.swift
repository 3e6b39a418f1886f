import CSQLCipher

/// Memory that the process has freed.
enum FreeMemory {
    /// Gives it back to the system, where the allocator would keep it for later (glibc).
    ///
    /// - Complexity: O(*heap*), some milliseconds, in which other threads cannot allocate.
    static func release() {
        coffer_release_free_memory()
    }
}
