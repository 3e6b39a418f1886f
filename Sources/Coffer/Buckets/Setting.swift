/// A typed value under a name, with a default for as long as nothing is set.
///
/// ```swift
/// enum Theme: String, Codable { case light, dark }
/// let theme = Setting("theme", default: Theme.light)
///
/// try await store.set(.dark, for: theme)
/// let current = try await store.get(theme)
/// for try await newTheme in store.observe(theme) { try apply(newTheme) }
/// ```
///
/// A setting is only a name with a type and a default: making one touches no store, and nothing is
/// global. Settings of all types share a ``Bucket`` with text keys, `settings` by default.
public struct Setting<Value: Codable & Sendable>: Sendable {
    /// The name: the key in the bucket.
    public let name: String
    /// The value while nothing is set.
    public let defaultValue: Value
    let bucket: Bucket<String, Value>

    /// Names a setting; reads and changes no store.
    ///
    /// - Parameters:
    ///   - name: The key in the bucket.
    ///   - defaultValue: The value while nothing is set. It is not stored.
    ///   - bucket: The name of the bucket: one for settings only, or the verbs throw `.mismatch`.
    public init(_ name: String, default defaultValue: Value, in bucket: String = "settings") {
        self.name = name
        self.defaultValue = defaultValue
        self.bucket = Bucket(bucket, coder: ValueCoder.standard().forAny(), lifetime: nil)
    }
}

extension Reading where Self: ~Copyable {
    /// The value of a setting; its default if nothing is set.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type: a setting
    ///   never falls back to its default in silence; otherwise as `get(_:in:)`.
    /// - Complexity: O(log *settings*).
    public func get<V>(_ setting: Setting<V>) throws -> V {
        try get(setting.name, in: setting.bucket) ?? setting.defaultValue
    }

    /// Whether a setting has a value of its own.
    ///
    /// - Throws: As `contains(_:in:)`.
    /// - Complexity: O(log *settings*).
    public func isSet<V>(_ setting: Setting<V>) throws -> Bool {
        try contains(setting.name, in: setting.bucket)
    }
}

extension WriteTransaction {
    /// Sets a setting.
    ///
    /// - Throws: As `set(_:for:in:expiring:)`.
    /// - Complexity: O(log *settings*).
    public func set<V>(_ value: V, for setting: Setting<V>) throws {
        try set(value, for: setting.name, in: setting.bucket)
    }

    /// Changes a setting in place, beginning with its default if nothing is set.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; as `update(_:in:_:)`.
    /// - Complexity: O(log *settings*).
    @discardableResult
    public func update<V, R>(_ setting: Setting<V>, _ body: (inout V) throws -> R) throws -> R {
        try update(setting.name, default: setting.defaultValue, in: setting.bucket, body)
    }

    /// Removes the value of a setting, which then has its default again.
    ///
    /// - Returns: Whether it had a value.
    /// - Throws: As `remove(_:in:)`.
    /// - Complexity: O(log *settings*).
    @discardableResult
    public func reset<V>(_ setting: Setting<V>) throws -> Bool {
        try remove(setting.name, in: setting.bucket)
    }
}

extension Store {
    /// The value of a setting; its default if nothing is set.
    ///
    /// - Throws: As `get(_:)` of a transaction, and as `read(_:)`.
    public func get<V>(_ setting: Setting<V>) throws -> V {
        try get(setting.name, default: setting.defaultValue, in: setting.bucket)
    }

    /// The value of a setting; its default if nothing is set.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func get<V>(_ setting: Setting<V>) async throws -> V {
        try await get(setting.name, default: setting.defaultValue, in: setting.bucket)
    }

    /// Sets a setting.
    ///
    /// - Throws: As `set(_:for:)` of a transaction, and as `write(_:)`.
    public func set<V>(_ value: V, for setting: Setting<V>) throws {
        try write { tx in try tx.set(value, for: setting) }
    }

    /// Sets a setting.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func set<V>(_ value: V, for setting: Setting<V>) async throws {
        try await write { tx in try tx.set(value, for: setting) }
    }

    /// Changes a setting in place, beginning with its default if nothing is set.
    ///
    /// - Throws: As `update(_:_:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func update<V, R>(_ setting: Setting<V>, _ body: (inout V) throws -> R) throws -> R {
        try write { tx in try tx.update(setting, body) }
    }

    /// Changes a setting in place, beginning with its default if nothing is set.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func update<V, R: Sendable>(
        _ setting: Setting<V>, _ body: @escaping @Sendable (inout V) throws -> R
    ) async throws -> R {
        try await write { tx in try tx.update(setting, body) }
    }

    /// Removes the value of a setting, which then has its default again.
    ///
    /// - Throws: As `reset(_:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func reset<V>(_ setting: Setting<V>) throws -> Bool {
        try write { tx in try tx.reset(setting) }
    }

    /// Removes the value of a setting, which then has its default again.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func reset<V>(_ setting: Setting<V>) async throws -> Bool {
        try await write { tx in try tx.reset(setting) }
    }
}
