/// Reads many records at once, or one by one.
extension Reading where Self: ~Copyable {
    /// The records with these keys, in the order of `keys`. A key without a record is left out.
    ///
    /// One statement looks all of them up in the order in which the file has them, so that each
    /// page is read once. A key that is given twice gives its record twice; NULL has no record.
    ///
    /// - Parameters:
    ///   - type: A record type whose key is one column.
    ///   - keys: Values of the key.
    /// - Throws: As `find(_:_:)`.
    /// - Complexity: O(*keys* × log *rows*), and O(*keys*) memory.
    public func find<R: Record, K: ValueConvertible>(
        _ type: R.Type, keys: some Sequence<K>
    ) throws -> [R] {
        let connection = try connection()
        let table = try RecordTable.of(type, connection)
        return try table.find(type, keys: keys, connection)
    }

    /// Calls `body` with each record of a query.
    ///
    /// ```swift
    /// try tx.forEach(Note.where(\.pinned == true)) { note in try writer.write(note) }
    /// ```
    ///
    /// Each record is authenticated before `body` gets it. An error from `body` ends the loop. If
    /// `body` changes rows of the query's own table, the loop may see them again, even
    /// indefinitely: fetch the records first.
    ///
    /// - Throws: As `fetch(_:)`; any error from `body`.
    /// - Complexity: O(1) memory.
    public func forEach<R: Record>(_ query: Query<R>, _ body: (R) throws -> Void) throws {
        try forEachPortion(of: 1, query) { for record in $0 { try body(record) } }
    }

    /// Calls `body` with portions of `maximumCount` authenticated records. The last portion has
    /// fewer, possibly zero.
    func forEachPortion<R: Record>(
        of maximumCount: Int, _ query: Query<R>, _ body: ([R]) throws -> Void
    ) throws {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        try table.forEachPortion(of: maximumCount, query.selectSQL(table.plan), connection, body)
    }

    /// The rows of a query as another type, which needs only some of the columns.
    ///
    /// ```swift
    /// struct Title: Decodable { let id: UUID, title: String }
    /// let titles = try tx.fetch(Note.all, as: Title.self)
    /// ```
    ///
    /// The first query of a type on a connection reads all columns, and tells which of them the
    /// type asks for. Later ones read only these. If the type then asks for another column, the
    /// query runs again with all columns, and the rows made so far are dropped. Such a type gets
    /// all columns from then on, and so does a query with a limit and without an order. A type that
    /// is a ``Record`` with stored properties (``RecordAccess``) is made by them.
    ///
    /// - Parameters:
    ///   - query: Which rows, in which order.
    ///   - type: A type that decodes itself by names of columns, as the record does.
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: O(*rows*) memory.
    public func fetch<R: Record, T: Decodable>(_ query: Query<R>, as type: T.Type) throws -> [T] {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.fetch(query, as: type, connection)
    }
}

extension RecordTable {
    fileprivate func forEachPortion<R: Record>(
        of maximumCount: Int, _ sql: SQL, _ connection: Connection, _ body: ([R]) throws -> Void
    ) throws {
        // An error from `body` is not a failure of the table, so `run` must not explain it.
        var failure: (any Error)?
        try read(sql, connection, ifMissing: ()) { statement throws(StoreError) in
            var isAtEnd = false
            while !isAtEnd, failure == nil {
                let records = try decoder.next(maximumCount, R.self, statement)
                isAtEnd = records.count < maximumCount
                try connection.probe()
                do { try body(records) } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }
}
