extension Reading where Self: ~Copyable {
    /// The rows of a join: each record with those that it refers to.
    ///
    /// ```swift
    /// let join = Article.all.joining(\.author, to: Author.order(by: \.name))
    /// for (article, author) in try tx.fetch(join) { … }
    /// ```
    ///
    /// - Throws: The errors of a query's `fetch(_:)`, for all tables; `StoreError` `.misuse` if
    ///   a reference is not declared.
    /// - Complexity: O(*rows*) memory.
    public func fetch<Child: Record, each Row: Sendable>(
        _ join: Join<Child, repeat each Row>
    ) throws -> [(Child, repeat each Row)] {
        let connection = try connection()
        let sql = try join.selectSQL()
        let children = try RecordTable.of(Child.self, connection)
        let tables = JoinedTables(of: try join.tables(), after: children.plan)
        let readers = (repeat try (each join.readers).begin(tables, connection))
        do throws(StoreError) {
            return try children.rows(sql, connection) { statement throws(StoreError) in
                let child = try children.decoder.current(Child.self, statement)
                return (child, repeat try (each readers)(statement))
            }
        } catch {
            throw try tables.explain(error, connection)
        }
    }
}

/// Makes the value of one joined table from a row of a join.
struct JoinedRowReader<Row>: Sendable {
    /// Whether the table is one of a LEFT JOIN.
    let isOptional: Bool
    /// Takes the next of the tables.
    let begin:
        @Sendable (JoinedTables, Connection) throws(StoreError) -> (
            (Statement) throws(StoreError) -> Row
        )
}

extension JoinedRowReader where Row: Record {
    static func record(_ type: Row.Type) -> JoinedRowReader {
        JoinedRowReader(isOptional: false) { tables, connection throws(StoreError) in
            let decoder = try tables.next(type, connection).decoder
            return { statement throws(StoreError) in try decoder.current(type, statement) }
        }
    }
}

extension JoinedRowReader {
    static func optional<R: Record>(_ type: R.Type) -> JoinedRowReader where Row == R? {
        JoinedRowReader(isOptional: true) { tables, connection throws(StoreError) in
            let (decoder, presence) = try tables.next(type, connection)
            return { statement throws(StoreError) in
                guard try statement.column(presence, as: Bool.self) else { return nil }
                return try decoder.current(type, statement)
            }
        }
    }
}

/// The tables of a join, while it is read.
final class JoinedTables {
    private let joined: [JoinedTable]
    private var tables: [RecordTable] = []
    /// The first column of the next table.
    private var column: Int
    /// The column that tells whether the next LEFT JOIN has found a row.
    private var presence: Int

    init(of joined: [JoinedTable], after child: RecordPlan) {
        self.joined = joined
        column = child.columns.count
        presence = joined.reduce(column) { $0 + $1.plan.columns.count }
    }

    /// The decoder of the next table, and the column that tells whether it has a row, if it is one
    /// of a LEFT JOIN.
    fileprivate func next<R: Record>(
        _ type: R.Type, _ connection: Connection
    ) throws(StoreError) -> (decoder: RowDecoder, presence: Int) {
        let table = try RecordTable.of(type, connection)
        let decoder = try table.makeDecoder(
            of: Array(table.plan.columns.indices), after: column, leavesLazy: true,
            stored: table.decoder.stored, connection)
        defer {
            if joined[tables.count].isOptional { presence += 1 }
            column += table.plan.columns.count
            tables.append(table)
        }
        return (decoder, presence)
    }

    /// The error, explained by the first table that it concerns.
    func explain(_ error: StoreError, _ connection: Connection) throws(StoreError) -> StoreError {
        var error = error
        for table in tables { error = try table.explain(joined: error, connection) }
        return error
    }
}

extension RecordTable {
    /// An error of a join with this table, explained. A missing table explains none, because it
    /// only has no rows.
    func explain(
        joined error: StoreError, _ connection: Connection
    ) throws(StoreError) -> StoreError {
        guard try RecordSchema(plan, connection).kind() != .nothing else { return error }
        return try explain(error, connection)
    }
}
