/// An observation that delivers on an actor, until you cancel it or release the token.
///
/// ```swift
/// token = store.observe { tx in try tx.fetch(Note.all) } onError: { … } onChange: { … }
/// …
/// token = nil
/// ```
public final class ObservationToken: Sendable {
    let task: Task<Void, Never>

    /// Begins to deliver the values of a sequence.
    ///
    /// - Parameters:
    ///   - values: A sequence whose iterator observes a store.
    ///   - actor: The actor that calls the functions.
    ///   - onError: Gets the error that ends the sequence.
    ///   - onChange: Gets each value.
    init<Values: AsyncSequence & Sendable>(
        _ values: Values, on actor: isolated any Actor,
        onError: @escaping (any Error) -> Void, onChange: @escaping (Values.Element) -> Void
    ) where Values.Element: Sendable {
        task = Task {
            // The task runs on the actor that it captures.
            _ = actor
            do {
                for try await value in values {
                    // The actor may have cancelled while the value was on its way.
                    if Task.isCancelled { return }
                    onChange(value)
                }
            } catch {
                if !Task.isCancelled { onError(error) }
            }
        }
    }

    deinit {
        task.cancel()
    }

    /// Ends the observation. A call on the actor that gets the values is followed by no further
    /// value and no error. Elsewhere a delivery that has begun comes to its end.
    ///
    /// - Complexity: O(1).
    public func cancel() {
        task.cancel()
    }
}
