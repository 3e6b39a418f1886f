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
        let reading = try JoinReading(join, connection())
        return try reading.explaining { () throws(StoreError) in
            try reading.children.rows(join.selectSQL(), reading.connection) {
                statement throws(StoreError) in try reading.row(statement)
            }
        }
    }

    /// The first row of a join, `nil` if there is none.
    ///
    /// ```swift
    /// let join = Article.order(by: \.created, .descending).joining(\.author, to: Author.all)
    /// if let (article, author) = try tx.first(join) { … }
    /// ```
    ///
    /// - Throws: As `fetch(_:)` of a join.
    public func first<Child: Record, each Row: Sendable>(
        _ join: Join<Child, repeat each Row>
    ) throws -> (Child, repeat each Row)? {
        let reading = try JoinReading(join, connection())
        return try reading.explaining { () throws(StoreError) in
            try reading.children.rows(join.selectSQL(first: 1), reading.connection) {
                statement throws(StoreError) in try reading.row(statement)
            }
        }.first
    }

    /// Calls `body` with each row of a join of two types.
    ///
    /// ```swift
    /// try tx.forEach(Article.all.leftJoining(\.editor, to: Author.all)) { article, editor in
    ///     try writer.write(article, editor)
    /// }
    /// ```
    ///
    /// Each row is authenticated before `body` gets it. An error from `body` ends the loop. If
    /// `body` changes rows of one of the tables, the loop may see them again, even indefinitely:
    /// fetch the rows first. There is a loop for joins of up to four types.
    ///
    /// - Throws: As `fetch(_:)` of a join; any error from `body`.
    /// - Complexity: O(1) memory, or O(*rows*) inside SQLite for an order that no index gives.
    public func forEach<Child: Record, Second: Sendable>(
        _ join: Join<Child, Second>, _ body: (Child, Second) throws -> Void
    ) throws {
        let reading = try JoinReading(join, connection())
        try reading.forEach(
            try join.selectSQL(),
            { statement throws(StoreError) in try reading.row(statement) },
            { try body($0.0, $0.1) })
    }

    /// Calls `body` with each row of a join of three types.
    ///
    /// - Throws: As `forEach(_:_:)` of a join of two types.
    /// - Complexity: O(1) memory.
    public func forEach<Child: Record, Second: Sendable, Third: Sendable>(
        _ join: Join<Child, Second, Third>, _ body: (Child, Second, Third) throws -> Void
    ) throws {
        let reading = try JoinReading(join, connection())
        try reading.forEach(
            try join.selectSQL(),
            { statement throws(StoreError) in try reading.row(statement) },
            { try body($0.0, $0.1, $0.2) })
    }

    /// Calls `body` with each row of a join of four types.
    ///
    /// - Throws: As `forEach(_:_:)` of a join of two types.
    /// - Complexity: O(1) memory.
    public func forEach<Child: Record, Second: Sendable, Third: Sendable, Fourth: Sendable>(
        _ join: Join<Child, Second, Third, Fourth>,
        _ body: (Child, Second, Third, Fourth) throws -> Void
    ) throws {
        let reading = try JoinReading(join, connection())
        try reading.forEach(
            try join.selectSQL(),
            { statement throws(StoreError) in try reading.row(statement) },
            { try body($0.0, $0.1, $0.2, $0.3) })
    }

    /// The number of rows of a join, at most its limit.
    ///
    /// - Throws: As `fetch(_:)` of a join.
    /// - Complexity: O(*rows*) time.
    public func count<Child: Record, each Row: Sendable>(
        _ join: Join<Child, repeat each Row>
    ) throws -> Int {
        let reading = try JoinReading(join, connection())
        return try reading.explaining { () throws(StoreError) in
            try reading.children.integer(join.countSQL(), reading.connection)
        }
    }

    /// Whether a join has any row.
    ///
    /// - Throws: As `fetch(_:)` of a join.
    public func exists<Child: Record, each Row: Sendable>(
        _ join: Join<Child, repeat each Row>
    ) throws -> Bool {
        let reading = try JoinReading(join, connection())
        return try reading.explaining { () throws(StoreError) in
            try reading.children.integer(join.existsSQL(), reading.connection) != 0
        }
    }
}

/// Reads the rows of a join on a connection.
private struct JoinReading<Child: Record, each Row: Sendable> {
    let connection: Connection
    let children: RecordTable
    private let tables: JoinedTables
    private let readers: (repeat (Statement) throws(StoreError) -> each Row)

    init(
        _ join: Join<Child, repeat each Row>, _ connection: Connection
    ) throws(StoreError) {
        self.connection = connection
        children = try RecordTable.of(Child.self, connection)
        let tables = JoinedTables(of: try join.tables(), after: children.plan)
        self.tables = tables
        readers = (repeat try (each join.readers).begin(tables, connection))
    }

    /// The statement's current row.
    func row(_ statement: Statement) throws(StoreError) -> (Child, repeat each Row) {
        let child = try children.decoder.current(Child.self, statement)
        return (child, repeat try (each readers)(statement))
    }

    /// Calls `body` with what `make` makes of each row.
    func forEach<T>(
        _ sql: SQL, _ make: (Statement) throws(StoreError) -> T, _ body: (T) throws -> Void
    ) throws {
        // An error from `body` is not a failure of a table, so nothing may explain it as one.
        let failure = try explaining { () throws(StoreError) in
            try children.forEachRow(sql, [], connection) { try body(make($0)) }
        }
        if let failure { throw failure }
    }

    /// The result of `body`, whose error is explained by the first table that it concerns.
    func explaining<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
        do throws(StoreError) {
            return try body()
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
