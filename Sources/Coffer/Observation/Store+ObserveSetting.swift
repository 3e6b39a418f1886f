extension Store {
    /// The value of a setting, now and whenever a commit may have changed it.
    ///
    /// The loop works and throws as that of `observe(_:)` for any value.
    ///
    /// - Returns: The sequence of values; each loop over it observes separately.
    public func observe<V>(_ setting: Setting<V>) -> ObservedValues<V> {
        observe { tx in try tx.get(setting) }
    }

    /// The value of a setting, now and whenever a commit has changed it: equal values do not come
    /// twice.
    ///
    /// - Returns: The sequence of values; each loop over it observes separately.
    public func observe<V: Equatable>(_ setting: Setting<V>) -> ObservedValues<V> {
        observe { tx in try tx.get(setting) }
    }
}
