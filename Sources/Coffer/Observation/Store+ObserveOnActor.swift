extension Store {
    /// Delivers a value on the caller's actor: now, and whenever a commit may have changed it.
    ///
    /// ```swift
    /// @MainActor final class Screen {
    ///     func open(_ store: Store) {
    ///         token = store.observe { tx in
    ///             try tx.fetch(Note.where(\.pinned))
    ///         } onError: { [weak self] error in
    ///             self?.show(error)
    ///         } onChange: { [weak self] notes in
    ///             self?.show(notes)
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// Values are fetched as by the loop over `observe(_:)`, on a thread of Coffer's, and come one
    /// after the other. While the actor is busy, several commits lead to one value: some values are
    /// skipped, the last one never is. Each fetch delivers, even the same value again; a value
    /// that is `Equatable` is delivered if it differs from the last one. For other rules, and at
    /// most one value in an interval, use `start(on:onError:onChange:)` of the sequence.
    ///
    /// The observation ends when you cancel the token or release it, and after an error. Until then
    /// it keeps the store open, and the two functions and the actor alive. So capture `self` weakly
    /// on the main actor. On an actor of your own, which keeps the token, call `cancel()`.
    ///
    /// - Parameters:
    ///   - actor: The actor that calls `onError` and `onChange`; by default the caller's. A call
    ///     from code without an actor does not compile.
    ///   - fetch: Reads the value; runs on one of Coffer's threads.
    ///   - onError: Gets what `fetch` throws, `.closed` when the store is closed, and `.busy`. It
    ///     is called once at most, and no value follows.
    ///   - onChange: Gets each value.
    /// - Returns: The token that keeps the observation going.
    public func observe<T: Sendable>(
        on actor: isolated any Actor = #isolation,
        _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> T,
        onError: @escaping (any Error) -> Void,
        onChange: @escaping (T) -> Void
    ) -> ObservationToken {
        observe(fetch).start(on: actor, onError: onError, onChange: onChange)
    }

    /// Delivers a value on the caller's actor if it differs from the last one. All else is as for
    /// values of any type.
    public func observe<T: Sendable & Equatable>(
        on actor: isolated any Actor = #isolation,
        _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> T,
        onError: @escaping (any Error) -> Void,
        onChange: @escaping (T) -> Void
    ) -> ObservationToken {
        observe(fetch).start(on: actor, onError: onError, onChange: onChange)
    }
}

extension ObservedValues {
    /// Delivers the values on the caller's actor.
    ///
    /// ```swift
    /// token = store.observe { tx in try tx.count(Note.all) }
    ///     .throttle(for: .milliseconds(100))
    ///     .start { error in show(error) } onChange: { count in badge.show(count) }
    /// ```
    ///
    /// All else is as for `Store.observe(on:_:onError:onChange:)`.
    public func start(
        on actor: isolated any Actor = #isolation,
        onError: @escaping (any Error) -> Void,
        onChange: @escaping (Element) -> Void
    ) -> ObservationToken {
        ObservationToken(self, on: actor, onError: onError, onChange: onChange)
    }
}
