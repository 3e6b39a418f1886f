/// The rows of a record type, each with rows that it refers to.
///
/// ```swift
/// let join = Article.where(\.created > date).joining(\.author, to: Author.order(by: \.name))
/// for (article, author) in try tx.fetch(join) { … }
/// ```
///
/// `Row` is a record type for each table that is joined, or an optional one for a LEFT JOIN. A join
/// is a value and runs nothing by itself. The verb that uses it throws its errors.
public struct Join<Child: Record, each Row: Sendable>: Sendable {
    private let children: Query<Child>
    private let joined: Result<[JoinedTable], StoreError>
    /// Makes the values of each joined table from a row.
    let readers: (repeat JoinedRowReader<each Row>)

    fileprivate init(
        _ children: Query<Child>, _ joined: Result<[JoinedTable], StoreError>,
        _ readers: repeat JoinedRowReader<each Row>
    ) {
        (self.children, self.joined) = (children, joined)
        self.readers = (repeat each readers)
    }

    /// The tables that are joined, in the order of `readers`.
    func tables() throws(StoreError) -> [JoinedTable] { try joined.get() }

    /// The SELECT of the rows: the columns of each table in their order, then for each LEFT JOIN
    /// whether it has found a row.
    ///
    /// - Parameter maximumCount: The number of rows, if it is less than the limit of the join.
    func selectSQL(first maximumCount: Int = .max) throws(StoreError) -> SQL {
        let plan = try RecordPlan.of(Child.self)
        let joined = try joined.get()
        let columns =
            plan.selectedColumns + joined.flatMap(\.selectedColumns)
            + joined.filter(\.isOptional).map(\.presence)
        return try selectSQL(columns.joined(separator: ", "), first: maximumCount)
    }

    /// The SELECT of the number of rows.
    func countSQL() throws(StoreError) -> SQL {
        guard children.maximumCount == nil else {
            return "SELECT count(*) FROM (\(try selectSQL("1")))"
        }
        return try selectSQL("count(*)", isSorted: false)
    }

    /// The SELECT of whether there is a row.
    func existsSQL() throws(StoreError) -> SQL {
        "SELECT EXISTS (\(try selectSQL("1")))"
    }

    private func selectSQL(
        _ columns: String, first maximumCount: Int = .max, isSorted: Bool = true
    ) throws(StoreError) -> SQL {
        let plan = try RecordPlan.of(Child.self)
        let joined = try joined.get()
        var rows = children
        if maximumCount < rows.maximumCount ?? .max {
            rows = rows.limit(maximumCount, offset: rows.offset)
        }
        for filter in joined.compactMap(\.filter) { rows = rows.where(Condition(filter)) }
        let order = joined.reversed().flatMap(\.order)
        guard order.isEmpty || !rows.isPage else {
            throw StoreError(
                .misuse,
                "the rows come after a record in their own order, and the join has another",
                hint: "Leave the order of the joined query out.", table: plan.table)
        }
        rows.order = isSorted ? order + rows.order : []
        var sql = SQL(text: "SELECT \(columns) FROM \(plan.quotedTable)")
        for table in joined { sql.append(table.clause) }
        return sql.appending(rows.clauses)
    }

