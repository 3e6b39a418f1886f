#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Store {
    /// The bytes of a record's property, in chunks, on one snapshot of the store.
    ///
    /// ```swift
    /// for try await chunk in store.chunks(of: \.body, in: Note.self, key: id) {
    ///     try await connection.send(chunk)
    /// }
    /// ```
    ///
    /// A loop behaves as one over ``chunks(of:in:row:maximumByteCount:)``. It finds the record at
    /// its first chunk. It throws the errors of that method; `StoreError` `.notFound` if there is
    /// no such record, `.misuse` for a property that is not of bytes, or a key that is not one
    /// column, `.unsupported` for a table without row ids, `.mismatch` if several rows have the
    /// key, or if the key is of another storage class than its column.
    ///
    /// - Parameters:
    ///   - path: A property of type `Data` or `[UInt8]`, or an optional of these.
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    ///   - maximumByteCount: The size of each chunk in bytes, at least 1. The last chunk may be
    ///     smaller.
    /// - Complexity: O(log *rows*) to find the record; O(*maximumByteCount*) memory.
    public func chunks<R: Record>(
        of path: PartialKeyPath<R>, in type: R.Type, key: some ValueConvertible,
        maximumByteCount: Int = 64 << 10
    ) -> BlobChunks {
        BlobChunks(
            core: core, maximumByteCount: maximumByteCount, place: blobPlace(path, type, key))
    }

    /// Writes a property of a record from a stream, in one transaction. The record exists already.
    ///
    /// ```swift
    /// try await store.write { tx in try tx.insert(film) }    // without its video
    /// try await store.writeBlob(
    ///     \.video, in: Film.self, key: film.id, byteCount: size, from: upload)
    /// ```
    ///
    /// See ``writeBlob(_:in:row:byteCount:from:fileID:line:)``. If the record is removed while the
    /// source is read, nothing is written, even if another record has its row id by then.
    ///
    /// - Parameters:
    ///   - path: A property of type `Data` or `[UInt8]`, or an optional of these.
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    ///   - byteCount: The size of the blob.
    ///   - source: Gives exactly `byteCount` bytes, in chunks of any size.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    /// - Throws: As `writeBlob(_:in:row:byteCount:from:)`; `StoreError` `.notFound` if there is no
    ///   such record, now or once the source is read; `.misuse`, `.unsupported` and `.mismatch` as
    ///   `chunks(of:in:key:)`. The property is then as it was.
    /// - Complexity: O(*chunk* + 1 MiB) memory; temporary disk space of the size of the blob.
    public func writeBlob<R: Record, Source: AsyncSequence>(
        _ path: PartialKeyPath<R>, in type: R.Type, key: some ValueConvertible, byteCount: Int,
        from source: Source, fileID: StaticString = #fileID, line: UInt = #line
    ) async throws where Source.Element == Data {
        try await core.writeBlob(
            byteCount: byteCount, from: source, Caller(fileID: fileID, line: line),
            into: blobPlace(path, type, key))
    }
}

extension Reading where Self: ~Copyable {
    /// Opens a property of a record for reading while `body` runs.
    ///
    /// ```swift
    /// let digest = try store.read { tx in
    ///     try tx.withBlob(\.photo, in: Person.self, key: id) { blob in
    ///         var hash = SHA256()
    ///         try blob.forEachChunk { hash.update(bufferPointer: $0) }
    ///         return hash.finalize()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - path: A property of type `Data` or `[UInt8]`, or an optional of these.
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    ///   - body: The work. An empty blob is opened too; it has 0 bytes.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; `StoreError` `.notFound` if there is no such record, or no
    ///   table; `.mismatch` if the property is `nil`, if several rows have the key, or if the key
    ///   is of another storage class than its column; `.misuse` for a property that is not of
    ///   bytes, or a key that is not one column; `.unsupported` for a view or a table without row
    ///   ids; `.damaged`.
    /// - Complexity: O(log *rows*), and that of `body`.
    public func withBlob<R: Record, T>(
        _ path: PartialKeyPath<R>, in type: R.Type, key: some ValueConvertible,
        _ body: (inout BlobReader) throws -> T
    ) throws -> T {
        try withBlob(blobPlace(path, type, key), body)
    }

    /// How a property of a record is stored: distinguishes no bytes, `nil` and a missing record.
    ///
    /// - Parameters:
    ///   - path: A property of type `Data` or `[UInt8]`, or an optional of these.
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    /// - Returns: The storage class, `nil` if there is no such record.
    /// - Throws: As `withBlob(_:in:key:_:)`, but not `.notFound` for a missing record.
    /// - Complexity: O(log *rows*); the value itself is not read.
    public func storageClass<R: Record>(
        of path: PartialKeyPath<R>, in type: R.Type, key: some ValueConvertible
    ) throws -> StorageClass? {
        let connection = try connection()
        let column = try RecordPlan.of(type).blobColumn(of: path)
        let table = try RecordTable.of(type, connection)
        let cell = try table.cell(of: column, key: try table.key(key), connection)
        return try cell.flatMap { cell throws(StoreError) in try connection.storageClass(cell) }
    }
}

