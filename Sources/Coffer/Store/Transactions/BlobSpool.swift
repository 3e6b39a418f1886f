#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Collects the bytes of a stream until all of them are there, so that a slow source delays only
/// its own caller.
///
/// Up to one mebibyte is in memory, the rest in a `SpoolFile`. If the store has no file, all bytes
/// stay in memory, as the store does.
struct BlobSpool: Sendable {
    private let location: FileLocation?
    private var file: SpoolFile?
    /// The bytes that follow those of the file: at most one chunk, if the store has a file.
    private var rest = Data()
    private(set) var byteCount = 0

    init(beside location: FileLocation?) {
        self.location = location
    }

    /// Adds bytes at the end. What exceeds one chunk goes into the file, if the store has one.
    ///
    /// - Throws: `StoreError` `.full` if the disk is full, `.io` if the file cannot be created or
    ///   written.
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
        // Disk access blocks.
        file = try await Store.offPool { () throws(StoreError) -> SpoolFile in
            let file: SpoolFile
            if let known { file = known } else { file = try SpoolFile(beside: location) }
            try file.append(chunk)
            return file
        }
        rest = Data()
    }

    /// Gives the room on the disk back. Afterwards the bytes cannot be read.
    ///
    /// A thread that has resumed the caller may hold the file a moment longer.
    func discard() {
        file?.discard()
    }

    /// Passes all bytes to `body`, in chunks, in the order in which they were added.
    ///
    /// - Throws: What `body` throws; `StoreError` `.io` if the file cannot be read, or if its bytes
    ///   are not those that were added.
    func forEachChunk(_ body: (Data) throws -> Void) throws {
        if let file {
            for number in 0..<file.chunkCount { try body(file.chunk(number)) }
        }
        try body(rest)
    }
}
