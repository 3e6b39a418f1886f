// The operators of calculations. Each has a property, a calculation or a value on its sides.

// MARK: +

/// The sum of two properties.
public func + <R: Record, A: NumericProperty, B: NumericProperty>(
    left: KeyPath<R, A>, right: KeyPath<R, B>
) -> Calculation<R, A.Number> where A.Number == B.Number {
    Calculation(.column(left), "+", .column(right))
}

/// The sum of a property and a calculation.
public func + <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: Calculation<R, A.Number>
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "+", right.term)
}

/// The sum of a property and a value.
public func + <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: A.Number
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "+", .value(right))
}

/// The sum of a calculation and a property.
public func + <R: Record, B: NumericProperty>(
    left: Calculation<R, B.Number>, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(left.term, "+", .column(right))
}

/// The sum of two calculations.
public func + <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(left.term, "+", right.term)
}

/// The sum of a calculation and a value.
public func + <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Calculation<R, Number> {
    Calculation(left.term, "+", .value(right))
}

/// The sum of a value and a property.
public func + <R: Record, B: NumericProperty>(
    left: B.Number, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(.value(left), "+", .column(right))
}

/// The sum of a value and a calculation.
public func + <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Number, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(.value(left), "+", right.term)
}

// MARK: -

/// The difference of two properties.
public func - <R: Record, A: NumericProperty, B: NumericProperty>(
    left: KeyPath<R, A>, right: KeyPath<R, B>
) -> Calculation<R, A.Number> where A.Number == B.Number {
    Calculation(.column(left), "-", .column(right))
}

/// The difference of a property and a calculation.
public func - <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: Calculation<R, A.Number>
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "-", right.term)
}

/// The difference of a property and a value.
public func - <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: A.Number
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "-", .value(right))
}

/// The difference of a calculation and a property.
public func - <R: Record, B: NumericProperty>(
    left: Calculation<R, B.Number>, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(left.term, "-", .column(right))
}

/// The difference of two calculations.
public func - <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(left.term, "-", right.term)
}

/// The difference of a calculation and a value.
public func - <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Calculation<R, Number> {
    Calculation(left.term, "-", .value(right))
}

/// The difference of a value and a property.
public func - <R: Record, B: NumericProperty>(
    left: B.Number, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(.value(left), "-", .column(right))
}

/// The difference of a value and a calculation.
public func - <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Number, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(.value(left), "-", right.term)
}

// MARK: *

/// The product of two properties.
public func * <R: Record, A: NumericProperty, B: NumericProperty>(
    left: KeyPath<R, A>, right: KeyPath<R, B>
) -> Calculation<R, A.Number> where A.Number == B.Number {
    Calculation(.column(left), "*", .column(right))
}

/// The product of a property and a calculation.
public func * <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: Calculation<R, A.Number>
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "*", right.term)
}

/// The product of a property and a value.
public func * <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: A.Number
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "*", .value(right))
}

/// The product of a calculation and a property.
public func * <R: Record, B: NumericProperty>(
    left: Calculation<R, B.Number>, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(left.term, "*", .column(right))
}

/// The product of two calculations.
public func * <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(left.term, "*", right.term)
}

/// The product of a calculation and a value.
public func * <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Calculation<R, Number> {
    Calculation(left.term, "*", .value(right))
}

/// The product of a value and a property.
public func * <R: Record, B: NumericProperty>(
    left: B.Number, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(.value(left), "*", .column(right))
}

/// The product of a value and a calculation.
public func * <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Number, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(.value(left), "*", right.term)
}

// MARK: /

/// The quotient of two properties.
public func / <R: Record, A: NumericProperty, B: NumericProperty>(
    left: KeyPath<R, A>, right: KeyPath<R, B>
) -> Calculation<R, A.Number> where A.Number == B.Number {
    Calculation(.column(left), "/", .column(right))
}

/// The quotient of a property and a calculation.
public func / <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: Calculation<R, A.Number>
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "/", right.term)
}

/// The quotient of a property and a value.
public func / <R: Record, A: NumericProperty>(
    left: KeyPath<R, A>, right: A.Number
) -> Calculation<R, A.Number> {
    Calculation(.column(left), "/", .value(right))
}

/// The quotient of a calculation and a property.
public func / <R: Record, B: NumericProperty>(
    left: Calculation<R, B.Number>, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(left.term, "/", .column(right))
}

/// The quotient of two calculations.
public func / <R: Record, Number: NumericProperty>(
    left: Calculation<R, Number>, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(left.term, "/", right.term)
}

/// The quotient of a calculation and a value.
public func / <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Calculation<R, Number>, right: Number
) -> Calculation<R, Number> {
    Calculation(left.term, "/", .value(right))
}

/// The quotient of a value and a property.
public func / <R: Record, B: NumericProperty>(
    left: B.Number, right: KeyPath<R, B>
) -> Calculation<R, B.Number> {
    Calculation(.value(left), "/", .column(right))
}

/// The quotient of a value and a calculation.
public func / <R: Record, Number: NumericProperty & Numeric & ValueConvertible>(
    left: Number, right: Calculation<R, Number>
) -> Calculation<R, Number> {
    Calculation(.value(left), "/", right.term)
}
