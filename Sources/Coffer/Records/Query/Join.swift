/// The rows of a record type, each with the row that it refers to.
///
/// ```swift
/// let join = Article.where(\.created > date).joining(\.author, to: Author.order(by: \.name))
/// for (article, author) in try tx.fetch(join) { … }
/// ```
///
/// A join is a value and runs nothing by itself. The verb that uses it throws its errors.
public struct Join<Child: Record, Parent: Record>: Sendable {
    private let children: Query<Child>
    private let parents: Query<Parent>
    private let reference: Result<JoinedColumns, StoreError>

    fileprivate init(
        _ children: Query<Child>, _ parents: Query<Parent>, by paths: [PartialKeyPath<Child>]
    ) {
        (self.children, self.parents) = (children, parents)
        reference = Result { () throws(StoreError) in
            try JoinedColumns(of: paths, to: Parent.self)
        }
    }

    func selectSQL() throws(StoreError) -> SQL {
        let reference = try reference.get()
        try reference.requireTwoTables()
        guard parents.maximumCount == nil else {
            throw StoreError(
                .misuse, "the joined query has a limit, which would count other rows",
                hint: "Limit the query that joins it: limit(…).joining(…).",
                table: reference.parent.table)
        }
        var rows = children
        // Columns are qualified by their table, so the parents' condition needs no change.
        if let condition = parents.condition { rows = rows.where(Condition(condition.sql)) }
        rows.order = parents.order + rows.order
        let (child, parent) = (reference.child, reference.parent)
        let columns = (child.selectedColumns + parent.selectedColumns).joined(separator: ", ")
        return SQL(
            text: "SELECT \(columns) FROM \(child.quotedTable) JOIN \(parent.quotedTable) "
                + "ON \(reference.equality)"
        ).appending(rows.clauses)
    }
}

/// The SQL of a join in readable form, with `?` for each value.
extension Join: CustomStringConvertible {
    /// The SELECT of its rows, without any values; or the error, if the join cannot be run.
    public var description: String {
        do throws(StoreError) {
            return try selectSQL().checked().text
        } catch {
            return error.description
        }
    }
}

extension Query {
    /// Each row together with the row that it refers to; a row whose reference finds no row is left
    /// out.
    ///
    /// ```swift
    /// try tx.fetch(Article.order(by: \.created).limit(20).joining(\.author, to: Author.all))
    /// ```
    ///
    /// The conditions of both queries apply. The rows are in the order of `parents`, then in that
    /// of this query, whose limit counts pairs. In a fragment of SQL, qualify a column that both
    /// tables have.
    ///
    /// - Parameters:
    ///   - paths: The properties of one of `static var references`, in its order.
    ///   - parents: A query for the rows that may be referred to, without a limit; its type has
    ///     another table.
    /// - Note: The verb that uses the join throws `.misuse` for a reference that is not declared.
    public func joining<Parent: Record>(
        _ paths: PartialKeyPath<R>..., to parents: Query<Parent>
    ) -> Join<R, Parent> {
        Join(self, parents, by: paths)
    }

    /// True where a row refers to one of the rows of this query; never for NULL. Texts compare by
    /// the collation of the referring column. A type without a table has no rows.
    ///
    /// ```swift
    /// Article.where(Author.where(\.name == "Ada").contains(\.author) && \.created > date)
    /// ```
    ///
    /// - Parameter paths: The properties of one of the other type's `static var references`, in
    ///   its order.
    /// - Note: The verb that uses the condition throws `.misuse` for a reference that is not
    ///   declared.
    public func contains<Child: Record>(_ paths: PartialKeyPath<Child>...) -> Condition<Child> {
        do throws(StoreError) {
            let reference = try JoinedColumns(of: paths, to: R.self)
            let parents = reference.parentColumns.joined(separator: ", ")
            let rows = select(parents, reference.parent)
            let columns = SQL(text: reference.childColumns.joined(separator: ", "))
            return Condition("(\(columns)) IN (\(rows))")
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}

/// The columns of a declared reference, and the columns that they refer to.
private struct JoinedColumns: Sendable {
    let child: RecordPlan
    let parent: RecordPlan
    let childColumns: [String]
    let parentColumns: [String]

    init<Child: Record, Parent: Record>(
        of paths: [PartialKeyPath<Child>], to type: Parent.Type
    ) throws(StoreError) {
        let (child, parent) = (try RecordPlan.of(Child.self), try RecordPlan.of(type))
        var positions: [Int] = []
        for path in paths { positions.append(try child.position(of: path)) }
        let declared = try child.declaration().references.first {
            $0.positions == positions && $0.parent === parent
        }
        guard let declared else {
            let names = positions.map { child.columns[$0].name }.joined(separator: ", ")
            throw StoreError(
                .misuse,
                "\(child.typeName) declares no reference of (\(names)) to "
                    + parent.typeName,
                hint: "Declare static var references: [Reference<Self>] "
                    + "{ [Reference(\\.…, to: \(parent.typeName).self)] }.",
                table: child.table)
        }
        (self.child, self.parent) = (child, parent)
        childColumns = positions.map { child.qualifiedColumns[$0] }
        parentColumns = declared.parentPositions.map { parent.qualifiedColumns[$0] }
    }

    /// The parent column comes first, because a foreign key compares by the parent's collation.
    var equality: String {
        zip(parentColumns, childColumns).map { "\($0) = \($1)" }.joined(separator: " AND ")
    }

    /// - Throws: `.misuse` for a table that refers to itself, because one name would mean two rows.
    func requireTwoTables() throws(StoreError) {
        guard child.table.asciiLowercased == parent.table.asciiLowercased else { return }
        throw StoreError(
            .misuse, "a table cannot be joined with itself by key paths",
            hint: "Fetch the rows, then the rows that they refer to: find(_:keys:).",
            table: child.table)
    }
}

extension Reading where Self: ~Copyable {
    /// The rows of a join: each record with the one that it refers to.
    ///
    /// - Throws: The errors of a query's `fetch(_:)`, for both tables; `StoreError` `.misuse` if
    ///   the reference is not declared.
    /// - Complexity: O(*rows*) memory.
    public func fetch<Child: Record, Parent: Record>(
        _ join: Join<Child, Parent>
    ) throws -> [(Child, Parent)] {
        let connection = try connection()
        let sql = try join.selectSQL()
        let children = try RecordTable.of(Child.self, connection)
        let parents = try RecordTable.of(Parent.self, connection)
        do throws(StoreError) {
            return try children.pairs(sql, with: parents, connection)
        } catch {
            let explained = try parents.explain(error, connection)
            try parents.requireNoTable(after: explained, connection)
            return []
        }
    }
}

extension RecordTable {
    /// The rows of a SELECT that lists all columns of this table, then all columns of the other.
    fileprivate func pairs<Child: Record, Parent: Record>(
        _ sql: SQL, with parents: RecordTable, _ connection: Connection
    ) throws(StoreError) -> [(Child, Parent)] {
        // Empty names hide this table's columns from the second decoder, because no column has one.
        let before = Array(repeating: "", count: plan.columns.count)
        let second = RowDecoder(
            parents.plan, names: before + parents.decoder.names, key: parents.decoder.key,
            leavesLazy: true,
            stored: parents.decoder.stored,
            since2001: parents.since2001.moved(by: before.count))
        return try rows(sql, connection) { statement throws(StoreError) in
            let child = try decoder.current(Child.self, statement)
            return (child, try second.current(Parent.self, statement))
        }
    }
}
