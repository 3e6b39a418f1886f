import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// MARK: Writing

extension Store {
    /// Stores the bytes of a stream as an attachment, and replaces an existing one.
    ///
    /// ```swift
    /// let upload = request.body  // as slow as its network, of any length
    /// let stored = try await store.set(contentsOf: upload, for: id, in: photos)
    /// response.etag = stored.sha256
    /// ```
    ///
    /// The bytes are written in batches of 4 MiB, each in a transaction of its own, so that other
    /// writes never wait for the source. Nobody sees them before the last one, which makes them the
    /// attachment. Until then the old one is there. If the process ends before, the store removes
    /// the bytes a day later, unless the upload is resumed.
    ///
    /// - Parameters:
    ///   - source: Gives the bytes, in pieces of any size.
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the attachment ends; after the bucket's lifetime by default.
    ///   - byteCount: The number of bytes that the source must give; `nil` for any.
    ///   - isResumable: Whether the bytes that came are kept if the source fails or the task is
    ///     cancelled. See ``AttachmentUpload``.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Returns: Size and digest.
    /// - Throws: What `source` throws; `StoreError` `.mismatch` if it gives more or fewer than
    ///   `byteCount` bytes, or if the bucket was made with other types; `.conflict` if somebody
    ///   else resumes or discards the upload meanwhile; `.notFound` if the attachments are those of
    ///   records, and none has the key, or it was deleted meanwhile; `.full`, `.io`, `.busy`,
    ///   `.damaged`, `.readOnly`; `CancellationError`. The attachment is then as it was.
    /// - Complexity: O(*bytes*) time; O(*piece* + 4 MiB) memory.
    @discardableResult
    public func set<K, Source: AsyncSequence>(
        contentsOf source: Source, for key: K, in bucket: AttachmentBucket<K>,
        expiring expiration: Expiration = .standard, byteCount: Int? = nil,
        isResumable: Bool = false, fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> AttachmentInformation where Source.Element == Data {
        let caller = Caller(fileID: fileID, line: line)
        var upload = Upload(try await AttachmentPlace(core, key, in: bucket, caller))
        return try await upload.run(
            source, byteCount: byteCount, isResumable: isResumable, expiration)
    }

    /// Stores the bytes of a file as an attachment, and replaces an existing one.
    ///
    /// - Parameters:
    ///   - path: The file, which may be a pipe.
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the attachment ends; after the bucket's lifetime by default.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Returns: Size and digest.
    /// - Throws: `StoreError` `.notFound` if the file does not exist, `.io` if the system cannot
    ///   read it; otherwise as `set(contentsOf:for:in:)`.
    /// - Complexity: O(*bytes*) time; O(4 MiB) memory.
    @discardableResult
    public func set<K>(
        contentsOfFile path: String, for key: K, in bucket: AttachmentBucket<K>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> AttachmentInformation {
        try await set(
            contentsOf: try FileBytes(path), for: key, in: bucket, expiring: expiration,
            fileID: fileID, line: line)
    }

    /// Goes on with an upload that has broken off.
    ///
    /// From then on only this call adds to the upload: one that still runs elsewhere fails with
    /// `.conflict`.
    ///
    /// - Parameters:
    ///   - upload: One of `uploads(in:)`.
    ///   - source: Gives the bytes that follow the first ``AttachmentUpload/byteCount`` ones.
    ///   - bucket: The bucket.
    ///   - expiration: When the attachment ends; after the bucket's lifetime by default.
    ///   - byteCount: The number of bytes that the whole must have; `nil` for any.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Returns: Size and digest of the whole.
    /// - Throws: `StoreError` `.notFound` if the upload has ended, was discarded, or got no byte
    ///   for a day; `.conflict` if bytes were added to it since it was listed; otherwise as
    ///   `set(contentsOf:for:in:)`. The bytes are then kept.
    /// - Complexity: O(*bytes* of the whole) time, because the first ones are read for the digest;
    ///   O(*piece* + 4 MiB) memory.
    @discardableResult
    public func resume<K, Source: AsyncSequence>(
        _ upload: AttachmentUpload<K>, contentsOf source: Source, in bucket: AttachmentBucket<K>,
        expiring expiration: Expiration = .standard, byteCount: Int? = nil,
        fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> AttachmentInformation where Source.Element == Data {
        let caller = Caller(fileID: fileID, line: line)
        var resumed = Upload(try await AttachmentPlace(core, upload.key, in: bucket, caller))
        try await resumed.resume(upload)
        return try await resumed.run(source, byteCount: byteCount, isResumable: true, expiration)
    }

    /// Adds the bytes of a stream at the end of an attachment; makes one if there is none.
    ///
    /// The stream is first read to its end, as by `writeBlob`. Then the attachment is read for its
    /// digest, and the bytes are added in one transaction. Its time of expiry stays.
    ///
    /// - Parameters:
    ///   - source: Gives the bytes, in pieces of any size.
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Returns: Size and digest of the whole.
    /// - Throws: What `source` throws; `StoreError` `.conflict` if others change the attachment
    ///   each time that its digest was read; otherwise as `set(contentsOf:for:in:)`. The attachment
    ///   is then as it was.
    /// - Complexity: O(*bytes* of the whole) time; O(*piece* + 1 MiB) memory; temporary disk space
    ///   of the size of the stream.
    @discardableResult
    public func append<K, Source: AsyncSequence>(
        contentsOf source: Source, to key: K, in bucket: AttachmentBucket<K>,
        fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> AttachmentInformation where Source.Element == Data {
        let caller = Caller(fileID: fileID, line: line)
        let place = try await AttachmentPlace(core, key, in: bucket, caller)
        return try await Addition(place).run(source)
    }

    /// Removes an attachment, if there is one under the key.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: As `remove(_:in:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func remove<K>(_ key: K, in bucket: AttachmentBucket<K>) throws -> Bool {
        try write { tx in try tx.remove(key, in: bucket) }
    }

    /// Removes an attachment, if there is one under the key.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func remove<K>(_ key: K, in bucket: AttachmentBucket<K>) async throws -> Bool {
        try await write { tx in try tx.remove(key, in: bucket) }
    }
}

// MARK: Reading

extension Store {
    /// The bytes of an attachment, in chunks, on one snapshot of the store.
    ///
    /// Every loop over it is a separate read, as one over ``chunks(of:in:row:maximumByteCount:)``.
    /// After the last chunk of a whole read the loop throws `StoreError` `.damaged` instead of
    /// ending if the digest of the bytes is not the recorded one. It throws `.notFound` if there is
    /// no attachment under the key, `.misuse` for a range outside it, `.damaged` instead of a chunk
    /// that is missing or fails authentication, and `CancellationError`.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - range: The bytes to read; `nil` for all.
    /// - Complexity: O(1) memory: a chunk has 256 KiB or less.
    public func chunks<K>(
        of key: K, in bucket: AttachmentBucket<K>, range: Range<Int>? = nil
    ) -> AttachmentChunks {
        AttachmentChunks(core: core) { tx, channel in
            try tx.withAttachment(key, in: bucket) { reader in
                if let range {
                    try reader.forEachChunk(in: range) { try channel.putBlocking($0) }
                } else {
                    try reader.forEachChunk { try channel.putBlocking($0) }
                }
            }
        }
    }

    /// The size and the digest of an attachment; `nil` if there is none under the key.
    ///
    /// - Throws: As `attachment(_:in:)` of a transaction, and as `read(_:)`.
    public func attachment<K>(
        _ key: K, in bucket: AttachmentBucket<K>
    ) throws -> AttachmentInformation? {
        try read { tx in try tx.attachment(key, in: bucket) }
    }

    /// The size and the digest of an attachment; `nil` if there is none under the key.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func attachment<K>(
        _ key: K, in bucket: AttachmentBucket<K>
    ) async throws -> AttachmentInformation? {
        try await read { tx in try tx.attachment(key, in: bucket) }
    }
}
