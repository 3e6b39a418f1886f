import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A blob that is open for reading, piece by piece, whatever its size.
///
/// It is valid only inside the closure of `withBlob`, and so inside one transaction. It hands out
/// no byte before the pages that the byte came from are known to be authentic. The corresponding C
/// type is `sqlite3_blob`.
public struct BlobReader: ~Copyable {
    private let blob: OpenBlob

    init(_ blob: OpenBlob) {
        self.blob = blob
    }

    /// Byte count of the value. The corresponding C function is `sqlite3_blob_bytes`.
    public var byteCount: Int { blob.byteCount }

    /// A part of the value.
    ///
    /// - Throws: `StoreError` `.damaged` if a page of it failed authentication; `.misuse` for a
    ///   range outside the value, or if the row was changed since the blob was opened;
    ///   `.rolledBack` if the transaction has ended; `.closed`.
    /// - Complexity: O(*range*) memory, and time for the pages from the value's first page to the
    ///   last page of the range.
    /// - Note: The corresponding C function is `sqlite3_blob_read`.
    public func bytes(in range: Range<Int>) throws -> Data {
        try blob.bytes(in: range)
    }

    /// Fills a buffer with the bytes that start at an offset.
    ///
    /// After an error the buffer holds no usable bytes: a failed read fills it with zeros.
    ///
    /// - Throws: As `bytes(in:)`.
    /// - Note: The corresponding C function is `sqlite3_blob_read`.
    public func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        try blob.read(at: offset, into: buffer)
    }

    /// Passes the value to `body` in chunks, from start to end; an empty value makes no call.
    ///
    /// - Parameters:
    ///   - maximumByteCount: Bytes of each chunk except the last, which may have fewer; at least 1.
    ///   - body: Receives each chunk, which is valid until `body` returns.
    /// - Throws: As `bytes(in:)`, and what `body` throws.
    /// - Complexity: O(*byteCount*) time, O(*maximumByteCount*) memory.
    public func forEachChunk(
        maximumByteCount: Int = 64 << 10, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let ranges = try blob.chunks(maximumByteCount)
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: min(maximumByteCount, byteCount), alignment: 16)
        defer { buffer.deallocate() }
        for range in ranges {
            let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
            try blob.read(at: range.lowerBound, into: chunk)
            try body(UnsafeRawBufferPointer(chunk))
        }
    }
}

/// A blob that is open for writing, piece by piece. Its size cannot change.
///
/// It is valid only inside the closure of `withWritableBlob`. The corresponding C type is
/// `sqlite3_blob`.
public struct BlobWriter: ~Copyable {
    private let blob: OpenBlob

    init(_ blob: OpenBlob) {
        self.blob = blob
    }

    /// Byte count of the value. The corresponding C function is `sqlite3_blob_bytes`.
    public var byteCount: Int { blob.byteCount }

    /// Overwrites the bytes that start at an offset.
    ///
    /// - Throws: `StoreError` `.misuse` for bytes beyond the end of the value, or if the row was
    ///   changed since the blob was opened; `.damaged`, `.full`, `.io`, `.rolledBack`, `.closed`.
    /// - Complexity: O(*bytes*), and time for the pages from the value's first page to the last
    ///   page that is written.
    /// - Note: The corresponding C function is `sqlite3_blob_write`.
    public func write(_ bytes: some ContiguousBytes, at offset: Int) throws {
        try bytes.withUnsafeBytes { try blob.write($0, at: offset) }
    }
}

