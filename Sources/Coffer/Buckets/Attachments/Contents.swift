import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The contents of attachments on one connection: their bytes, in chunks.
///
/// The chunks of a content are rows of `coffer:chunks` whose ids follow each other. All have the
/// same size but the last, which may be smaller.
struct Contents {
    let connection: Connection

    /// Bytes of each chunk of new contents.
    static let chunkByteCount = 256 << 10
    /// The number of chunks that a content may have, as a power of two.
    static let countBits: Int64 = 24

    /// One row of `coffer:contents`.
    struct Content: Sendable {
        let id: Int64
        let state: State
        let chunkByteCount: Int
        fileprivate(set) var byteCount: Int
        let sha256: Data?
    }

    enum State: String {
        /// An upload, whose last byte has not come.
        case unfinished
        /// The content of an entry.
        case whole
        /// Waits until its chunks are freed.
        case removed
    }

    /// Finds the tables; `nil` if the file has none.
    ///
    /// - Throws: As `ContentTables.exist()`.
    init?(_ connection: Connection) throws(StoreError) {
        guard try ContentTables(connection).exist() else { return nil }
        self.connection = connection
    }

    /// Finds the tables, and makes them if there are none.
    ///
    /// - Throws: As `ContentTables.make()`.
    init(making connection: Connection) throws(StoreError) {
        try ContentTables(connection).make()
        self.connection = connection
    }

    // MARK: Rows

    /// The row of an id; `nil` if there is none.
    ///
    /// - Throws: `.mismatch` if the row is not one that Coffer writes; errors of the query.
    func content(_ id: Int64) throws(StoreError) -> Content? {
        let row = try connection.firstRow(
            """
            SELECT id, state, chunk, length, sha256 FROM main."coffer:contents" WHERE id = \(id)
            """, isReadOnly: false)
        return try row.map { (row) throws(StoreError) in try Self.content(row) }
    }

    static func content(_ row: Row) throws(StoreError) -> Content {
        guard case .integer(let id)? = row["id"], case .text(let word)? = row["state"],
            case .integer(let chunk)? = row["chunk"], case .integer(let length)? = row["length"],
            let state = State(rawValue: word), 0 < id, id < Int64.max >> countBits,
            1...Int64(Int32.max) ~= chunk, 0 <= length, length / chunk < 1 << countBits
        else {
            throw StoreError(
                .mismatch, "a row is not the content of an attachment",
                table: ContentTables.contents)
        }
        var sha256: Data?
        if case .blob(let bytes)? = row["sha256"] { sha256 = bytes }
        return Content(
            id: id, state: state, chunkByteCount: Int(chunk), byteCount: Int(length),
            sha256: sha256)
    }

    /// The content of an entry.
    ///
    /// - Parameter id: The entry's value.
    /// - Throws: `.damaged` if the file does not have the content, or not all of it.
    func whole(_ id: Int64) throws(StoreError) -> (content: Content, sha256: Data) {
        guard let content = try content(id), content.state == .whole, let sha256 = content.sha256
        else { throw Self.damaged("the file does not have the content of the attachment") }
        return (content, sha256)
    }

    static func damaged(_ message: String) -> StoreError {
        StoreError(
            .damaged, message,
            hint: "Restore the attachment from a backup, or remove it.",
            table: ContentTables.chunks)
    }

    // MARK: Writing

    /// Begins a content without bytes.
    ///
    /// - Parameters:
    ///   - bucket: The name of the bucket that it will belong to.
    ///   - key: The key that it will have, as the bucket's table has it.
    ///   - owner: Stands for the upload that may add to it: a new UUID.
    /// - Throws: Errors of the statement.
    func begin(
        for key: Value, in bucket: String, owner: UUID
    ) throws(StoreError) -> Content {
        var id: Int64 = 0
        let size = Int64(Self.chunkByteCount)
        let count = try connection.perform(
            """
            INSERT INTO main."coffer:contents" (state, chunk, length, bucket, key, owner, touched)
            VALUES ('unfinished', \(size), 0, \(bucket), \(key), \(owner), \(try now()))
            """
        ) { id = connection.lastInsertedRowID }
        guard count == 1, let content = try content(id) else { throw Self.refused }
        return content
    }

    /// Gives an unfinished content to another owner. From then on the old one cannot add to it.
    ///
    /// - Throws: Errors of the statement.
    func give(_ content: Content, to owner: UUID) throws(StoreError) {
        try change(
            """
            UPDATE main."coffer:contents" SET owner = \(owner), touched = \(try now())
            WHERE id = \(content.id)
            """)
    }

    /// The unfinished content that an upload adds to, as the file has it.
    ///
    /// - Throws: `.conflict` if another upload has it now, or it was removed.
    func require(_ content: Content, of owner: UUID) throws(StoreError) -> Content {
        let row = try connection.firstRow(
            """
            SELECT id, state, chunk, length, sha256, owner FROM main."coffer:contents"
            WHERE id = \(content.id)
            """, isReadOnly: false)
        guard let row, row["state"] == .text(State.unfinished.rawValue),
            row["owner"] == owner.asValue()
        else {
            throw StoreError(
                .conflict, "the upload does not belong to this caller any more",
                hint: "Somebody has resumed or discarded it, its record was deleted, or no byte "
                    + "came for a day.",
                table: ContentTables.contents)
        }
        return try Self.content(row)
    }

