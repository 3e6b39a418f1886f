extension Reading where Self: ~Copyable {
    /// The rows of a nested query: each record with all records that refer to it.
    ///
    /// ```swift
    /// let authors = Author.order(by: \.name).including(all: Article.all, by: \.author)
    /// for (author, articles) in try tx.fetch(authors) { … }
    /// ```
    ///
    /// One statement reads each record type. All of them see the same state of the store.
    ///
    /// - Throws: The errors of a query's `fetch(_:)`, for all types; `StoreError` `.misuse` if a
    ///   reference is not declared, or an included query has a limit.
    /// - Complexity: O(*rows*) memory; O(*parents* × log *rows* + *found*) time with an index of
    ///   the properties that refer, otherwise O(*rows* × log *rows*).
    public func fetch<R: Record, each Children: Sendable>(
        _ query: NestedQuery<R, repeat each Children>
    ) throws -> [(R, repeat each Children)] {
        try query.rows(of: nil, try connection()).rows
    }
}

extension Query {
    /// The rows that refer to each of these parents, in the order of the parents.
    func read(of parents: ParentKeys, _ connection: Connection) throws(StoreError) -> [[R]] {
        let table = try RecordTable.of(R.self, connection)
        let number = table.plan.columns.count
        let none = [[R]](repeating: [], count: parents.count)
        let sql = try parents.selectSQL(self, connection)
        return try table.read(sql, connection, ifMissing: none) { statement throws(StoreError) in
            var found = none
            while try statement.advance() {
                let parent = try statement.column(number, as: Int.self)
                found[parent].append(try table.decoder.current(R.self, statement))
            }
            return found
        }
    }
}

extension NestedQuery {
    /// The rows that refer to each of these parents, in the order of the parents.
    func read(
        of parents: ParentKeys, _ connection: Connection
    ) throws(StoreError) -> [[(R, repeat each Children)]] {
        let (rows, numbers) = try rows(of: parents, connection)
        var found = [[(R, repeat each Children)]](repeating: [], count: parents.count)
        for (row, number) in zip(rows, numbers) { found[number].append(row) }
        return found
    }

    /// - Parameter parents: The rows that the rows refer to; `nil` for the first level.
    /// - Returns: The rows, and for each row the number of its parent.
    func rows(
        of parents: ParentKeys?, _ connection: Connection
    ) throws(StoreError) -> (rows: [(R, repeat each Children)], numbers: [Int]) {
        var references: [ReferenceColumns] = []
        repeat references.append(try (each levels).reference.get())
        let noKeys = references.map { ParentKeys($0) }
        let table = try RecordTable.of(R.self, connection)
        let number = table.plan.columns.count
        let sql =
            if let parents { try parents.selectSQL(query, connection) } else {
                query.selectSQL(table.plan)
            }
        let none: ([R], [Int], [ParentKeys]) = ([], [], noKeys)
        let found = try table.read(sql, connection, ifMissing: none) {
            statement throws(StoreError) in
            var (records, numbers, keys) = none
            while try statement.advance() {
                records.append(try table.decoder.current(R.self, statement))
                for level in keys.indices { try keys[level].append(statement) }
                if parents != nil { numbers.append(try statement.column(number, as: Int.self)) }
            }
            return (records, numbers, keys)
        }
        let (records, numbers) = (found.0, found.1)
        guard !records.isEmpty else { return ([], []) }
        var keys = Array(found.2.reversed())
        let children = (repeat try (each levels).read(keys.removeLast(), connection))
        return (records.indices.map { (records[$0], repeat (each children)[$0]) }, numbers)
    }
}