extension Connection {
    /// Opens one blob for reading while `body` runs.
    ///
    /// ```swift
    /// try connection.withBlob("photo", in: "person", row: 7) { blob in
    ///     try blob.forEachChunk { chunk in hash.update(bufferPointer: chunk) }
    /// }
    /// ```
    ///
    /// Outside a transaction, `body` runs in an implicit one.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - schema: The name of the database, `main` unless you say otherwise.
    ///   - body: The work. An empty blob is opened too; it has 0 bytes.
    /// - Returns: The result of `body`.
    /// - Throws: What `body` throws; `StoreError` `.notFound` if there is no such row, `.mismatch`
    ///   if the value is not a blob (NULL included: see `storageClass(of:in:row:schema:)`), `.sql`
    ///   if there is no such table or column, `.unsupported` for a view, a virtual table or a table
    ///   WITHOUT ROWID, `.damaged`.
    /// - Note: The corresponding C functions are `sqlite3_blob_open` and `sqlite3_blob_close`.
    public func withBlob<T>(
        _ column: String, in table: String, row: Int64, schema: String = "main",
        _ body: (inout BlobReader) throws -> T
    ) throws -> T {
        let cell = BlobCell(schema: schema, table: table, column: column, row: row)
        return try withOpenBlob(cell, isWritable: false) { blob in
            var reader = BlobReader(blob)
            return try body(&reader)
        }
    }

    /// Opens one blob for writing while `body` runs.
    ///
    /// Its size cannot change: create it with `zeroblob(byteCount)` in SQL. Prefer the table's last
    /// column, because the engine keeps the whole value in memory if another value follows.
    /// Triggers do not see the writes. A column in an index or a foreign key is `.unsupported`.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - schema: The name of the database, `main` unless you say otherwise.
    ///   - body: The work. Outside a transaction it runs in a new one, which an error rolls back.
    /// - Returns: The result of `body`.
    /// - Throws: As `withBlob`; `StoreError` `.unsupported` for a column in an index or a foreign
    ///   key, `.readOnly`, `.busy`, `.full`, `.io`; `.misuse` while a statement outside a
    ///   transaction has a current row.
    /// - Note: The corresponding C functions are `sqlite3_blob_open` and `sqlite3_blob_close`.
    public func withWritableBlob<T>(
        _ column: String, in table: String, row: Int64, schema: String = "main",
        _ body: (inout BlobWriter) throws -> T
    ) throws -> T {
        let cell = BlobCell(schema: schema, table: table, column: column, row: row)
        return try withOpenBlob(cell, isWritable: true) { blob in
            var writer = BlobWriter(blob)
            return try body(&writer)
        }
    }

    /// Opens the blob in a transaction that cannot end before the blob is closed.
    private func withOpenBlob<T>(
        _ cell: BlobCell, isWritable: Bool, _ body: (OpenBlob) throws -> T
    ) throws -> T {
        let handle = try current()
        try handle.followOwner()
        func run() throws -> T {
            let blob = try openBlob(cell, isWritable: isWritable)
            defer { blob.close() }
            return try body(blob)
        }
        if isInTransaction {
            // SQL that would end the transaction is refused while the blob is open.
            let wasInBody = transactionState.isInBody
            transactionState.enterBody(handle)
            defer { transactionState.leaveBody(handle, isInBody: wasInBody) }
            return try run()
        }
        // Next to an open cursor, the blob counts as one more cursor.
        guard transactionState.isImplicit, !isWritable else {
            return try transaction(isWritable ? .immediate : .deferred, run)
        }
        let id = transactionState.countCursor()
        let result: T
        do {
            result = try run()
        } catch {
            cursorFailed(in: id, isReadOnly: true)
            throw error
        }
        try cursorEnded(in: id, isReadOnly: true)
        return result
    }

    private func openBlob(_ cell: BlobCell, isWritable: Bool) throws(StoreError) -> OpenBlob {
        switch try storageClass(cell) {
        case .blob?:
            let handle = try current()
            if isWritable { try handle.tellObserver { $0.willWrite(cell, on: self) } }
            return try OpenBlob(handle, cell, isWritable: isWritable)
        case nil: throw cell.error(.notFound, "\(cell.table) has no row \(cell.row)")
        case .null?: throw cell.error(.mismatch, "the value is NULL, which is not an empty blob")
        case let other?: throw cell.error(.mismatch, "the value is \(other), not BLOB")
        }
    }
}
