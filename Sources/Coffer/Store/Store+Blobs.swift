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
    /// Every loop over it is a read of its own, from its first chunk until the loop ends, also by
    /// `break` or because its task is cancelled. Until then it uses one of `readerCountMax`
    /// connections. Without WAL it holds up every write: a loop that takes longer than
    /// `waitTimeout` for one chunk ends with `.busy` there.
    ///
    /// The loop throws `StoreError` `.damaged` before a chunk that is not authentic, `.cancelled`,
    /// and what `withBlob(_:in:row:_:)` throws.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - byteCountMax: Bytes of each chunk but the last, which may have fewer; at least 1.
    /// - Complexity: O(*byteCountMax*) memory.
    public func chunks(
        of column: String, in table: String, row: Int64, byteCountMax: Int = 64 << 10
    ) -> BlobChunks {
        let cell = BlobCell(schema: "main", table: table, column: column, row: row)
        return BlobChunks(core: core, cell: cell, byteCountMax: byteCountMax)
    }

    /// Puts a blob into one cell of a row, from a stream, in one transaction.
    ///
    /// ```swift
    /// try await store.writeBlob("video", in: "film", row: 7, byteCount: size, from: upload)
    /// ```
    ///
    /// The stream is read while the transaction is open, so other writes wait for it: a chunk that
    /// takes longer than `waitTimeout` ends it with `.busy`.
    ///
    /// - Parameters:
    ///   - column: The column; its old value, of any type, is replaced.
    ///   - table: The table, which has row ids. In its last column a blob costs no memory; the
    ///     engine keeps it as a whole if another value follows.
    ///   - row: The id of a row that is there.
    ///   - byteCount: The size of the blob.
    ///   - source: Gives exactly `byteCount` bytes, in chunks of any size.
    /// - Throws: What `source` throws; `StoreError` `.mismatch` if it gives more or fewer bytes,
    ///   `.notFound` if there is no such row, `.cancelled`, `.busy`, `.tooBig`, and what
    ///   `withWritableBlob(_:in:row:_:)` throws. Then the cell is as it was.
    /// - Complexity: O(*chunk*) memory.
    public func writeBlob<Source: AsyncSequence>(
        _ column: String, in table: String, row: Int64, byteCount: Int, from source: Source
    ) async throws where Source.Element == Data {
        let cell = BlobCell(schema: "main", table: table, column: column, row: row)
        let channel = Channel<Data>(timeout: core.configuration.waitTimeout)
        async let written: Void = core.receive(cell, byteCount: byteCount, from: channel)
        do {
            for try await chunk in source { try await channel.put(chunk) }
            // A source that ends because the task was cancelled has not ended by itself.
            if Task.isCancelled { throw StoreError.streamCancelled }
            channel.finish()
        } catch {
            channel.fail(error is CancellationError ? StoreError.streamCancelled : error)
        }
        try await written
    }
}

/// The bytes of one blob, as a sequence of chunks. See `Store.chunks(of:in:row:byteCountMax:)`.
public struct BlobChunks: AsyncSequence, Sendable {
    let core: StoreCore
    let cell: BlobCell
    let byteCountMax: Int

    /// Begins a loop over the blob. Nothing is read before its first chunk is asked for.
    public func makeAsyncIterator() -> Iterator {
        let (cell, byteCountMax) = (cell, byteCountMax)
        let loop = ReadLoop<Data>(core) { tx, channel in
            try tx.withBlob(cell.column, in: cell.table, row: cell.row) { blob in
                try blob.forEachChunk(byteCountMax: byteCountMax) {
                    try channel.putBlocking(Data($0))
                }
            }
        }
        return Iterator(loop: loop)
    }

    /// One loop over the blob.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: ReadLoop<Data>

        /// The next chunk, `nil` at the end of the blob.
        ///
        /// - Throws: As `Store.chunks(of:in:row:byteCountMax:)` says.
        public func next() async throws -> Data? {
            try await loop.next()
        }
    }
}

extension StoreCore {
    /// Puts what comes out of the channel into a cell, in one write.
    fileprivate func receive(
        _ cell: BlobCell, byteCount: Int, from channel: Channel<Data>
    ) async throws {
        do {
            try await write(.alone) { tx in
                tx.scope.whenStopped { channel.fail($0) }
                try tx.replace(cell, byteCount: byteCount, from: channel)
            }
        } catch {
            channel.fail(error)
            throw error
        }
    }
}

extension WriteTransaction {
    fileprivate func replace(
        _ cell: BlobCell, byteCount: Int, from channel: Channel<Data>
    ) throws {
        guard byteCount >= 0 else { throw cell.error(.misuse, "a blob has 0 bytes or more") }
        let rowID = try connection().rowIDName(cell)
        let sql = SQL(
            text: "UPDATE \(try cell.tableName()) SET "
                + "\(try cell.column.quotedIdentifier()) = zeroblob(?) WHERE \(rowID) = ?",
            arguments: [.integer(Int64(byteCount)), .integer(cell.row)])
        guard try execute(sql) == 1 else {
            throw cell.error(.notFound, "\(cell.table) has no row \(cell.row)")
        }
        try withWritableBlob(cell.column, in: cell.table, row: cell.row) { blob in
            var offset = 0
            while let chunk = try channel.takeBlocking() {
                guard chunk.count <= byteCount - offset else {
                    throw cell.error(.mismatch, "the source gave more than \(byteCount) bytes")
                }
                try blob.write(chunk, at: offset)
                offset += chunk.count
            }
            guard offset == byteCount else {
                throw cell.error(.mismatch, "the source gave \(offset) of \(byteCount) bytes")
            }
        }
    }
}
