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

    private let place: AttachmentPlace<Key>

    /// The attachment as an attempt has read it: its content, and the digest of its bytes.
    private struct Beginning: Sendable {
        /// `nil` if there is no attachment.
        let content: Contents.Content?
        let hash: SHA256
    }

    /// Begins; writes nothing.
    init(_ place: AttachmentPlace<Key>) {
        self.place = place
    }

    func run<Source: AsyncSequence>(
        _ source: Source
    ) async throws -> AttachmentInformation where Source.Element == Data {
        var spool = BlobSpool(beside: place.core.pool.file?.location)
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
            hint: "Nothing was added. Try again.", table: place.bucket.table)
    }

    /// Reads the attachment as it is now.
    private func beginning() async throws -> Beginning {
        let place = place
        return try await place.core.read { tx in
            let connection = try tx.connection()
            guard let contents = try Contents(connection),
                let id = try Self.id(place, connection)
            else { return Beginning(content: nil, hash: SHA256()) }
            let (content, sha256) = try contents.whole(id)
            // A cancelled task stops here.
            let hash = try contents.readWhole(content, sha256) { _ in _ = try tx.connection() }
            return Beginning(content: content, hash: hash)
        }
    }

    /// Adds the bytes, unless the attachment is another one by now.
    ///
    /// - Returns: `nil` if it is.
    private func add(
        _ spool: BlobSpool, to beginning: Beginning
    ) async throws -> AttachmentInformation? {
        let place = place
        return try await place.write { tx in
            let connection = try tx.connection()
            let contents = try Contents(making: connection)
            let id = try Self.id(place, connection)
            let found = try id.map { id throws(StoreError) in try contents.whole(id).content }
            guard found?.id == beginning.content?.id,
                found?.byteCount == beginning.content?.byteCount
            else { return nil }
            var content =
                try found
                ?? contents.begin(
                    for: place.key, in: place.bucket.name, owner: UUID())
            var hash = beginning.hash
            try spool.forEachChunk { bytes in
                _ = try tx.connection()
                hash.update(data: bytes)
                try contents.append(bytes, to: &content)
            }
            guard let id else {
                return try contents.finish(
                    content, hash, as: place.key, in: place.bucket, .standard)
            }
            // Tells observers and a history of the change.
            let table = try BucketTable(connection, place.bucket.plan)
            guard try table.replace(place.key, with: .integer(id)) else {
                throw StoreError(
                    .conflict, "the attachment was removed while bytes were added",
                    table: place.bucket.table)
            }
            return try contents.finish(content, hash)
        }
    }

    private static func id(
        _ place: AttachmentPlace<Key>, _ connection: Connection
    ) throws(StoreError) -> Int64? {
        let plan = place.bucket.plan
        guard let stored = try BucketTable(connection, plan).value(place.key) else { return nil }
        return try place.bucket.coder.value(stored, in: plan)
    }
}
