import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension WriteTransaction {
    /// Stores bytes that are in memory as an attachment, and replaces an existing one.
    ///
    /// `Store.set(contentsOf:for:in:expiring:byteCount:isResumable:)` stores bytes of any number.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the attachment ends; after the bucket's lifetime by default.
    /// - Returns: Size and digest.
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.notFound` if
    ///   the attachments are those of records and none has the key; `.rolledBack` with the cause
    ///   `.full` or `.io`, if the engine ended the transaction; `.damaged`; otherwise as
    ///   `set(_:for:in:)` of a bucket.
    /// - Complexity: O(log *entries* + *bytes*).
    @discardableResult
    public func set<K>(
        _ bytes: Data, for key: K, in bucket: AttachmentBucket<K>,
        expiring expiration: Expiration = .standard
    ) throws -> AttachmentInformation {
        try writeAttachment(key, in: bucket, expiring: expiration) { try $0.append(bytes) }
    }

    /// Stores bytes of any number as an attachment, piece by piece, and replaces an existing one.
    ///
    /// ```swift
    /// try store.write { tx in
    ///     try tx.insert(film)
    ///     try tx.writeAttachment(film.id, in: Film.videos) { video in
    ///         while let piece = try camera.next() { try video.append(piece) }
    ///     }
    /// }
    /// ```
    ///
    /// The attachment and everything else in the transaction appear at once. Other writes wait
    /// until the transaction ends, and the WAL grows by the size of the attachment. If the bytes
    /// come slowly, prefer `Store.set(contentsOf:for:in:expiring:byteCount:isResumable:)`.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the attachment ends; after the bucket's lifetime by default.
    ///   - body: Adds the bytes. If it throws, so does the verb, and the old attachment stays.
    /// - Returns: Size and digest.
    /// - Throws: What `body` throws; otherwise as `set(_:for:in:)`.
    /// - Complexity: O(log *entries* + *bytes*) time, O(*piece* + 256 KiB) memory.
    @discardableResult
    public func writeAttachment<K>(
        _ key: K, in bucket: AttachmentBucket<K>, expiring expiration: Expiration = .standard,
        _ body: (inout AttachmentWriter) throws -> Void
    ) throws -> AttachmentInformation {
        let connection = try connection()
        let (stored, access) = (try bucket.entries.plan.stored(key), access)
        // A caller may catch the error and commit: then no bytes may stay that no entry has.
        return try connection.savepoint { () throws in
            let contents = try Contents(making: connection)
            let content = try contents.begin(for: stored, in: bucket.name, owner: UUID())
            var writer = AttachmentWriter(contents, content, access)
            try body(&writer)
            let (whole, hash) = try writer.finish()
            return try contents.finish(whole, hash, as: stored, in: bucket.entries, expiration)
        }
    }

    /// Removes an attachment, if there is one under the key.
    ///
    /// - Returns: Whether there was one; `false` is not an error.
    /// - Throws: As `remove(_:in:)` of a bucket.
    /// - Complexity: O(log *entries*); the store frees the chunks later.
    @discardableResult
    public func remove<K>(_ key: K, in bucket: AttachmentBucket<K>) throws -> Bool {
        try freeingLater { () throws in try remove(key, in: bucket.entries) }
    }

    /// Removes the attachments of a range of keys.
    ///
    /// - Returns: The number of removed attachments.
    /// - Throws: As `removeAll(in:_:)` of a bucket.
    /// - Complexity: O(*attachments* of the range); the store frees the chunks later.
    @discardableResult
    public func removeAll<K>(
        in bucket: AttachmentBucket<K>, _ range: KeyRange<K> = .all
    ) throws -> Int {
        try freeingLater { () throws in try removeAll(in: bucket.entries, range) }
    }

    /// Changes when an attachment expires.
    ///
    /// - Returns: Whether there is such an attachment; `false` also for an expired one.
    /// - Throws: As `touch(_:in:expiring:)` of a bucket.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func touch<K>(
        _ key: K, in bucket: AttachmentBucket<K>, expiring expiration: Expiration = .standard
    ) throws -> Bool {
        try touch(key, in: bucket.entries, expiring: expiration)
    }

    /// Discards the bytes of an upload. If it still runs, it fails with `.conflict`.
    ///
    /// - Returns: Whether the store had the upload; `false` is not an error.
    /// - Throws: `StoreError` `.full`, `.io`, `.damaged`; otherwise as `execute(_:)`.
    @discardableResult
    public func discard<K>(_ upload: AttachmentUpload<K>) throws -> Bool {
        guard let contents = try Contents(connection()),
            let content = try contents.content(upload.contentID), content.state == .unfinished
        else { return false }
        try freeingLater { () throws in try contents.remove(content) }
        return true
    }

    /// Does work that removes contents, and lets the store free them soon.
    private func freeingLater<R>(_ work: () throws -> R) throws -> R {
        let connection = try connection()
        let result = try work()
        connection.willExpire?(ExpirySweep.work)
        return result
    }
}

extension Contents {
    /// Makes an unfinished content that of an entry, which it adds or replaces.
    ///
    /// - Throws: As `BucketTable.put`, `Bucket.requireRecord` and `BucketPlan.time`.
    func finish<K: BucketKey>(
        _ content: Content, _ hash: SHA256, as key: Value, in bucket: Bucket<K, Int64>,
        _ expiration: Expiration
    ) throws(StoreError) -> AttachmentInformation {
        try bucket.requireRecord(key, connection)
        let information = try finish(content, hash)
        var table = try BucketTable(connection, bucket.plan)
        let time = try bucket.plan.time(expiration, lifetime: bucket.lifetime) {
            () throws(StoreError) in try table.now()
        }
        try table.put(key, .integer(content.id), until: time, lifetime: bucket.lifetime)
        // A content that was replaced is freed soon.
        connection.willExpire?(ExpirySweep.work)
        return information
    }
}
