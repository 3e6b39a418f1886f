#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A named set of byte sequences of any size under typed keys: pictures, recordings, documents.
///
/// ```swift
/// let photos = AttachmentBucket<UUID>("photos")
/// try await store.set(contentsOf: request.body, for: id, in: photos)
/// for try await chunk in store.chunks(of: id, in: photos) {
///     try await connection.send(chunk)
/// }
/// ```
///
/// The bytes are kept in chunks, so neither writing nor reading needs memory for all of them. Their
/// number and their SHA-256 are recorded; a whole read checks both at its end. An attachment is
/// replaced at once: a reader sees the old bytes or the new ones, whole.
///
/// No verb sees an attachment once it was removed or replaced, or has expired. The store frees its
/// chunks later, some at a time, when it sweeps expired entries
/// (``Configuration/expirySweepInterval``). If the process ends before that, a later process frees
/// them when it uploads or removes an attachment, or calls `sweepExpiredEntries()`.
///
/// The attachments of records are removed with them: see `init(_:of:lifetime:)`.
///
/// A bucket of attachments is a bucket with other values: ``Reading/buckets()`` lists it, with the
/// codec `attachment`, and `renameBucket` and `dropBucket` work on it. `copyBucket` does not.
public struct AttachmentBucket<Key: BucketKey>: Sendable {
    /// The id of each attachment's content. The bucket that `changes(in:)` and triggers see.
    let entries: Bucket<Key, Int64>

    /// The name given to the bucket.
    public var name: String { entries.name }
    /// How long an attachment lives that is set without an ``Expiration`` of its own; `nil` for
    /// attachments that do not expire. See ``Bucket/lifetime``.
    public var lifetime: Duration? { entries.lifetime }

    /// Names a bucket of attachments; reads and changes no store.
    ///
    /// - Parameters:
    ///   - name: As in ``Bucket/init(_:lifetime:)``.
    ///   - lifetime: How long an attachment lives that is set without an ``Expiration`` of its own;
    ///     `nil` for attachments that stay.
    public init(_ name: String, lifetime: Duration? = nil) {
        self.init(name, recordKey: nil, lifetime: lifetime)
    }

    init(_ name: String, recordKey: Result<RecordKey, StoreError>?, lifetime: Duration?) {
        entries = Bucket(name, coder: .contentID, lifetime: lifetime, recordKey: recordKey)
    }
}

extension ValueCoder<Int64> {
    /// The coder of the id of an attachment's content.
    fileprivate static let contentID = Self(coding: .attachment) { id throws(StoreError) in
        .integer(id)
    } decode: { value throws(StoreError) in
        guard case .integer(let id) = value else { throw .mismatch(value, Int64.self) }
        return id
    }
}

/// The size of an attachment, and the digest of its bytes.
public struct AttachmentInformation: Sendable, Hashable {
    /// How many bytes it has.
    public let byteCount: Int
    /// The SHA-256 of its bytes: 32 bytes.
    public let sha256: Data
}

/// An upload that has broken off, and can be resumed where it ended.
///
/// ```swift
/// let upload = try await store.read { tx in try tx.uploads(in: films).first { $0.key == id } }
/// // Ask the sender for the bytes from upload.byteCount on.
/// try await store.resume(upload, contentsOf: rest, in: films)
/// ```
///
/// It is kept for a day after its last byte came, and is then removed by the sweep of expired
/// entries.
public struct AttachmentUpload<Key: BucketKey>: Sendable {
    /// The key for which the upload was begun.
    public let key: Key
    /// How many bytes the store has.
    public let byteCount: Int
    let contentID: Int64
}
