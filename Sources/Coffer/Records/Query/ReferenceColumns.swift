/// The columns of a declared reference, and the columns that they refer to.
struct ReferenceColumns: Sendable {
    let child: RecordPlan
    let parent: RecordPlan
    let childPositions: [Int]
    let parentPositions: [Int]

    /// - Throws: `.misuse` if the type of `paths` does not declare such a reference.
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
        (childPositions, parentPositions) = (positions, declared.parentPositions)
    }

    /// The SQL of the referring columns, separated by commas.
    var childColumns: String {
        childPositions.map { child.qualifiedColumns[$0] }.joined(separator: ", ")
    }

    /// The columns of dates that are compared.
    var datePairs: [DatePair] {
        zip(childPositions, parentPositions).compactMap { DatePair(child, $0, parent, $1) }
    }

    /// SQL that is true where these columns are among those of `rows`.
    fileprivate func sql(_ columns: String, isIn rows: SQL) -> SQL {
        var sql: SQL = "(\(SQL(text: columns))) IN (\(rows))"
        sql.datePairs += datePairs
        return sql
    }

    /// The SQL of the columns that are referred to, separated by commas.
    var parentColumns: String {
        parentPositions.map { parent.qualifiedColumns[$0] }.joined(separator: ", ")
    }
}

extension DatePair {
    /// Two columns by their positions; `nil` unless the file says from when they count.
    init?(_ plan: RecordPlan, _ position: Int, _ otherPlan: RecordPlan, _ otherPosition: Int) {
        let (column, other) = (plan.columns[position], otherPlan.columns[otherPosition])
        guard column.kind == .date, column.encoding == nil else { return nil }
        self.init(tables: (plan.table, otherPlan.table), columns: (column.name, other.name))
    }
}

extension Query {
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
            let reference = try ReferenceColumns(of: paths, to: R.self)
            let rows = select(reference.parentColumns, reference.parent)
            return Condition(reference.sql(reference.childColumns, isIn: rows))
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}

extension Condition {
    /// True where a row of a query refers to this row. Texts compare by the collation of the
    /// column that is referred to. A type without a table has no rows.
    ///
    /// ```swift
    /// // Authors with an article of this year, and authors without any article:
    /// Author.where(.exists(Article.where(\.created > newYear), by: \.author))
    /// Author.where(!.exists(Article.all, by: \.author))
    /// ```
    ///
    /// - Parameters:
    ///   - children: The rows that may refer to this one. Its limit applies to the whole query, not
    ///     to each parent.
    ///   - paths: The properties of one of the other type's `static var references`, in its order.
    /// - Note: The verb that uses the condition throws `.misuse` for a reference that is not
    ///   declared.
    /// - Complexity: SQLite reads the rows of `children` once.
    public static func exists<Child: Record>(
        _ children: Query<Child>, by paths: PartialKeyPath<Child>...
    ) -> Condition {
        do throws(StoreError) {
            let reference = try ReferenceColumns(of: paths, to: R.self)
            let rows = children.select(reference.childColumns, reference.child)
            var sql = reference.sql(reference.parentColumns, isIn: rows)
            sql.otherTables.append(reference.child)
            return Condition(sql)
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}
