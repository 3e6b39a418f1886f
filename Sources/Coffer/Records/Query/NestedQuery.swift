/// The rows of a record type, each with all rows that refer to it.
///
/// ```swift
/// let authors = Author.order(by: \.name)
///     .including(all: Article.order(by: \.created, .descending), by: \.author)
/// for (author, articles) in try tx.fetch(authors) { … }
/// ```
///
/// One statement reads each record type, however many rows there are. `Children` is an array for
/// each type that is included. A nested query is a value and runs nothing by itself. The verb that
/// uses it throws its errors.
public struct NestedQuery<R: Record, each Children: Sendable>: Sendable {
    let query: Query<R>
    let levels: (repeat IncludedRows<each Children>)

    fileprivate init(_ query: Query<R>, _ levels: repeat IncludedRows<each Children>) {
        self.query = query
        self.levels = (repeat each levels)
    }

    fileprivate func adding<Rows: Sendable>(
        _ level: IncludedRows<Rows>
    ) -> NestedQuery<R, repeat each Children, Rows> {
        NestedQuery<R, repeat each Children, Rows>(query, repeat each levels, level)
    }
}

extension Query {
    /// Each row together with all rows that refer to it; an empty array if there are none.
    ///
    /// ```swift
    /// let authors = Author.where(\.name == "Ada").including(all: Article.all, by: \.author)
    /// let found: [(Author, [Article])] = try tx.fetch(authors)
    /// ```
    ///
    /// The limit of this query counts its own rows. Declare an index of `paths`
    /// (``Record/indexes``): without it SQLite makes one for each fetch. In a fragment of SQL, put
    /// the table before each column.
    ///
    /// - Parameters:
    ///   - children: A query for the rows that may refer to a row of this one, without a limit. Its
    ///     order is that of each array.
    ///   - paths: The properties of one of the other type's `static var references`, in its order.
    /// - Note: The verb that uses the query throws `.misuse` for a reference that is not declared.
    public func including<Child: Record>(
        all children: Query<Child>, by paths: PartialKeyPath<Child>...
    ) -> NestedQuery<R, [Child]> {
        NestedQuery<R>(self).adding(IncludedRows(children, paths, of: R.self))
    }

    /// Each row together with all rows that refer to it, and with those that refer to these.
    ///
    /// ```swift
    /// let articles = Article.all.including(all: Comment.order(by: \.created), by: \.article)
    /// let authors = Author.all.including(all: articles, by: \.author)
    /// for (author, articles) in try tx.fetch(authors) {
    ///     for (article, comments) in articles { … }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - children: A nested query for the rows that may refer to a row of this one.
    ///   - paths: The properties of one of the other type's `static var references`, in its order.
    /// - Note: The verb that uses the query throws `.misuse` for a reference that is not declared.
    public func including<Child: Record, each Rows: Sendable>(
        all children: NestedQuery<Child, repeat each Rows>, by paths: PartialKeyPath<Child>...
    ) -> NestedQuery<R, [(Child, repeat each Rows)]> {
        NestedQuery<R>(self).adding(IncludedRows(nested: children, paths, of: R.self))
    }
}

extension NestedQuery {
    /// Each row together with all rows of one more type that refer to it.
    ///
    /// ```swift
    /// Author.all.including(all: Article.all, by: \.author).including(all: Award.all, by: \.winner)
    /// ```
    ///
    /// - Parameters:
    ///   - children: A query for the rows that may refer to a row of this one, without a limit.
    ///   - paths: The properties of one of the other type's `static var references`, in its order.
    /// - Note: The verb that uses the query throws `.misuse` for a reference that is not declared.
    public func including<Child: Record>(
        all children: Query<Child>, by paths: PartialKeyPath<Child>...
    ) -> NestedQuery<R, repeat each Children, [Child]> {
        adding(IncludedRows(children, paths, of: R.self))
    }

    /// Each row together with all rows of one more type that refer to it, and with those that refer
    /// to these.
    ///
    /// - Parameters:
    ///   - children: A nested query for the rows that may refer to a row of this one.
    ///   - paths: The properties of one of the other type's `static var references`, in its order.
    /// - Note: The verb that uses the query throws `.misuse` for a reference that is not declared.
    public func including<Child: Record, each Rows: Sendable>(
        all children: NestedQuery<Child, repeat each Rows>, by paths: PartialKeyPath<Child>...
    ) -> NestedQuery<R, repeat each Children, [(Child, repeat each Rows)]> {
        adding(IncludedRows(nested: children, paths, of: R.self))
    }
}