extension WriteTransaction {
    /// Opens a property of a record for writing while `body` runs.
    ///
    /// Its size cannot change: `tx.update(_:only:)` with `Data(count: size)` sets it. Prefer the
    /// last property, because the engine keeps the whole blob in memory if another value follows.
    /// Triggers do not fire for what is written.
    ///
    /// - Parameters:
    ///   - path: A property of type `Data` or `[UInt8]`, or an optional of these.
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    ///   - body: The work.
    /// - Returns: What `body` returns.
    /// - Throws: As `withBlob(_:in:key:_:)`; `StoreError` `.unsupported` for a property of an index
    ///   or a foreign key, `.full`, `.io`.
    public func withWritableBlob<R: Record, T>(
        _ path: PartialKeyPath<R>, in type: R.Type, key: some ValueConvertible,
        _ body: (inout BlobWriter) throws -> T
    ) throws -> T {
        try withWritableBlob(blobPlace(path, type, key)(connection()), body)
    }
}

/// The place of a record's property. It throws `.notFound` if there is no such record.
private func blobPlace<R: Record>(
    _ path: PartialKeyPath<R>, _ type: R.Type, _ key: some ValueConvertible
) -> BlobPlace {
    let column = Result { () throws(StoreError) in try RecordPlan.of(type).blobColumn(of: path) }
    return { connection throws(StoreError) in
        let column = try column.get()
        let table = try RecordTable.of(type, connection)
        let key = try table.key(key)
        guard let cell = try table.cell(of: column, key: key, connection) else {
            throw StoreError(
                .notFound, "\(table.plan.table) has no row with this key",
                hint: "Another write may have removed it. tx.insert adds a record.",
                table: table.plan.table, column: column)
        }
        return cell
    }
}

extension RecordPlan {
    /// The name of the column of a property whose bytes are stored as they are.
    ///
    /// - Throws: `.misuse` for a property of another type, whose bytes in the file are not its own.
    fileprivate func blobColumn<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> String
    {
        let column = columns[try position(of: path)]
        let type = Swift.type(of: path).valueType
        let wrapped = (type as? any OptionalValue.Type)?.wrapped ?? type
        let isLazy = (column.type as? any LazyProperty.Type)?.wrapped == Data.self
        guard column.coding == .data || column.coding == .bytes || isLazy, wrapped == column.type
        else {
            throw StoreError(
                .misuse, "a property of \(type) has no bytes of its own in the file",
                hint: "Only Data and [UInt8] can be read and written in pieces. Fetch the record, "
                    + "and write it with update(_:only:).",
                table: table, column: column.name)
        }
        return column.name
    }
}

extension RecordTable {
    /// The cell of a column in the row with a key; `nil` if there is no such row.
    ///
    /// - Throws: As `find(_:_:)`, but `.notFound` if the type has no table; `.unsupported` if it
    ///   has no row ids; `.mismatch` if several rows have the key, because the table does not
    ///   declare it unique.
    fileprivate func cell(
        of column: String, key: Value, _ connection: Connection
    ) throws(StoreError) -> BlobCell? {
        let position = try plan.singleKey(for: "a blob of a record")
        do throws(StoreError) {
            let schema = try schemaOfTable(connection)
            guard let rowID = try connection.freeRowIDName(of: plan.table, schema: schema) else {
                throw noRowIDs
            }
            // Names the column, so that a missing one is an error here.
            let statement = try connection.cached(
                "SELECT \(plan.quotedTable).\(rowID), \(plan.quotedTable).\(column.inDoubleQuotes) "
                    + "IS NULL FROM \(schema).\(plan.quotedTable) "
                    + "WHERE \(plan.qualifiedColumns[position]) = ?\(position + 1) LIMIT 2")
            defer { connection.release(statement) }
            try encoder.bind(key: key, at: position, to: statement)
            guard try statement.advance() else {
                // A damaged page may hide the row.
                try connection.probe()
                return nil
            }
            let row = try statement.column(0, as: Int64.self)
            guard try !statement.advance() else { throw severalRows(position) }
            return BlobCell(schema: schema, table: plan.table, column: column, row: row)
        } catch {
            throw try explain(error, connection)
        }
    }

    /// The database in which SQL finds the table under its name: a temporary table hides another.
    private func schemaOfTable(_ connection: Connection) throws(StoreError) -> String {
        let temporary = try connection.firstRow(
            """
            SELECT 1 FROM sqlite_temp_master
            WHERE type IN ('table', 'view') AND name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: true)
        return temporary == nil ? "main" : "temp"
    }

    private var noRowIDs: StoreError {
        StoreError(
            .unsupported, "\(plan.table) has no row ids, by which the engine opens blobs",
            hint: "It is a view, is WITHOUT ROWID, or has columns named like row ids: fetch and "
                + "update the whole record.",
            table: plan.table)
    }

    private func severalRows(_ position: Int) -> StoreError {
        StoreError(
            .mismatch, "several rows of \(plan.table) have this key",
            hint: "Make the key of \(plan.typeName) unique in the table, with SQL.",
            table: plan.table, column: plan.columns[position].name)
    }
}
