/// A time that has to pass between two fetches of a loop.
struct Throttle: Sendable {
    /// Starts the time, and returns a function that waits for its end, or until the task is
    /// cancelled.
    let begin: @Sendable () -> @Sendable () async -> Void

    init<C: Clock>(_ interval: Duration, _ clock: C) where C.Duration == Duration {
        begin = {
            let end = clock.now.advanced(by: interval)
            return {
                guard clock.now < end else { return }
                try? await clock.sleep(until: end, tolerance: nil)
            }
        }
    }
}

extension ObservedValues {
    /// The same values, at most one in each interval.
    ///
    /// ```swift
    /// for try await count in store.observe({ tx in try tx.count(Note.all) })
    ///     .throttle(for: .milliseconds(100))
    /// {
    ///     badge.show(count)
    /// }
    /// ```
    ///
    /// The first value comes at once. So does the first one after a quiet interval. Commits during
    /// the interval lead to one fetch at its end, so the last value always comes, and a burst of
    /// commits costs one read.
    ///
    /// The interval begins when a fetch ends, even if its value is not delivered because it is
    /// equal to the last one. Closing the store and cancelling the task end the loop at once.
    ///
    /// - Parameters:
    ///   - interval: The time between the end of a fetch and the begin of the next one. Zero and
    ///     less do not wait.
    ///   - clock: Measures the interval. Tests pass one that they move themselves.
    public func throttle<C: Clock>(for interval: Duration, clock: C = ContinuousClock()) -> Self
    where C.Duration == Duration {
        var values = self
        values.throttle = Throttle(interval, clock)
        return values
    }

    /// The values without those that are duplicates of the value delivered last.
    ///
    /// ```swift
    /// let notes = store.observe { tx in try tx.fetch(Note.all) }
    ///     .removeDuplicates { $0.map(\.version) == $1.map(\.version) }
    /// ```
    ///
    /// - Parameter isDuplicate: Whether the second value, a new one, says nothing that the first
    ///   one did not. Takes the place of `==`.
    public func removeDuplicates(
        by isDuplicate: @escaping @Sendable (Element, Element) -> Bool
    ) -> Self {
        var values = self
        values.isSame = isDuplicate
        return values
    }

    /// The values of all fetches: after a commit to a table that the last fetch read, a value comes
    /// even if it is equal to the last one.
    public func includingDuplicates() -> Self {
        var values = self
        values.isSame = nil
        return values
    }
}
