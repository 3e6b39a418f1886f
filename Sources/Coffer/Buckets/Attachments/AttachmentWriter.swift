import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An attachment that is being written, piece by piece, in one transaction.
///
/// It is valid only inside the closure of `writeAttachment`.
public struct AttachmentWriter: ~Copyable {
    private let contents: Contents
    private let access: TransactionAccess
    private var content: Contents.Content
    private var hash = SHA256()
    /// The last bytes, which fill no chunk yet.
    private var rest = Data()
    /// Why bytes could not be stored. The attachment is not whole then.
    private var failure: StoreError?

    init(_ contents: Contents, _ content: Contents.Content, _ access: TransactionAccess) {
        (self.contents, self.content, self.access) = (contents, content, access)
    }

    /// How many bytes were added.
    public var byteCount: Int { content.byteCount + rest.count }

    /// Adds bytes at the end.
    ///
    /// - Throws: `StoreError` `.full`, `.io`, `.damaged`; `.tooBig` beyond 4 TiB. Once it has
    ///   thrown, the attachment is not stored, also if the error is caught.
    /// - Complexity: O(*bytes*).
    public mutating func append(_ bytes: Data) throws {
        do throws(StoreError) {
            if let failure { throw failure }
            // A cancelled task stops here.
            _ = try access.connection()
            try store(bytes)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func store(_ bytes: Data) throws(StoreError) {
        hash.update(data: bytes)
        let size = Contents.chunkByteCount
        var bytes = bytes
        if !rest.isEmpty {
            let part = bytes.prefix(size - rest.count)
            rest.append(part)
            bytes = bytes.dropFirst(part.count)
            guard rest.count == size else { return }
            try contents.append(rest, to: &content)
        }
        let count = bytes.count / size * size
        if count > 0 { try contents.append(bytes.prefix(count), to: &content) }
        // A copy: a slice would keep all bytes in memory.
        rest = Data(bytes.dropFirst(count))
    }

    /// Stores the last bytes.
    ///
    /// - Throws: As `append(_:)`.
    mutating func finish() throws(StoreError) -> (content: Contents.Content, hash: SHA256) {
        if let failure { throw failure }
        if !rest.isEmpty { try contents.append(rest, to: &content) }
        return (content, hash)
    }
}
