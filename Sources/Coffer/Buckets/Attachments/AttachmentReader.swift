#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An attachment that is open for reading, piece by piece, whatever its size.
///
/// It is valid only inside the closure of `withAttachment`, and so inside one transaction. It hands
/// out no byte before the pages that the byte came from are known to be authentic.
public struct AttachmentReader: ~Copyable {
    private let contents: Contents
    private let content: Contents.Content
    private let access: TransactionAccess
    /// The size of the attachment, and the digest of its bytes.
    public let information: AttachmentInformation

    init(
        _ contents: Contents, _ content: Contents.Content, sha256: Data, _ access: TransactionAccess
    ) {
        (self.contents, self.content, self.access) = (contents, content, access)
        information = AttachmentInformation(byteCount: content.byteCount, sha256: sha256)
    }

    /// How many bytes the attachment has.
    public var byteCount: Int { information.byteCount }

    /// A part of the attachment. Its digest is not checked, because that needs all bytes.
    ///
    /// - Throws: `StoreError` `.misuse` for a range outside the attachment; `.damaged` if a chunk
    ///   is missing, or a page fails authentication.
    /// - Complexity: O(*range*) memory, and time for the chunks of the range.
    public func bytes(in range: Range<Int>) throws -> Data {
        try content.require(range)
        var bytes = Data(capacity: range.count)
        try forEachChunk(in: range) { bytes.append($0) }
        return bytes
    }

    /// Passes a part of the attachment to `body`, chunk by chunk.
    ///
    /// - Parameters:
    ///   - range: Which bytes.
    ///   - body: Receives each chunk, of 256 KiB or less.
    /// - Throws: What `body` throws; otherwise as `bytes(in:)`.
    /// - Complexity: O(*range*) time, O(1) memory.
    public func forEachChunk(in range: Range<Int>, _ body: (Data) throws -> Void) throws {
        try content.require(range)
        try contents.read(content, range) { bytes in
            // A cancelled task stops here.
            _ = try access.connection()
            try body(bytes)
        }
    }

    /// Passes the attachment to `body` in chunks, from start to end, and then compares the digest
    /// of all bytes; an empty attachment makes no call.
    ///
    /// - Parameter body: Receives each chunk, of 256 KiB or less.
    /// - Throws: What `body` throws; `StoreError` `.damaged` if a chunk is missing or a page fails
    ///   authentication, and after the last chunk if these are not the bytes that were stored.
    /// - Complexity: O(*byteCount*) time, O(1) memory.
    public func forEachChunk(_ body: (Data) throws -> Void) throws {
        try contents.readWhole(content, information.sha256) { bytes in
            // A cancelled task stops here.
            _ = try access.connection()
            try body(bytes)
        }
    }
}

extension Contents.Content {
    /// - Throws: `.misuse` for a range that is not within the content.
    func require(_ range: Range<Int>) throws(StoreError) {
        guard 0...byteCount ~= range.lowerBound, range.upperBound <= byteCount else {
            throw StoreError(
                .misuse, "the bytes \(range) are not within an attachment of \(byteCount)")
        }
    }
}

/// The bytes of one attachment, as a sequence of chunks. See `Store.chunks(of:in:range:)`.
public struct AttachmentChunks: AsyncSequence, Sendable {
    typealias Body = @Sendable (inout ReadTransaction, Channel<Data>) throws -> Void

    let core: StoreCore
    let body: Body

    /// Begins a loop over the attachment. It reads nothing until its first chunk is requested.
    public func makeAsyncIterator() -> Iterator {
        Iterator(loop: ReadLoop<Data>(core, body))
    }

    /// One loop over the attachment.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: ReadLoop<Data>

        /// Waits for the next chunk; `nil` at the end of the attachment.
        ///
        /// - Throws: See `Store.chunks(of:in:range:)`.
        public func next() async throws -> Data? {
            try await loop.next()
        }
    }
}
