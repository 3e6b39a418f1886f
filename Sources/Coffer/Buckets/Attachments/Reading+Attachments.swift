#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Reading where Self: ~Copyable {
    /// The size and the digest of an attachment; `nil` if there is none under the key.
    ///
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.damaged` if
    ///   the file lacks the attachment's content; otherwise as `rows(_:)`.
    /// - Complexity: O(log *entries*); the bytes are not read.
    public func attachment<K>(
        _ key: K, in bucket: AttachmentBucket<K>
    ) throws -> AttachmentInformation? {
        guard let id = try get(key, in: bucket.entries) else { return nil }
        return try information(of: id, bucket)
    }

    private func information<K>(
        of id: Int64, _ bucket: AttachmentBucket<K>
    ) throws -> AttachmentInformation {
        let (content, sha256) = try Self.content(id, connection()).whole
        return AttachmentInformation(byteCount: content.byteCount, sha256: sha256)
    }

    private static func content(
        _ id: Int64, _ connection: Connection
    ) throws(StoreError) -> (contents: Contents, whole: (content: Contents.Content, sha256: Data)) {
        guard let contents = try Contents(connection) else {
            throw Contents.damaged("the file has no contents of attachments")
        }
        return (contents, try contents.whole(id))
    }

    /// Opens an attachment for reading while `body` runs.
    ///
    /// ```swift
    /// let header = try store.read { tx in
    ///     try tx.withAttachment(id, in: films) { film in try film.bytes(in: 0..<64) }
    /// }
    /// ```
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; `StoreError` `.notFound` if the bucket does not have the key;
    ///   otherwise as `attachment(_:in:)`.
    /// - Complexity: O(log *entries*), and that of `body`.
    public func withAttachment<K, T>(
        _ key: K, in bucket: AttachmentBucket<K>, _ body: (inout AttachmentReader) throws -> T
    ) throws -> T {
        let connection = try connection()
        guard let id = try get(key, in: bucket.entries) else { throw bucket.missing }
        let (contents, (content, sha256)) = try Self.content(id, connection)
        var reader = AttachmentReader(contents, content, sha256: sha256, access)
        return try body(&reader)
    }

    /// Whether there is an attachment under a key.
    ///
    /// - Throws: As `contains(_:in:)` of a bucket.
    /// - Complexity: O(log *entries*).
    public func contains<K>(_ key: K, in bucket: AttachmentBucket<K>) throws -> Bool {
        try contains(key, in: bucket.entries)
    }

    /// How long an attachment still lives; `nil` if there is none under the key.
    ///
    /// - Throws: As `remainingLifetime(of:in:)` of a bucket.
    public func remainingLifetime<K>(
        of key: K, in bucket: AttachmentBucket<K>
    ) throws -> RemainingLifetime? {
        try remainingLifetime(of: key, in: bucket.entries)
    }

    /// The number of attachments in a range of keys.
    ///
    /// - Throws: As `count(in:_:)` of a bucket.
    /// - Complexity: O(*attachments* of the range).
    public func count<K>(
        in bucket: AttachmentBucket<K>, _ range: KeyRange<K> = .all
    ) throws -> Int {
        try count(in: bucket.entries, range)
    }

    /// The keys of attachments, in their order, with size and digest of each.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - range: Which keys; see ``KeyRange``.
    ///   - order: In which order.
    ///   - after: The last key of the page before; see `entries(in:_:order:after:maximumCount:)`.
    ///   - maximumCount: The most attachments to return; `nil` for all, none for 0 or less.
    /// - Throws: As `entries(in:_:order:after:maximumCount:)` of a bucket, and as
    ///   `attachment(_:in:)`.
    /// - Complexity: O(log *entries* + *returned* · log *contents*); the bytes are not read.
    public func attachments<K>(
        in bucket: AttachmentBucket<K>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [BucketEntry<K, AttachmentInformation>] {
        try entries(
            in: bucket.entries, range, order: order, after: after, maximumCount: maximumCount
        ).map { BucketEntry(key: $0.key, value: try information(of: $0.value, bucket)) }
    }

    /// The uploads of a bucket that have not ended: those that run now in any process, and those
    /// that have broken off and were kept. The first was begun first.
    ///
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.damaged`;
    ///   otherwise as `rows(_:)`.
    /// - Complexity: O(*uploads* of all buckets).
    public func uploads<K>(in bucket: AttachmentBucket<K>) throws -> [AttachmentUpload<K>] {
        let connection = try connection()
        _ = try table(of: bucket.entries)
        guard let contents = try Contents(connection) else { return [] }
        return try contents.unfinished(of: bucket.name).map { found in
            AttachmentUpload(
                key: try bucket.entries.plan.key(found.key), byteCount: found.content.byteCount,
                contentID: found.content.id)
        }
    }
}

extension AttachmentBucket {
    var missing: StoreError {
        StoreError(.notFound, "there is no attachment under this key", table: entries.table)
    }
}
