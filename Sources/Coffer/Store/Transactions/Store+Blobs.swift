#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Store {
    /// The bytes of one blob, in chunks, on one snapshot of the store.
    ///
    /// ```swift
    /// for try await chunk in store.chunks(of: "video", in: "film", row: 7) {
    ///     try await connection.send(chunk)
    /// }
    /// ```
    ///
    /// Every loop over it is a separate read. It lasts from the loop's first chunk until the loop
    /// ends, also by `break` or by cancelling its task. Until then it uses one of
    /// `maximumReaderCount` connections. In a writable store without WAL it holds up every write: a
    /// loop that takes longer than `waitTimeout` for one chunk ends with `.busy` there.
    ///
    /// The loop throws `StoreError` `.damaged` instead of a chunk whose pages fail authentication,
    /// `CancellationError` if its task is cancelled, and the errors of `withBlob(_:in:row:_:)`.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - maximumByteCount: The size of each chunk in bytes, at least 1. The last chunk may be
    ///     smaller.
    /// - Complexity: O(*maximumByteCount*) memory.
    public func chunks(
        of column: String, in table: String, row: Int64, maximumByteCount: Int = 64 << 10
    ) -> BlobChunks {
        let cell = BlobCell(schema: "main", table: table, column: column, row: row)
        return BlobChunks(core: core, maximumByteCount: maximumByteCount) { _ in cell }
    }

    /// Writes a blob into one cell of a row, from a stream, in one transaction.
    ///
    /// ```swift
    /// let upload = request.body  // as slow as its network
    /// try await store.writeBlob("video", in: "film", row: 7, byteCount: size, from: upload)
    /// ```
    ///
    /// The stream is first read to its end, and nothing else waits for it: the source may take its
    /// time, and use the store. Then the blob is written at once. Until then up to 1 MiB of it is
    /// in memory, and the rest is in an unnamed file next to the store's, encrypted under a key
    /// that is never written. A store without a file keeps all of it in memory.
    ///
    /// - Parameters:
    ///   - column: The column; its old value, of any type, is replaced.
    ///   - table: The table, which has row ids. A blob in its last column costs no memory; the
    ///     engine keeps the whole blob in memory if another value follows.
    ///   - row: The id of an existing row.
    ///   - byteCount: The size of the blob.
    ///   - source: Gives exactly `byteCount` bytes, in chunks of any size.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Throws: What `source` throws; `StoreError` `.mismatch` if it gives more or fewer bytes,
    ///   `.notFound` if there is no such row, `.tooBig`, `.full` or `.io` if there is no room to
    ///   buffer it, `CancellationError`, `.busy`, and the errors of
    ///   `withWritableBlob(_:in:row:_:)`. The cell is then as it was. Errors that do not depend on
    ///   the bytes are thrown before the first byte is read.
    /// - Complexity: O(*chunk* + 1 MiB) memory; temporary disk space of the size of the blob.
    public func writeBlob<Source: AsyncSequence>(
        _ column: String, in table: String, row: Int64, byteCount: Int, from source: Source,
        fileID: StaticString = #fileID, line: UInt = #line
    ) async throws where Source.Element == Data {
        let cell = BlobCell(schema: "main", table: table, column: column, row: row)
        let caller = Caller(fileID: fileID, line: line)
        try await core.writeBlob(byteCount: byteCount, from: source, caller) { _ in cell }
    }
}

/// Finds the cell of a blob in a transaction.
typealias BlobPlace = @Sendable (Connection) throws(StoreError) -> BlobCell

/// The bytes of one blob, as a sequence of chunks. See `Store.chunks(of:in:row:maximumByteCount:)`.
public struct BlobChunks: AsyncSequence, Sendable {
    let core: StoreCore
    let maximumByteCount: Int
    let place: BlobPlace

    /// Begins a loop over the blob. It reads nothing until its first chunk is requested.
    public func makeAsyncIterator() -> Iterator {
        let (place, maximumByteCount) = (place, maximumByteCount)
        let loop = ReadLoop<Data>(core) { tx, channel in
            try tx.withBlob(place) { blob in
                try blob.forEachChunk(maximumByteCount: maximumByteCount) {
                    try channel.putBlocking(Data($0))
                }
            }
        }
        return Iterator(loop: loop)
    }

    /// One loop over the blob.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: ReadLoop<Data>

        /// Waits for the next chunk; `nil` at the end of the blob.
        ///
        /// - Throws: See `Store.chunks(of:in:row:maximumByteCount:)`.
        public func next() async throws -> Data? {
            try await loop.next()
        }
    }
}

extension StoreCore {
    /// Collects the source, then writes its bytes into the cell in one transaction.
    ///
    /// That transaction looks for the cell again, because its row may have gone meanwhile, and
    /// another may have got the row id.
    func writeBlob<Source: AsyncSequence>(
        byteCount: Int, from source: Source, _ caller: Caller, into place: @escaping BlobPlace
    ) async throws where Source.Element == Data {
        let cell = try await requireRoom(at: place, byteCount: byteCount)
        var spool = BlobSpool(beside: pool.file?.location)
        defer { spool.discard() }
        for try await chunk in source {
            try Task.checkCancellation()
            guard chunk.count <= byteCount - spool.byteCount else {
                throw cell.error(.mismatch, "the source gave more than \(byteCount) bytes")
            }
            try await spool.append(chunk)
        }
        // A source that ends because the task was cancelled is not complete.
        try Task.checkCancellation()
        guard spool.byteCount == byteCount else {
            throw cell.error(
                .mismatch, "the source gave \(spool.byteCount) of \(byteCount) bytes")
        }
        let request = WriteQueue.Request(isSharing: false, caller: caller)
        try await write(request) { [spool] tx in
            try tx.replace(place(tx.connection()), with: spool)
        }
    }

    /// Finds the cell, and checks whether a blob of this size can be written into it, as far as is
    /// known beforehand.
    ///
    /// - Throws: `.misuse` for a negative size; `.readOnly` for a store that was opened for reading
    ///   only; `.notFound` if there is no such row; `.tooBig` if a value cannot have that size;
    ///   otherwise as `place`, `storageClass(of:in:row:)` and `read(_:)`.
    private func requireRoom(
        at place: @escaping BlobPlace, byteCount: Int
    ) async throws -> BlobCell {
        guard byteCount >= 0 else {
            throw StoreError(.misuse, "the size of a blob must not be negative")
        }
        try requireWritable()
        return try await read { tx in
            let connection = try tx.connection()
            let cell = try place(connection)
            guard try connection.storageClass(cell) != nil else { throw cell.missing }
            guard try byteCount <= connection.limit(.length) else {
                throw cell.error(.tooBig, "\(byteCount) bytes are more than a value can have")
            }
            return cell
        }
    }
}

extension BlobCell {
    fileprivate var missing: StoreError { error(.notFound, "\(table) has no row \(row)") }
}

extension WriteTransaction {
    fileprivate func replace(_ cell: BlobCell, with spool: BlobSpool) throws {
        let rowID = try connection().rowIDName(cell)
        let sql = SQL(
            text: "UPDATE \(try cell.tableName()) SET "
                + "\(try cell.column.quotedIdentifier()) = zeroblob(?) WHERE \(rowID) = ?",
            arguments: [.integer(Int64(spool.byteCount)), .integer(cell.row)])
        guard try execute(sql) == 1 else { throw cell.missing }
        try withWritableBlob(cell) { blob in
            var offset = 0
            try spool.forEachChunk { chunk in
                // A cancelled task stops here.
                _ = try connection()
                try blob.write(chunk, at: offset)
                offset += chunk.count
            }
        }
    }
}