/// The rows of one type that refer to rows which were read before.
struct IncludedRows<Rows: Sendable>: Sendable {
    let reference: Result<ReferenceColumns, StoreError>
    /// The rows of each parent, in the order of the keys.
    let read: @Sendable (ParentKeys, Connection) throws(StoreError) -> [Rows]

    fileprivate init<Parent: Record, Child: Record>(
        _ children: Query<Child>, _ paths: [PartialKeyPath<Child>], of parent: Parent.Type
    ) where Rows == [Child] {
        reference = Self.reference(paths, to: parent)
        read = { keys, connection throws(StoreError) in
            try children.read(of: keys, connection)
        }
    }

    fileprivate init<Parent: Record, Child: Record, each Grandchildren: Sendable>(
        nested children: NestedQuery<Child, repeat each Grandchildren>,
        _ paths: [PartialKeyPath<Child>], of parent: Parent.Type
    ) where Rows == [(Child, repeat each Grandchildren)] {
        reference = Self.reference(paths, to: parent)
        read = { keys, connection throws(StoreError) in
            try children.read(of: keys, connection)
        }
    }

    private static func reference<Parent: Record, Child: Record>(
        _ paths: [PartialKeyPath<Child>], to parent: Parent.Type
    ) -> Result<ReferenceColumns, StoreError> {
        Result { () throws(StoreError) in try ReferenceColumns(of: paths, to: parent) }
    }
}

/// The values by which other rows refer to rows that were read.
struct ParentKeys {
    let reference: ReferenceColumns
    /// For each column that is referred to, its values in the order of the rows.
    private var values: [[Value]]
    /// The number of rows.
    private(set) var count = 0

    init(_ reference: ReferenceColumns) {
        self.reference = reference
        values = reference.parentPositions.map { _ in [] }
    }

    /// Adds the current row of a statement that selects all columns of the parents' plan.
    mutating func append(_ statement: Statement) throws(StoreError) {
        let row = try statement.pointer()
        for (index, position) in reference.parentPositions.enumerated() {
            values[index].append(try Statement.value(of: row, at: Int32(position)))
        }
        count += 1
    }

    /// The SELECT of the rows that refer to these, and behind their columns the number of the row
    /// that each refers to.
    ///
    /// - Throws: `.misuse` if the query has a limit; errors of registering what the SQL calls.
    func selectSQL<Child: Record>(
        _ children: Query<Child>, _ connection: Connection
    ) throws(StoreError) -> SQL {
        let plan = reference.child
        guard children.maximumCount == nil else {
            throw StoreError(
                .misuse,
                "the included query has a limit, which would count the rows of all parents",
                hint: "Fetch without it, and take the first rows of each array.",
                table: plan.table)
        }
        let keys = "coffer_parent".isSameIdentifier(as: plan.table) ? "coffer_key" : "coffer_parent"
        let columns = plan.selectedColumns.joined(separator: ", ")
        let referring = try referring(on: connection)
        // SQLite never reorders a CROSS JOIN: the keys are few, and looked up in an index.
        var sql: SQL = """
            SELECT \(SQL(text: columns)), \(SQL(text: keys)).coffer_number \
            FROM (\(ValueList.selectNumbered(values[0]))) AS \(SQL(text: keys)) \
            CROSS JOIN \(SQL(text: "\(plan.quotedTable) ON \(referring[0]) = \(keys).coffer_value"))
            """
        sql.datePairs = reference.datePairs
        if values.count > 1 { try connection.current().knowLists() }
        for (column, values) in zip(referring, values).dropFirst() {
            sql.append(
                """
                 AND \(SQL(text: "\(column) = \(ValueList.function)"))\
                (\(Value.blob(ValueList.pack(values))), \(SQL(text: keys)).coffer_number)
                """)
        }
        return sql.appending(children.clauses)
    }

    /// The SQL of the referring columns, compared as the foreign key compares them: by the
    /// collation of the column that is referred to.
    private func referring(on connection: Connection) throws(StoreError) -> [String] {
        let (child, parent) = (reference.child, reference.parent)
        var columns: [String] = []
        for (own, other) in zip(reference.childPositions, reference.parentPositions) {
            let collation = try connection.collation(parent.columns[other].name, of: parent.table)
            let isSame = try collation.isSameIdentifier(
                as: connection.collation(child.columns[own].name, of: child.table))
            let column = child.qualifiedColumns[own]
            columns.append(
                isSame ? column : "\(column) COLLATE \(try collation.quotedIdentifier())")
        }
        return columns
    }
}
