// Conditions on rows of one table that refer to one another, to any depth.

extension Condition {
    /// True where a chain of references leads from the row to one of the rows of a query: the row
    /// is below it in a tree.
    ///
    /// ```swift
    /// // All folders below the folder, but not the folder itself:
    /// Folder.where(.isDescendant(of: Folder.where(\.id == id), by: \.parent))
    /// ```
    ///
    /// References in a circle do no harm: SQLite visits each row once. A row in a circle is its own
    /// descendant. Declare an index of `paths` (``Record/indexes``).
    ///
    /// - Parameters:
    ///   - roots: The rows at which the trees begin.
    ///   - paths: The properties of one of `static var references` to the type itself.
    /// - Note: The verb that uses the condition throws `.misuse` for a reference that is not
    ///   declared. The corresponding SQL is a recursive common table expression, see
    ///   <https://www.sqlite.org/lang_with.html>.
    /// - Complexity: O(*descendants* × log *rows*) time, O(*descendants*) memory.
    public static func isDescendant(
        of roots: Query<R>, by paths: PartialKeyPath<R>...
    ) -> Condition {
        tree(from: roots, paths) { reference, tree in
            """
            CROSS JOIN \(reference.child.quotedTable) \
            ON \(reference.equality(parent: tree, child: reference.child.quotedTable))
            """
        }
    }

    /// True where a chain of references leads to the row from one of the rows of a query: the row
    /// is above it in a tree.
    ///
    /// ```swift
    /// // All folders above the folder, in no order:
    /// Folder.where(.isAncestor(of: Folder.where(\.id == id), by: \.parent))
    /// ```
    ///
    /// - Parameters:
    ///   - leaves: The rows at which the chains begin.
    ///   - paths: The properties of one of `static var references` to the type itself.
    /// - Note: The verb that uses the condition throws as for `isDescendant(of:by:)`.
    /// - Complexity: O(*ancestors* × log *rows*) time, O(*ancestors*) memory.
    public static func isAncestor(
        of leaves: Query<R>, by paths: PartialKeyPath<R>...
    ) -> Condition {
        tree(from: leaves, paths) { reference, tree in
            let (child, parent) = ("\"coffer:child\"", reference.parent.quotedTable)
            let keys = reference.parentPositions.enumerated().map {
                "\(tree).\"\($0)\" = \(child).\(reference.parent.quotedColumns[$1])"
            }
            return """
                CROSS JOIN \(parent) AS \(child) ON \(keys.joined(separator: " AND ")) \
                CROSS JOIN \(parent) ON \(reference.equality(parent: parent, child: child))
                """
        }
    }

    /// True for the rows that a recursive table expression reaches from `start` in one step or
    /// more. Its columns are those that a reference refers to, by number, and `isReached`.
    ///
    /// - Parameter step: The SQL that joins the rows of the next step to those of the last one.
    private static func tree(
        from start: Query<R>, _ paths: [PartialKeyPath<R>],
        _ step: (_ reference: ReferenceColumns, _ tree: String) -> String
    ) -> Condition {
        do throws(StoreError) {
            let reference = try ReferenceColumns(of: paths, to: R.self)
            let tree = "\"coffer:tree\""
            let columns = reference.parentPositions.indices.map { "\"\($0)\"" }
                .joined(separator: ", ")
            let join = step(reference, tree)
            var sql: SQL = """
                (\(SQL(text: reference.parentColumns))) IN (WITH RECURSIVE \
                \(SQL(text: "\(tree)(\(columns), isReached)")) AS (\
                SELECT *, 0 FROM (\(start.select(reference.parentColumns, reference.parent))) \
                UNION SELECT \(SQL(text: "\(reference.parentColumns), 1 FROM \(tree) \(join)"))) \
                SELECT \(SQL(text: "\(columns) FROM \(tree)")) WHERE isReached)
                """
            sql.datePairs += reference.datePairs
            return Condition(sql)
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}

extension ReferenceColumns {
    /// SQL that is true where a row refers to another one. The column that is referred to comes
    /// first, because a foreign key compares by the collation of that.
    ///
    /// - Parameters:
    ///   - parent: The table that is referred to. The table of the tree names its columns by
    ///     number.
    ///   - child: The table that refers.
    fileprivate func equality(parent: String, child: String) -> String {
        let isTable = parent == self.parent.quotedTable
        return zip(parentPositions, childPositions).enumerated().map { index, positions in
            let column = isTable ? self.parent.quotedColumns[positions.0] : "\"\(index)\""
            return "\(parent).\(column) = \(child).\(self.child.quotedColumns[positions.1])"
        }.joined(separator: " AND ")
    }
}
