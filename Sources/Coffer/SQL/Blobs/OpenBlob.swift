import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Owns one open `sqlite3_blob *`.
final class OpenBlob {
    let byteCount: Int
    private let handle: Handle
    private let cell: BlobCell
    private var raw: OpaquePointer?

    /// - Throws: `.unsupported` with the engine's reason, `.damaged`, `.readOnly`, `.busy`, `.io`.
    init(_ handle: Handle, _ cell: BlobCell, isWritable: Bool) throws(StoreError) {
        self.handle = handle
        self.cell = cell
        let code = sqlite3_blob_open(
            handle.db, cell.schema, cell.table, cell.column, cell.row, isWritable ? 1 : 0, &raw)
        guard code == SQLITE_OK else {
            let error = handle.error(code).with(table: cell.table, column: cell.column)
            if let damage = handle.probeFailure() { throw damage }
            guard code & 0xff == SQLITE_ERROR else { throw error }
            // Row and value exist, so the engine refuses the kind of table or column.
            throw cell.error(.unsupported, error.message, hint: "Use SQL for this value.")
        }
        byteCount = Int(sqlite3_blob_bytes(raw))
    }

    deinit {
        close()
    }

    /// Closes the blob; safe to call twice. Inside a transaction the result code says nothing new.
    func close() {
        sqlite3_blob_close(raw)
        raw = nil
    }

    func bytes(in range: Range<Int>) throws(StoreError) -> Data {
        try require(range.lowerBound, range.count)
        var bytes = Data(count: range.count)
        let failure = bytes.withUnsafeMutableBytes { buffer -> StoreError? in
            do throws(StoreError) {
                try read(at: range.lowerBound, into: buffer)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads, then checks that the bytes are authentic: for a page that is not, the engine returns
    /// zeros and success.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(StoreError) {
        try require(offset, buffer.count)
        guard buffer.count > 0 else { return }
        let code = sqlite3_blob_read(raw, buffer.baseAddress, Int32(buffer.count), Int32(offset))
        let failure = code == SQLITE_OK ? handle.probeFailure() : failure(code)
        guard let failure else { return }
        buffer.initializeMemory(as: UInt8.self, repeating: 0)
        throw failure.with(table: cell.table, column: cell.column)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StoreError) {
        try require(offset, bytes.count)
        guard bytes.count > 0 else { return }
        let code = sqlite3_blob_write(raw, bytes.baseAddress, Int32(bytes.count), Int32(offset))
        let failure = code == SQLITE_OK ? handle.probeFailure() : failure(code)
        if let failure { throw failure.with(table: cell.table, column: cell.column) }
    }

    /// The ranges of all chunks, in order.
    func chunks(_ maximumByteCount: Int) throws(StoreError) -> some Sequence<Range<Int>> {
        guard maximumByteCount > 0 else {
            throw cell.error(.misuse, "a chunk must have at least one byte")
        }
        let byteCount = byteCount
        return stride(from: 0, to: byteCount, by: maximumByteCount).lazy.map {
            $0..<$0 + min(maximumByteCount, byteCount - $0)
        }
    }

    /// Checks that the blob is open and has these bytes. Throws `.closed` if it is not open, and
    /// `.misuse` for bytes outside the value.
    private func require(_ offset: Int, _ count: Int) throws(StoreError) {
        guard !handle.isClosed, raw != nil else { throw Connection.closed }
        guard offset >= 0, offset <= byteCount, count <= byteCount - offset else {
            throw cell.error(
                .misuse, "\(count) bytes at offset \(offset) are not within a blob of \(byteCount)")
        }
    }

    private func failure(_ code: Int32) -> StoreError {
        let error = handle.error(code)
        guard code & 0xff == SQLITE_ABORT else { return handle.probeFailure() ?? error }
        guard handle.isInTransaction else { return Connection.rolledBack(cause: nil) }
        return cell.error(
            .misuse, "the row of the blob was changed or removed while it was open",
            hint: "Open the blob again after the change.")
    }
}
