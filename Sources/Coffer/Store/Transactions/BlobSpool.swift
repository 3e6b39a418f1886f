#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a stream, put aside until all of them are there: nobody waits for a source but who
/// asked for it.
///
/// Up to a mebibyte of them is in memory, the rest in a `SpoolFile`. Without a file of its own the
/// store is in memory, and so are they.
struct BlobSpool: Sendable {
    private let location: FileLocation?
    private var file: SpoolFile?
    /// The bytes behind those of the file, never more than one chunk if there can be one.
    private var rest = Data()
    private(set) var byteCount = 0

    init(beside location: FileLocation?) {
        self.location = location
    }

    /// Adds bytes at the end.
    ///
    /// - Throws: `StoreError` `.full`, `.io`.
    mutating func append(_ bytes: Data) async throws(StoreError) {
        byteCount += bytes.count
        guard let location else { return rest.append(bytes) }
        var start = bytes.startIndex
        while start < bytes.endIndex {
            if rest.count == SpoolFile.chunkByteCount { try await putAside(location) }
            let end = min(start + SpoolFile.chunkByteCount - rest.count, bytes.endIndex)
            rest.append(bytes[start..<end])
            start = end
        }
    }

    private mutating func putAside(_ location: FileLocation) async throws(StoreError) {
        let (known, chunk) = (file, rest)
        // A disk blocks.
        file = try await Store.offPool { () throws(StoreError) -> SpoolFile in
            let file: SpoolFile
            if let known { file = known } else { file = try SpoolFile(beside: location) }
            try file.append(chunk)
            return file
        }
        rest = Data()
    }

    /// Gives all bytes back, in chunks and known to be what was added.
    ///
    /// - Throws: `StoreError` `.io`, and what `body` throws.
    func forEachChunk(_ body: (Data) throws -> Void) throws {
        if let file {
            for number in 0..<file.chunkCount { try body(file.chunk(number)) }
        }
        try body(rest)
    }
}
