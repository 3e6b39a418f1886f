/// Reads rows where SQLite has them.
extension Reading where Self: ~Copyable {
    /// Calls `body` with each row of a query. No record is made of it.
    ///
    /// ```swift
    /// let name = try Payment.column(\.name)
    /// try tx.forEachRow(Payment.where(\.isOpen == true), reading: [\.name]) { row in
    ///     try row.utf8(name).withUnsafeBytes { try writer.write($0) }
    /// }
    /// ```
    ///
    /// The pages of each row have passed authentication before `body` gets the row. If a later page
    /// is damaged, `.damaged` is thrown after earlier rows have reached `body`. An error from
    /// `body` ends the loop. `body` may use the transaction. If it changes rows of the query's own
    /// table, the loop may see them again, even indefinitely.
    ///
    /// - Parameters:
    ///   - query: Which rows, in which order.
    ///   - paths: The properties that `body` reads; all of them if it is empty. SQLite reads a row
    ///     up to the last of their columns.
    ///   - body: Gets the row, which it cannot keep.
    /// - Throws: As `fetch(_:)`; any error from `body`.
    /// - Complexity: O(1) memory.
    public func forEachRow<R: Record>(
        _ query: Query<R>, reading paths: [PartialKeyPath<R>] = [],
        _ body: (borrowing BorrowedRow<R>) throws -> Void
    ) throws {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        let reader = try RowReader(table, connection, columns: table.positions(of: paths))
        let sql = query.select(reader.selectedColumns, table.plan)
        let row = BorrowedRow<R>(reader.source)
        let failure = try table.forEachRow(sql, [reader], connection) { _ in try body(row) }
        if let failure { throw failure }
    }

    /// Calls `body` with each pair of a join: a row, and the row that it refers to. No record is
    /// made of them.
    ///
    /// ```swift
    /// let (title, name) = (try Article.column(\.title), try Author.column(\.name))
    /// try tx.forEachRow(Article.all.joining(\.author, to: Author.all)) { article, author in
    ///     try writer.write(article.utf8(title), author.utf8(name))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - join: Which pairs, in which order.
    ///   - body: Gets both rows, which it cannot keep.
    /// - Throws: As `fetch(_:)` of a join; any error from `body`.
    /// - Complexity: O(1) memory.
    public func forEachRow<Child: Record, Parent: Record>(
        _ join: Join<Child, Parent>,
        _ body: (borrowing BorrowedRow<Child>, borrowing BorrowedRow<Parent>) throws -> Void
    ) throws {
        let connection = try connection()
        let sql = try join.selectSQL()
        let children = try RecordTable.of(Child.self, connection)
        let parents = try RecordTable.of(Parent.self, connection)
        let child = try RowReader(children, connection)
        let parent = try RowReader(parents, connection, after: child.positions.count)
        let (first, second) = (child.source, parent.source)
        let failure: (any Error)?
        do throws(StoreError) {
            failure = try children.forEachRow(sql, [child, parent], connection) { _ in
                try body(BorrowedRow(first), BorrowedRow(second))
            }
        } catch {
            throw try parents.explain(joined: error, connection)
        }
        if let failure { throw failure }
    }
}

extension RecordTable {
    /// The positions in the plan of some properties' columns, and of the row id, by which errors
    /// name a row. Empty without properties.
    fileprivate func positions<R: Record>(
        of paths: [PartialKeyPath<R>]
    ) throws(StoreError) -> [Int] {
        guard !paths.isEmpty else { return [] }
        var positions: Set<Int> = []
        for path in paths { positions.insert(try plan.position(of: path)) }
        // SQLite reads it at no cost.
        if let rowID = plan.rowIDPosition { positions.insert(rowID) }
        return positions.sorted()
    }

    /// Calls `body` at each row of a query, whose bytes stay where they are until it returns.
    ///
    /// - Returns: The error that `body` has thrown, which ended the loop. It is not a failure of
    ///   the table, so nothing may explain it as one.
    /// - Throws: Errors of the query.
    func forEachRow(
        _ sql: SQL, _ readers: [RowReader], _ connection: Connection,
        _ body: (Statement) throws -> Void
    ) throws(StoreError) -> (any Error)? {
        var failure: (any Error)?
        try read(sql, connection, ifMissing: ()) { statement throws(StoreError) in
            for reader in readers { try reader.begin(statement) }
            defer { for reader in readers { reader.end() } }
            while failure == nil, try statement.advance() {
                if let failure = statement.handle.probeFailure() { throw failure }
                statement.beginLending()
                defer { statement.endLending() }
                do { try body(statement) } catch { failure = error }
                // SQLite goes on with the rows after it has rolled the transaction back.
                guard failure != nil || statement.handle.isInTransaction else {
                    throw Connection.rolledBack(cause: nil)
                }
            }
        }
        return failure
    }
}
