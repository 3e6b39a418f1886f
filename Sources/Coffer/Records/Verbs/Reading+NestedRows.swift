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
        let sql = try parents.selectSQL(self, connection)
        let none = [[R]](repeating: [], count: parents.count)
        return try table.read(sql, connection, ifMissing: none) { statement throws(StoreError) in
            var numbers: [Int] = []
            let rows = try table.decoder.all(R.self, statement) { () throws(StoreError) in
                numbers.append(try statement.column(number, as: Int.self))
            }
            return rows.grouped(by: numbers, count: parents.count)
        }
    }
}

extension Array {
    /// The elements of each group, in their order.
    ///
    /// - Parameters:
    ///   - numbers: The number of each element's group.
    ///   - count: The number of groups.
    /// - Complexity: O(*elements* + *groups*).
    fileprivate func grouped(by numbers: [Int], count: Int) -> [[Element]] {
        var ends = [Int](repeating: 0, count: count)
        for number in numbers { ends[number] += 1 }
        for group in ends.indices.dropFirst() { ends[group] += ends[group - 1] }
        // Without an order, the rows come group by group.
        let isSorted = zip(numbers, numbers.dropFirst()).allSatisfy { $0 <= $1 }
        var order: [Int] = []
        if !isSorted {
            order = [Int](repeating: 0, count: numbers.count)
            var places = [0] + ends
            for (index, number) in numbers.enumerated() {
                order[places[number]] = index
                places[number] += 1
            }
        }
        var (groups, start): ([[Element]], Int) = ([], 0)
        groups.reserveCapacity(count)
        for end in ends {
            groups.append(
                isSorted ? Array(self[start..<end]) : order[start..<end].map { self[$0] })
            start = end
        }
        return groups
    }
}

extension NestedQuery {
    /// The rows that refer to each of these parents, in the order of the parents.
    func read(
        of parents: ParentKeys, _ connection: Connection
    ) throws(StoreError) -> [[(R, repeat each Children)]] {
        let (rows, numbers) = try rows(of: parents, connection)
        return rows.grouped(by: numbers, count: parents.count)
    }

    /// - Parameter parents: The rows that the rows refer to; `nil` for the first level.
    /// - Returns: The rows, and for each row the number of its parent.
    func rows(
        of parents: ParentKeys?, _ connection: Connection
    ) throws(StoreError) -> (rows: [(R, repeat each Children)], numbers: [Int]) {
        var references: [ReferenceColumns] = []
        repeat references.append(try (each levels).reference.get())
        let table = try RecordTable.of(R.self, connection)
        let number = table.plan.columns.count
        let sql =
            if let parents { try parents.selectSQL(query, connection) } else {
                query.selectSQL(table.plan)
            }
        let none: ([R], [Int], [ParentKeys]) = ([], [], [])
        let found = try table.read(sql, connection, ifMissing: none) {
            statement throws(StoreError) in
            var (numbers, keys): ([Int], _) = ([], references.map { ParentKeys($0) })
            let records = try table.decoder.all(R.self, statement) { () throws(StoreError) in
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
