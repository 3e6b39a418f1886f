extension ObservedValues {
    /// Tells how an observed list of rows changes: one difference for each new list.
    ///
    /// ```swift
    /// let notes = store.observe { tx in try tx.fetch(Note.order(by: \.title)) }
    /// for try await difference in notes.differences(by: \.id) { table.apply(difference) }
    /// ```
    ///
    /// The first difference is that from an empty list, even if there are no rows. Each later one
    /// begins with the list at which the one before ended, and is not empty. Otherwise the loop
    /// works and throws as that over the list.
    ///
    /// - Parameter identity: What tells a row from the others, mostly its key.
    /// - Complexity: As `RowDifference.init(from:to:by:)` for each difference; the list is kept.
    public func differences<Row: Sendable & Equatable, ID: Hashable & Sendable>(
        by identity: @escaping @Sendable (Row) -> ID
    ) -> ObservedDifferences<Row> where Element == [Row] {
        ObservedDifferences(rows: self) { RowDifference(from: $0, to: $1, by: identity) }
    }

    /// Tells how an observed list of `Identifiable` rows changes, by their `id`. All else is as for
    /// `differences(by:)`.
    public func differences<Row: Sendable & Equatable & Identifiable>()
        -> ObservedDifferences<Row> where Element == [Row], Row.ID: Sendable
    {
        differences { $0.id }
    }
}

/// The differences of an observed list, one after the other. See `ObservedValues.differences(by:)`.
public struct ObservedDifferences<Row: Sendable & Equatable>: AsyncSequence, Sendable {
    /// A difference of two lists that follow each other.
    public typealias Element = RowDifference<Row>

    let rows: ObservedValues<[Row]>
    let difference: @Sendable ([Row], [Row]) -> RowDifference<Row>

    /// Begins to observe, and returns the loop.
    public func makeAsyncIterator() -> Iterator {
        Iterator(rows: rows.makeAsyncIterator(), difference: difference)
    }

    /// One loop over the differences.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let rows: ObservedValues<[Row]>.Iterator
        fileprivate let difference: @Sendable ([Row], [Row]) -> RowDifference<Row>
        private var last: [Row]?

        fileprivate init(
            rows: ObservedValues<[Row]>.Iterator,
            difference: @escaping @Sendable ([Row], [Row]) -> RowDifference<Row>
        ) {
            self.rows = rows
            self.difference = difference
        }

        /// Waits for the next difference, and returns it. Once a call has thrown an error, later
        /// calls return `nil`.
        ///
        /// - Throws: See `Store.observe(_:)`.
        public mutating func next() async throws -> RowDifference<Row>? {
            while let rows = try await rows.next() {
                let change = difference(last ?? [], rows)
                defer { last = rows }
                if last == nil || !change.isEmpty { return change }
            }
            return nil
        }
    }

    /// Delivers the differences on the caller's actor.
    ///
    /// ```swift
    /// token = store.observe { tx in try tx.fetch(Note.order(by: \.title)) }
    ///     .differences(by: \.id)
    ///     .start { error in show(error) } onChange: { difference in table.apply(difference) }
    /// ```
    ///
    /// Every difference is delivered, so applying all of them gives the list. They are computed
    /// before the actor is asked for its time. All else is as for
    /// `Store.observe(on:_:onError:onChange:)`.
    public func start(
        on actor: isolated any Actor = #isolation,
        onError: @escaping (any Error) -> Void,
        onChange: @escaping (RowDifference<Row>) -> Void
    ) -> ObservationToken {
        ObservationToken(self, on: actor, onError: onError, onChange: onChange)
    }
}
