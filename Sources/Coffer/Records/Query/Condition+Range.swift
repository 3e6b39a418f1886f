// Ranges as conditions: `(1...5).contains(\.rank)`. Never true for NULL.

extension ClosedRange where Bound: Encodable {
    /// True where the column is in the range.
    public func contains<R: Record>(_ path: KeyPath<R, Bound>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in
            try column.sql(from: lowerBound, through: upperBound)
        }
    }

    /// True where the column is in the range; never for NULL.
    public func contains<R: Record>(_ path: KeyPath<R, Bound?>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in
            try column.sql(from: lowerBound, through: upperBound)
        }
    }
}

extension Range where Bound: Encodable {
    /// True where the column is in the range.
    public func contains<R: Record>(_ path: KeyPath<R, Bound>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in
            try column.sql(from: lowerBound, upTo: upperBound)
        }
    }

    /// True where the column is in the range; never for NULL.
    public func contains<R: Record>(_ path: KeyPath<R, Bound?>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in
            try column.sql(from: lowerBound, upTo: upperBound)
        }
    }
}

extension PartialRangeFrom where Bound: Encodable {
    /// True where the column is in the range.
    public func contains<R: Record>(_ path: KeyPath<R, Bound>) -> Condition<R> {
        path >= lowerBound
    }

    /// True where the column is in the range; never for NULL.
    public func contains<R: Record>(_ path: KeyPath<R, Bound?>) -> Condition<R> {
        path >= lowerBound
    }
}

extension ConditionColumn {
    fileprivate func sql<V: Encodable>(from low: V, through high: V) throws(StoreError) -> SQL {
        sql("\(name) BETWEEN ? AND ?", [try ordered(low), try ordered(high)])
    }

    fileprivate func sql<V: Encodable>(from low: V, upTo high: V) throws(StoreError) -> SQL {
        sql("(\(name) >= ? AND \(name) < ?)", [try ordered(low), try ordered(high)])
    }
}
