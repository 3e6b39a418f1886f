/// One key in a bucket of attachments, for work that takes several transactions.
struct AttachmentPlace<Key: BucketKey>: Sendable {
    let core: StoreCore
    let bucket: Bucket<Key, Int64>
    /// The key as the file has it.
    let key: Value
    private let caller: Caller

    /// Checks everything that does not depend on the bytes; writes nothing.
    ///
    /// - Throws: `.readOnly` if the store was opened for reading only; `.mismatch` if the file
    ///   cannot hold the key, or if the bucket was made with other types; `.notFound` if the
    ///   attachments are those of records and none has the key; errors of reading.
    init(
        _ core: StoreCore, _ key: Key, in bucket: AttachmentBucket<Key>, _ caller: Caller
    ) async throws {
        let entries = bucket.entries
        (self.core, self.bucket, self.caller) = (core, entries, caller)
        let stored = try entries.plan.stored(key)
        self.key = stored
        try core.requireWritable()
        try await core.read { tx in
            _ = try tx.table(of: entries)
            _ = try ContentTables(tx.connection()).exist()
            try entries.requireRecord(stored, tx.connection())
        }
    }

    /// Runs a transaction that shares no commit, because it may write megabytes.
    ///
    /// - Throws: What `body` throws, and errors of the write.
    func write<R: Sendable>(
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
    ) async throws -> R {
        try await core.write(WriteQueue.Request(isSharing: false, caller: caller), body)
    }
}