    /// Adds bytes at the end.
    ///
    /// - Throws: `.tooBig` for more chunks than a content may have; `.full`, `.io`, `.damaged`.
    func append(_ bytes: Data, to content: inout Content) throws(StoreError) {
        let size = content.chunkByteCount
        let length = content.byteCount + bytes.count
        guard Int64(length / size) < 1 << Self.countBits else {
            throw StoreError(
                .tooBig, "an attachment has \(size << Self.countBits) bytes at most",
                table: ContentTables.contents)
        }
        var start = bytes.startIndex
        var number = content.byteCount / size
        let rest = content.byteCount % size
        if rest > 0, !bytes.isEmpty {
            let end = min(start + size - rest, bytes.endIndex)
            let last = try chunk(number, of: content, 0..<rest)
            try store(last + bytes[start..<end], number, of: content, isNew: false)
            start = end
            number += 1
        }
        while start < bytes.endIndex {
            let end = min(start + size, bytes.endIndex)
            try store(bytes[start..<end], number, of: content, isNew: true)
            start = end
            number += 1
        }
        content.byteCount = length
        try change(
            """
            UPDATE main."coffer:contents" SET length = \(Int64(length)), touched = \(try now())
            WHERE id = \(content.id)
            """)
    }

    private func store(
        _ bytes: Data, _ number: Int, of content: Content, isNew: Bool
    ) throws(StoreError) {
        let statement = try connection.cached(
            isNew
                ? "INSERT INTO main.\"coffer:chunks\" (bytes, id) VALUES (?1, ?2)"
                : "UPDATE main.\"coffer:chunks\" SET bytes = ?1 WHERE id = ?2")
        defer { connection.release(statement) }
        let raw = try statement.pointer()
        try Value.blob(bytes).withBorrowed { (bytes) throws(StoreError) in
            defer { statement.forgetArguments() }
            try statement.bindArgument(borrowing: bytes, to: raw, at: 1)
            try statement.bindArgument(.integer(Self.row(number, of: content)), to: raw, at: 2)
            try statement.runToEnd()
        }
        guard statement.changeCount == 1 else { throw Self.refused }
    }

    /// Makes an unfinished or grown content that of an entry.
    ///
    /// - Throws: Errors of the statement.
    func finish(_ content: Content, _ hash: SHA256) throws(StoreError) -> AttachmentInformation {
        let digest = Data(hash.finalize())
        try change(
            """
            UPDATE main."coffer:contents" SET state = 'whole', sha256 = \(digest), bucket = NULL, \
            key = NULL, owner = NULL, touched = NULL WHERE id = \(content.id)
            """)
        return AttachmentInformation(byteCount: content.byteCount, sha256: digest)
    }

    /// Marks a content as removed; its chunks are freed later.
    ///
    /// - Throws: Errors of the statement.
    func remove(_ content: Content) throws(StoreError) {
        try change(
            "UPDATE main.\"coffer:contents\" SET state = 'removed' WHERE id = \(content.id)")
    }

    private func change(_ sql: SQL) throws(StoreError) {
        guard try connection.perform(sql) == 1 else { throw Self.refused }
    }

    private static let refused = StoreError(
        .constraint, "the attachment was not stored: a trigger refuses it",
        table: ContentTables.contents)

    func now() throws(StoreError) -> Int64 {
        try connection.configuration.currentDate().microseconds()
    }

    // MARK: Reading

    private static func row(_ number: Int, of content: Content) -> Int64 {
        content.id << countBits | Int64(number)
    }

    /// Calls `body` with the bytes of a range, chunk by chunk.
    ///
    /// - Throws: What `body` throws; `.damaged` if a chunk is missing or has another size, or if a
    ///   page fails authentication. `body` has got no byte of that chunk then.
    func read(
        _ content: Content, _ range: Range<Int>, _ body: (Data) throws -> Void
    ) throws {
        let size = content.chunkByteCount
        var start = range.lowerBound
        while start < range.upperBound {
            let number = start / size
            let first = start % size
            let last = min(size, first + range.upperBound - start)
            try body(chunk(number, of: content, first..<last))
            start += last - first
        }
    }

    /// Calls `body` with all bytes, chunk by chunk, and then compares their digest.
    ///
    /// - Returns: The digest, to which more bytes can be added.
    /// - Throws: As `read`; `.damaged` if these are not the bytes that were stored.
    @discardableResult
    func readWhole(
        _ content: Content, _ sha256: Data, _ body: (Data) throws -> Void
    ) throws -> SHA256 {
        var hash = SHA256()
        try read(content, 0..<content.byteCount) { bytes in
            hash.update(data: bytes)
            try body(bytes)
        }
        guard hash.finalize().elementsEqual(sha256) else {
            throw Self.damaged("the attachment's bytes are not those that were stored")
        }
        return hash
    }

    private func chunk(
        _ number: Int, of content: Content, _ range: Range<Int>
    ) throws(StoreError) -> Data {
        let cell = BlobCell(
            schema: "main", table: ContentTables.chunks, column: "bytes",
            row: Self.row(number, of: content))
        let byteCount = min(
            content.chunkByteCount, content.byteCount - number * content.chunkByteCount)
        guard try connection.storageClass(cell) == .blob else {
            // A damaged page may hide the row.
            try connection.probe()
            throw Self.damaged("a chunk of the attachment is missing")
        }
        let blob = try OpenBlob(connection.current(), cell, isWritable: false)
        defer { blob.close() }
        guard blob.byteCount == byteCount else {
            throw Self.damaged(
                "a chunk of the attachment has \(blob.byteCount) bytes instead of \(byteCount)")
        }
        return try blob.bytes(in: range)
    }
}
