extension SQL.StringInterpolation {
    /// Binds a value in the form in which the column of a property stores it; NULL for `nil`.
    ///
    /// ```swift
    /// try tx.rows("SELECT title FROM note WHERE created > \(date, for: \Note.created)")
    /// ```
    ///
    /// Needed for a `Date`, whose column counts from 2001 or from 1970, as the file's declared type
    /// says. Also for properties with a `ColumnEncoding`.
    ///
    /// If the value cannot be stored, or the property has no column, each use of the SQL throws
    /// that error, such as `.mismatch` or `.misuse`.
    public mutating func appendInterpolation<R: Record, V: Encodable>(
        _ value: V?, for path: KeyPath<R, V>
    ) {
        sql.append(SQL(value, for: path))
    }

    /// Binds a value in the form in which the column of an optional property stores it; NULL for
    /// `nil`.
    public mutating func appendInterpolation<R: Record, V: Encodable>(
        _ value: V?, for path: KeyPath<R, V?>
    ) {
        sql.append(SQL(value, for: path))
    }
}

extension SQL {
    fileprivate init<R: Record>(_ value: some Encodable, for path: PartialKeyPath<R>) {
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            let column = ConditionColumn(plan, at: try plan.position(of: path))
            self = column.sql("?", [try column.value(value)])
        } catch {
            self.init(failure: error)
            text = "?"
        }
    }
}

extension Reading where Self: ~Copyable {
    /// The encoding of the dates in the column of a property: as the type declares it, or else as
    /// the file does.
    ///
    /// ```swift
    /// let row = try tx.firstRow("SELECT max(created) AS latest FROM note")
    /// let latest = try row?.date("latest", as: tx.dateEncoding(of: \Note.created))
    /// ```
    ///
    /// - Throws: `StoreError` `.misuse` if the property has no column. Errors of reading the
    ///   schema, such as `.damaged`.
    public func dateEncoding<R: Record>(of path: PartialKeyPath<R>) throws -> DateEncoding {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        let position = try table.plan.position(of: path)
        if let declared = table.plan.columns[position].encoding?.dates { return declared }
        return table.since2001.contains(Int32(position)) ? .secondsSince2001 : .unixSeconds
    }
}
