import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Bytes that are added at the end of an attachment, in one transaction.
struct Addition<Key: BucketKey> {
    /// How often the digest is read before it gives up, because others change the attachment.
    private static var attemptCount: Int { 8 }

    private let core: StoreCore
    private let bucket: Bucket<Key, Int64>
    private let key: Value
    private let caller: Caller

    /// What an attempt adds to: a content as it was read, and the digest of its bytes.
    private struct Beginning: Sendable {
        let content: Contents.Content?
        let hash: SHA256
    }

    /// Begins; writes nothing.
    ///
    /// - Throws: As `Upload.init`.
    init(
        _ core: StoreCore, _ key: Key, in bucket: AttachmentBucket<Key>, _ caller: Caller
    ) async throws {
        (self.core, self.bucket, self.caller) = (core, bucket.entries, caller)
        self.key = try bucket.entries.plan.stored(key)
        try core.requireWritable()
        try await core.read { [bucket = self.bucket] tx in
            _ = try tx.table(of: bucket)
            _ = try ContentTables(tx.connection()).exist()
        }
    }

    func run<Source: AsyncSequence>(
        _ source: Source
    ) async throws -> AttachmentInformation where Source.Element == Data {
        var spool = BlobSpool(beside: core.pool.file?.location)
        defer { spool.discard() }
        for try await piece in source {
            try Task.checkCancellation()
            try await spool.append(piece)
        }
        // A source that ends because the task was cancelled is not complete.
        try Task.checkCancellation()
        for _ in 0..<Self.attemptCount {
            let beginning = try await beginning()
            if let information = try await add(spool, to: beginning) { return information }
        }
        throw StoreError(
            .conflict, "others changed the attachment each time that its digest was read",
            hint: "Nothing was added. Try again.", table: bucket.table)
    }

    /// Reads the attachment as it is now.
    private func beginning() async throws -> Beginning {
        let (bucket, key) = (bucket, key)
        return try await core.read { tx in
            let connection = try tx.connection()
            guard let contents = try Contents(connection),
                let id = try Self.id(of: key, bucket, connection)
            else { return Beginning(content: nil, hash: SHA256()) }
            let (content, sha256) = try contents.whole(id)
            var hash = SHA256()
            try contents.readWhole(content, sha256) { bytes in
                _ = try tx.connection()
                hash.update(data: bytes)
            }
            return Beginning(content: content, hash: hash)
        }
    }

    /// Adds the bytes, unless the attachment is another one by now.
    ///
    /// - Returns: `nil` if it is.
    private func add(
        _ spool: BlobSpool, to beginning: Beginning
    ) async throws -> AttachmentInformation? {
        let (bucket, key) = (bucket, key)
        let request = WriteQueue.Request(isSharing: false, caller: caller)
        return try await core.write(request) { tx in
            let connection = try tx.connection()
            let contents = try Contents(making: connection)
            let id = try Self.id(of: key, bucket, connection)
            let found = try id.map { id throws(StoreError) in try contents.whole(id).content }
            guard found?.id == beginning.content?.id,
                found?.byteCount == beginning.content?.byteCount
            else { return nil }
            var content =
                try found
                ?? contents.begin(for: key, in: bucket.name, owner: UploadOwner())
            var hash = beginning.hash
            try spool.forEachChunk { bytes in
                _ = try tx.connection()
                hash.update(data: bytes)
                try contents.append(bytes, to: &content)
            }
            guard let id else {
                return try contents.finish(content, hash, as: key, in: bucket, .standard)
            }
            // Tells observers and a history of the change.
            try BucketTable(connection, bucket.plan).replace(key, with: .integer(id))
            return try contents.finish(content, hash)
        }
    }

    private static func id(
        of key: Value, _ bucket: Bucket<Key, Int64>, _ connection: Connection
    ) throws(StoreError) -> Int64? {
        guard let stored = try BucketTable(connection, bucket.plan).value(key) else { return nil }
        return try bucket.coder.value(stored, in: bucket.plan)
    }
}
