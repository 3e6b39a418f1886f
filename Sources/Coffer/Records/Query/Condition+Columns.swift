// Comparisons of two properties, and of calculations.

// MARK: Properties

/// True where a property equals another one of the row; `nil` equals `nil`.
public func == <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "IS", right)
}

/// True where a property equals another one of the row; `nil` equals `nil`.
public func == <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "IS", right)
}

/// True where a property equals another one of the row; `nil` equals `nil`.
public func == <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, "IS", right)
}

/// True where a property differs from another one of the row; `nil` equals only `nil`.
public func != <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "IS NOT", right)
}

/// True where a property differs from another one of the row; `nil` equals only `nil`.
public func != <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "IS NOT", right)
}

/// True where a property differs from another one of the row; `nil` equals only `nil`.
public func != <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, "IS NOT", right)
}

/// True where a property is less than another one of the row; never for NULL.
public func < <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "<", right)
}

/// True where a property is less than another one of the row; never for NULL.
public func < <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "<", right)
}

/// True where a property is less than another one of the row; never for NULL.
public func < <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, "<", right)
}

/// True where a property is at most another one of the row; never for NULL.
public func <= <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "<=", right)
}

/// True where a property is at most another one of the row; never for NULL.
public func <= <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, "<=", right)
}

/// True where a property is at most another one of the row; never for NULL.
public func <= <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, "<=", right)
}

/// True where a property is greater than another one of the row; never for NULL.
public func > <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, ">", right)
}

/// True where a property is greater than another one of the row; never for NULL.
public func > <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, ">", right)
}

/// True where a property is greater than another one of the row; never for NULL.
public func > <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, ">", right)
}

/// True where a property is at least another one of the row; never for NULL.
public func >= <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, ">=", right)
}

/// True where a property is at least another one of the row; never for NULL.
public func >= <R: Record, V: Encodable>(
    left: KeyPath<R, V?>, right: KeyPath<R, V>
) -> Condition<R> {
    Condition(left, ">=", right)
}

/// True where a property is at least another one of the row; never for NULL.
public func >= <R: Record, V: Encodable>(
    left: KeyPath<R, V>, right: KeyPath<R, V?>
) -> Condition<R> {
    Condition(left, ">=", right)
}

// MARK: Calculations

/// True where a calculation equals a value; `nil` equals `nil`.
public func == <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, "IS", .value(right))
}

/// True where a calculation equals another one; `nil` equals `nil`.
public func == <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, "IS", right.term)
}

/// True where a calculation equals a property; `nil` equals `nil`.
public func == <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, "IS", .column(right))
}

/// True where a property equals a calculation; `nil` equals `nil`.
public func == <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), "IS", right.term)
}

/// True where a calculation differs from a value; `nil` equals only `nil`.
public func != <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, "IS NOT", .value(right))
}

/// True where a calculation differs from another one; `nil` equals only `nil`.
public func != <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, "IS NOT", right.term)
}

/// True where a calculation differs from a property; `nil` equals only `nil`.
public func != <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, "IS NOT", .column(right))
}

/// True where a property differs from a calculation; `nil` equals only `nil`.
public func != <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), "IS NOT", right.term)
}

/// True where a calculation is less than a value; never for `nil`.
public func < <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, "<", .value(right))
}

/// True where a calculation is less than another one; never for `nil`.
public func < <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, "<", right.term)
}

/// True where a calculation is less than a property; never for `nil`.
public func < <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, "<", .column(right))
}

/// True where a property is less than a calculation; never for `nil`.
public func < <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), "<", right.term)
}

/// True where a calculation is at most a value; never for `nil`.
public func <= <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, "<=", .value(right))
}

/// True where a calculation is at most another one; never for `nil`.
public func <= <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, "<=", right.term)
}

/// True where a calculation is at most a property; never for `nil`.
public func <= <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, "<=", .column(right))
}

/// True where a property is at most a calculation; never for `nil`.
public func <= <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), "<=", right.term)
}

/// True where a calculation is greater than a value; never for `nil`.
public func > <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, ">", .value(right))
}

/// True where a calculation is greater than another one; never for `nil`.
public func > <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, ">", right.term)
}

/// True where a calculation is greater than a property; never for `nil`.
public func > <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, ">", .column(right))
}

/// True where a property is greater than a calculation; never for `nil`.
public func > <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), ">", right.term)
}

/// True where a calculation is at least a value; never for `nil`.
public func >= <R: Record, Number: NumericProperty & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Condition<R> {
    Condition(left.term, ">=", .value(right))
}

/// True where a calculation is at least another one; never for `nil`.
public func >= <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Condition<R> {
    Condition(left.term, ">=", right.term)
}

/// True where a calculation is at least a property; never for `nil`.
public func >= <R: Record, P: NumericProperty>(
    left: Calculation<R, P.Number>, right: KeyPath<R, P>
) -> Condition<R> {
    Condition(left.term, ">=", .column(right))
}

/// True where a property is at least a calculation; never for `nil`.
public func >= <R: Record, P: NumericProperty>(
    left: KeyPath<R, P>, right: Calculation<R, P.Number>
) -> Condition<R> {
    Condition(.column(left), ">=", right.term)
}

// MARK: Inside

extension Condition {
    fileprivate init(
        _ left: Result<CalculationTerm, StoreError>, _ comparison: String,
        _ right: Result<CalculationTerm, StoreError>
    ) {
        do throws(StoreError) {
            let (left, right) = (try left.get(), try right.get())
            self.init("\(left.sql) \(SQL(text: comparison)) \(right.sql)")
        } catch {
            self.init(SQL(failure: error))
        }
    }

    fileprivate init(
        _ left: PartialKeyPath<R>, _ comparison: String, _ right: PartialKeyPath<R>
    ) {
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            let positions = (try plan.position(of: left), try plan.position(of: right))
            let isOrder = comparison != "IS" && comparison != "IS NOT"
            try plan.requireComparable(positions.0, positions.1, isOrder: isOrder)
            let columns = (plan.columns[positions.0], plan.columns[positions.1])
            // An index answers = also where SQLite cannot use it for IS.
            let isNullable = columns.0.isNullable || columns.1.isNullable
            let sign = comparison == "IS" && !isNullable ? "=" : comparison
            var sql = SQL(
                text: "\(plan.qualifiedColumns[positions.0]) \(sign) "
                    + plan.qualifiedColumns[positions.1])
            if let pair = DatePair(plan, positions.0, plan, positions.1) { sql.datePairs = [pair] }
            self.init(sql)
        } catch {
            self.init(SQL(failure: error))
        }
    }
}

extension RecordPlan {
    /// - Throws: `.misuse` for columns whose stored values do not compare as the Swift values do.
    func requireComparable(
        _ left: Int, _ right: Int, isOrder: Bool
    ) throws(StoreError) {
        for position in [left, right] {
            try requireLoaded(position)
            if isOrder { try requireOrder(of: position) }
        }
        let (first, second) = (columns[left], columns[right])
        guard first.kind == second.kind, first.storage == second.storage,
            ColumnEncoding.areAlike(first.encoding, second.encoding)
        else {
            throw StoreError(
                .misuse,
                "the columns \(first.name) and \(second.name) store their values in different "
                    + "forms",
                hint: "Give both properties the same ColumnEncoding, or use the values in Swift.",
                table: table, column: first.name)
        }
    }
}
