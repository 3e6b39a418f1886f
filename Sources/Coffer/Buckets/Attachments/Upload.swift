import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One upload: collects the bytes of a source, and writes them in batches, each in a transaction of
/// its own.
///
/// Until the last transaction the bytes belong to an unfinished content, which no verb sees. The
/// last one makes it that of the entry. Only this upload may add to it, as long as nobody resumes
/// it elsewhere. A content that ends in one batch needs one transaction.
struct Upload<Key: BucketKey> {
    /// Bytes of each transaction but the last: as much memory as an upload needs.
    private static var batchByteCount: Int { 16 * Contents.chunkByteCount }

    private let place: AttachmentPlace<Key>
    private let owner = UUID()
    /// `nil` until the first batch is written.
    private var content: Contents.Content?
    /// Of all bytes that came.
    private var hash = SHA256()
    /// The bytes that are not written yet.
    private var batch = Data()

    /// Begins an upload; writes nothing.
    init(_ place: AttachmentPlace<Key>) {
        self.place = place
    }

    /// Takes over an upload that broke off, and reads the bytes that it has.
    ///
    /// - Throws: `.notFound` if the store does not have the upload; `.conflict` if bytes were added
    ///   to it since it was listed; errors of reading and writing.
    mutating func resume(_ upload: AttachmentUpload<Key>) async throws {
        let (bucket, key, owner) = (place.bucket, place.key, owner)
        content = try await place.write { tx in
            guard let contents = try Contents(tx.connection()),
                let found = try contents.unfinished(of: bucket.name).first(where: {
                    $0.content.id == upload.contentID && $0.key == key
                })
            else {
                throw StoreError(
                    .notFound, "there is no such upload",
                    hint: "It has ended, was discarded, or got no byte for a day. Begin anew.",
                    table: ContentTables.contents)
            }
            guard found.content.byteCount == upload.byteCount else {
                throw StoreError(
                    .conflict,
                    "the upload has \(found.content.byteCount) bytes by now, and not "
                        + "\(upload.byteCount)",
                    hint: "Ask uploads(in:) again, and go on from there.",
                    table: ContentTables.contents)
            }
            try contents.give(found.content, to: owner)
            return found.content
        }
        guard let content else { return }
        hash = try await place.core.read { tx in
            var hash = SHA256()
            try Contents(tx.connection())?.read(content, 0..<content.byteCount) { bytes in
                _ = try tx.connection()
                hash.update(data: bytes)
            }
            return hash
        }
    }

    /// Uploads all bytes of a source.
    ///
    /// - Parameters:
    ///   - byteCount: The bytes that the whole must have; `nil` if that is not known.
    ///   - isResumable: Whether the bytes are kept if it breaks off.
    /// - Throws: What `source` throws; `.mismatch` for another number of bytes; `.conflict` if the
    ///   upload was resumed elsewhere; errors of writing; `CancellationError`.
    mutating func run<Source: AsyncSequence>(
        _ source: Source, byteCount: Int?, isResumable: Bool, _ expiration: Expiration
    ) async throws -> AttachmentInformation where Source.Element == Data {
        do {
            // From here on the file knows of the upload, and ends it with the record.
            if content == nil, place.bucket.plan.recordKey != nil { try await flush() }
            for try await piece in source {
                try Task.checkCancellation()
                try requireAtMost(byteCount, piece.count)
                hash.update(data: piece)
                var rest = piece
                while !rest.isEmpty {
                    let part = rest.prefix(Self.batchByteCount - batch.count)
                    batch.append(part)
                    rest = rest.dropFirst(part.count)
                    if batch.count == Self.batchByteCount { try await flush() }
                }
            }
            // A source that ends because the task was cancelled is not complete.
            try Task.checkCancellation()
            guard byteCount == nil || byteCount == self.byteCount else {
                throw StoreError(
                    .mismatch, "the source gave \(self.byteCount) of \(byteCount ?? 0) bytes",
                    table: place.bucket.table)
            }
            return try await finish(expiration)
        } catch {
            await giveUp(isKept: isResumable)
            throw error.ofTask
        }
    }

    private var byteCount: Int { (content?.byteCount ?? 0) + batch.count }

    private func requireAtMost(_ byteCount: Int?, _ pieceByteCount: Int) throws(StoreError) {
        guard let byteCount, self.byteCount + pieceByteCount > byteCount else { return }
        throw StoreError(
            .mismatch, "the source gave more than \(byteCount) bytes", table: place.bucket.table)
    }

    /// Writes the batch.
    private mutating func flush() async throws {
        let (batch, added) = (batch, adding())
        content = try await place.write { tx in try added(tx, batch).1 }
        self.batch = Data()
    }

    /// Writes the rest, and makes the content that of the entry.
    private func finish(_ expiration: Expiration) async throws -> AttachmentInformation {
        let (place, batch, hash, added) = (place, batch, hash, adding())
        return try await place.write { tx in
            let (contents, content) = try added(tx, batch)
            return try contents.finish(
                content, hash, as: place.key, in: place.bucket, expiration)
        }
    }

    /// Ends an upload that broke off: keeps its bytes for somebody who resumes it, or gives them
    /// up. If that fails too, the sweep removes them in a day.
    private func giveUp(isKept: Bool) async {
        guard content != nil || isKept && !batch.isEmpty else { return }
        let (place, content, owner, batch, added) = (place, content, owner, batch, adding())
        // A task of its own: this one may be cancelled.
        await Task {
            try? await place.write { tx in
                if isKept {
                    _ = try added(tx, batch)
                } else if let content, let contents = try Contents(tx.connection()) {
                    try contents.remove(contents.require(content, of: owner))
                    try tx.connection().willExpire?(ExpirySweep.work)
                }
            }
        }.value
    }

    /// Adds bytes to the content, which it begins if there is none yet.
    private func adding()
        -> @Sendable (
            borrowing WriteTransaction, Data
        ) throws -> (Contents, Contents.Content)
    {
        let (known, place, owner) = (content, place, owner)
        return { tx, bytes in
            let connection = try tx.connection()
            // An upload for a record that was deleted meanwhile ends now.
            try place.bucket.requireRecord(place.key, connection)
            let contents = try Contents(making: connection)
            var content: Contents.Content
            if let known {
                content = try contents.require(known, of: owner)
            } else {
                content = try contents.begin(
                    for: place.key, in: place.bucket.name, owner: owner)
                // The sweep removes an upload that gets no byte for a day.
                connection.willExpire?(ExpirySweep.work)
            }
            try contents.append(bytes, to: &content)
            return (contents, content)
        }
    }
}

extension Contents {
    /// The unfinished contents of a bucket, with the keys that they will have.
    ///
    /// - Throws: `.mismatch` if a row is not one that Coffer writes; errors of the query.
    func unfinished(of bucket: String) throws(StoreError) -> [(content: Content, key: Value)] {
        let rows = try connection.rows(
            """
            SELECT id, state, chunk, length, sha256, key FROM main."coffer:contents" \
            WHERE state <> 'whole' AND state = 'unfinished' AND bucket = \(bucket) ORDER BY id
            """, isReadOnly: false)
        var found: [(content: Content, key: Value)] = []
        for row in rows { found.append((try Self.content(row), row["key"] ?? .null)) }
        return found
    }
}