    /// The join with one more table.
    ///
    /// - Parameter paths: The reference of a type that is part of the join.
    fileprivate func adding<From: Record, Parent: Record, Added: Sendable>(
        _ paths: [PartialKeyPath<From>], to parents: Query<Parent>,
        _ reader: JoinedRowReader<Added>
    ) -> Join<Child, repeat each Row, Added> {
        let tables = Result { () throws(StoreError) in
            let joined = try joined.get()
            let plan = try RecordPlan.of(Child.self)
            let reference = try ReferenceColumns(of: paths, to: Parent.self)
            let last = joined.last { $0.plan === reference.child }?.name
            guard let from = last ?? (From.self == Child.self ? plan.quotedTable : nil) else {
                throw StoreError(
                    .misuse,
                    "the join has no \(reference.child.typeName) whose reference it follows",
                    hint: "Join \(reference.child.typeName) before its own references.",
                    table: reference.child.table)
            }
            return joined + [
                try JoinedTable(
                    parents, reference, from: from, isOptional: reader.isOptional,
                    after: [plan.quotedTable] + joined.map(\.name))
            ]
        }
        return Join<Child, repeat each Row, Added>(
            children, tables, repeat each readers, reader)
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
    /// of this query, whose limit counts pairs. In a fragment of SQL, put the table before a column
    /// that both tables have. A type may be joined with itself.
    ///
    /// - Parameters:
    ///   - paths: The properties of one of `static var references`, in its order.
    ///   - parents: A query for the rows that may be referred to, without a limit.
    /// - Note: The verb that uses the join throws `.misuse` for a reference that is not declared.
    public func joining<Parent: Record>(
        _ paths: PartialKeyPath<R>..., to parents: Query<Parent>
    ) -> Join<R, Parent> {
        Join<R>(self, .success([])).adding(paths, to: parents, .record(Parent.self))
    }

    /// Each row together with the row that it refers to, or with `nil` if its reference finds none.
    ///
    /// ```swift
    /// let join = Article.order(by: \.created).leftJoining(\.editor, to: Author.all)
    /// for (article, editor) in try tx.fetch(join) { print(editor?.name ?? "nobody") }
    /// ```
    ///
    /// A condition of `parents` removes no row: a row comes with `nil` if its partner does not
    /// fulfil it. The rows are in the order of `parents`, `nil` as NULL, then in that of this
    /// query, whose limit counts rows.
    ///
    /// - Parameters:
    ///   - paths: The properties of one of `static var references`, in its order.
    ///   - parents: A query for the rows that may be referred to, without a limit.
    /// - Note: The verb that uses the join throws `.misuse` for a reference that is not declared.
    public func leftJoining<Parent: Record>(
        _ paths: PartialKeyPath<R>..., to parents: Query<Parent>
    ) -> Join<R, Parent?> {
        Join<R>(self, .success([])).adding(paths, to: parents, .optional(Parent.self))
    }
}

extension Join {
    /// The rows with one more that they refer to. Rows whose reference finds none are left out.
    ///
    /// ```swift
    /// let join = Article.all.joining(\.author, to: Author.all)
    ///     .joining(\Author.country, to: Country.order(by: \.name))
    /// for (article, author, country) in try tx.fetch(join) { … }
    /// ```
    ///
    /// The order of the type that is joined last comes first. Of a type that the join has several
    /// times, the table that was joined last refers: `Person.all.leftJoining(\.manager, to:
    /// Person.all).leftJoining(\Person.manager, to: Person.all)` has each manager's manager. A
    /// fragment of SQL in the query of such a table names columns by the table's own name.
    ///
    /// - Parameters:
    ///   - paths: The properties of a reference of a type that is part of the join.
    ///   - parents: A query for the rows that may be referred to, without a limit.
    /// - Note: The verb that uses the join throws `.misuse` for a reference that is not declared,
    ///   and for one of a type that the join has not.
    public func joining<From: Record, Parent: Record>(
        _ paths: PartialKeyPath<From>..., to parents: Query<Parent>
    ) -> Join<Child, repeat each Row, Parent> {
        adding(paths, to: parents, .record(Parent.self))
    }

    /// The rows with one more that they refer to, or with `nil` if the reference finds none.
    ///
    /// ```swift
    /// Article.all.joining(\.author, to: Author.all).leftJoining(\Article.editor, to: Author.all)
    /// ```
    ///
    /// - Parameters:
    ///   - paths: The properties of a reference of a type that is part of the join.
    ///   - parents: A query for the rows that may be referred to, without a limit.
    /// - Note: The verb that uses the join throws as for `joining(_:to:)`.
    public func leftJoining<From: Record, Parent: Record>(
        _ paths: PartialKeyPath<From>..., to parents: Query<Parent>
    ) -> Join<Child, repeat each Row, Parent?> {
        adding(paths, to: parents, .optional(Parent.self))
    }
}
