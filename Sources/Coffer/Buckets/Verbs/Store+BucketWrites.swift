// One change of a bucket in one call: each verb of a transaction, in a write of its own, which
// waits in the queue and shares its commit as every write does.

extension Store {
    /// Stores a value under a key, and replaces an existing one.
    ///
    /// - Throws: As `set(_:for:in:expiring:)` of a transaction, and as `write(_:)`.
    public func set<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws {
        try write(fileID: fileID, line: line) { tx in
            try tx.set(value, for: key, in: bucket, expiring: expiration)
        }
    }

    /// Stores a value under a key, and replaces an existing one.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func set<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws {
        try await write(fileID: fileID, line: line) { tx in
            try tx.set(value, for: key, in: bucket, expiring: expiration)
        }
    }

    /// Stores the values of several keys: all of them or none.
    ///
    /// - Throws: As `set(_:in:expiring:)` of a transaction, and as `write(_:)`.
    public func set<K, V>(
        _ values: some Sequence<(key: K, value: V)> & Sendable, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws {
        try write(fileID: fileID, line: line) { tx in
            try tx.set(values, in: bucket, expiring: expiration)
        }
    }

    /// Stores the values of several keys: all of them or none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func set<K, V>(
        _ values: some Sequence<(key: K, value: V)> & Sendable, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws {
        try await write(fileID: fileID, line: line) { tx in
            try tx.set(values, in: bucket, expiring: expiration)
        }
    }

    /// Stores a value under a key that has none, and says whether it did.
    ///
    /// - Throws: As `setIfAbsent(_:for:in:expiring:)` of a transaction, and as `write(_:)`.
    public func setIfAbsent<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> Bool {
        try write(fileID: fileID, line: line) { tx in
            try tx.setIfAbsent(value, for: key, in: bucket, expiring: expiration)
        }
    }

    /// Stores a value under a key that has none, and says whether it did.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func setIfAbsent<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> Bool {
        try await write(fileID: fileID, line: line) { tx in
            try tx.setIfAbsent(value, for: key, in: bucket, expiring: expiration)
        }
    }

    /// Changes the value under a key in place; `nil` stands for none.
    ///
    /// - Throws: As `update(_:in:_:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func update<K, V, R>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line,
        _ body: (inout V?) throws -> R
    ) throws -> R {
        try write(fileID: fileID, line: line) { tx in try tx.update(key, in: bucket, body) }
    }

    /// Changes the value under a key in place; `nil` stands for none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func update<K, V, R: Sendable>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping @Sendable (inout V?) throws -> R
    ) async throws -> R {
        try await write(fileID: fileID, line: line) { tx in try tx.update(key, in: bucket, body) }
    }

    /// Changes the value under a key in place, or a default if there is none.
    ///
    /// - Throws: As `update(_:default:in:_:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func update<K, V, R>(
        _ key: K, default initial: @autoclosure () throws -> V, in bucket: Bucket<K, V>,
        fileID: StaticString = #fileID, line: UInt = #line, _ body: (inout V) throws -> R
    ) throws -> R {
        try write(fileID: fileID, line: line) { tx in
            try tx.update(key, default: initial(), in: bucket, body)
        }
    }

    /// Changes the value under a key in place, or a default if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func update<K, V, R: Sendable>(
        _ key: K, default initial: V, in bucket: Bucket<K, V>, fileID: StaticString = #fileID,
        line: UInt = #line, _ body: @escaping @Sendable (inout V) throws -> R
    ) async throws -> R {
        try await write(fileID: fileID, line: line) { tx in
            try tx.update(key, default: initial, in: bucket, body)
        }
    }

    /// Stores a value if the key has the expected one.
    ///
    /// - Throws: As `compareExchange(_:expected:desired:in:expiring:)` of a transaction, and as
    /// `write(_:)`.
    public func compareExchange<K, V: Equatable>(
        _ key: K, expected: V?, desired: V?, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> (exchanged: Bool, original: V?) {
        try write(fileID: fileID, line: line) { tx in
            try tx.compareExchange(
                key, expected: expected, desired: desired, in: bucket, expiring: expiration)
        }
    }

    /// Stores a value if the key has the expected one.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func compareExchange<K, V: Equatable>(
        _ key: K, expected: V?, desired: V?, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> (exchanged: Bool, original: V?) {
        try await write(fileID: fileID, line: line) { tx in
            try tx.compareExchange(
                key, expected: expected, desired: desired, in: bucket, expiring: expiration)
        }
    }

    /// Adds to the integer under a key, and returns the sum.
    ///
    /// - Throws: As `increment(_:by:in:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func increment<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> V {
        try write(fileID: fileID, line: line) { tx in
            try tx.increment(key, by: amount, in: bucket)
        }
    }

    /// Adds to the integer under a key, and returns the sum.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func increment<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> V {
        try await write(fileID: fileID, line: line) { tx in
            try tx.increment(key, by: amount, in: bucket)
        }
    }

    /// Subtracts from the integer under a key, and returns the difference.
    ///
    /// - Throws: As `decrement(_:by:in:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func decrement<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> V {
        try write(fileID: fileID, line: line) { tx in
            try tx.decrement(key, by: amount, in: bucket)
        }
    }

    /// Subtracts from the integer under a key, and returns the difference.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func decrement<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> V {
        try await write(fileID: fileID, line: line) { tx in
            try tx.decrement(key, by: amount, in: bucket)
        }
    }

    /// Changes when an entry expires, and says whether the entry exists.
    ///
    /// - Throws: As `touch(_:in:expiring:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func touch<K, V>(
        _ key: K, in bucket: Bucket<K, V>, expiring expiration: Expiration = .standard,
        fileID: StaticString = #fileID, line: UInt = #line
    ) throws -> Bool {
        try write(fileID: fileID, line: line) { tx in
            try tx.touch(key, in: bucket, expiring: expiration)
        }
    }

    /// Changes when an entry expires, and says whether the entry exists.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func touch<K, V>(
        _ key: K, in bucket: Bucket<K, V>, expiring expiration: Expiration = .standard,
        fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> Bool {
        try await write(fileID: fileID, line: line) { tx in
            try tx.touch(key, in: bucket, expiring: expiration)
        }
    }

    /// Removes a key and its value, and says whether it existed.
    ///
    /// - Throws: As `remove(_:in:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func remove<K, V>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line
    ) throws -> Bool {
        try write(fileID: fileID, line: line) { tx in try tx.remove(key, in: bucket) }
    }

    /// Removes a key and its value, and says whether it existed.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func remove<K, V>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> Bool {
        try await write(fileID: fileID, line: line) { tx in try tx.remove(key, in: bucket) }
    }

    /// Removes several keys, and returns how many existed.
    ///
    /// - Throws: As `remove(_:in:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func remove<K, V>(
        _ keys: some Sequence<K> & Sendable, in bucket: Bucket<K, V>,
        fileID: StaticString = #fileID, line: UInt = #line
    ) throws -> Int {
        try write(fileID: fileID, line: line) { tx in try tx.remove(keys, in: bucket) }
    }

    /// Removes several keys, and returns how many existed.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func remove<K, V>(
        _ keys: some Sequence<K> & Sendable, in bucket: Bucket<K, V>,
        fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> Int {
        try await write(fileID: fileID, line: line) { tx in try tx.remove(keys, in: bucket) }
    }

    /// Removes every entry of a range, and returns their number.
    ///
    /// - Throws: As `removeAll(in:_:)` of a transaction, and as `write(_:)`.
    @discardableResult
    public func removeAll<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> Int {
        try write(fileID: fileID, line: line) { tx in try tx.removeAll(in: bucket, range) }
    }

    /// Removes every entry of a range, and returns their number.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func removeAll<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> Int {
        try await write(fileID: fileID, line: line) { tx in try tx.removeAll(in: bucket, range) }
    }

    /// Removes a key, and returns the value that it had.
    ///
    /// - Throws: As `take(_:in:)` of a transaction, and as `write(_:)`.
    public func take<K, V>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line
    ) throws -> V? {
        try write(fileID: fileID, line: line) { tx in try tx.take(key, in: bucket) }
    }

    /// Removes a key, and returns the value that it had.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func take<K, V>(
        _ key: K, in bucket: Bucket<K, V>, fileID: StaticString = #fileID, line: UInt = #line
    ) async throws -> V? {
        try await write(fileID: fileID, line: line) { tx in try tx.take(key, in: bucket) }
    }

    /// Removes the entry with the first key of a range, and returns it.
    ///
    /// - Throws: As `popFirst(in:_:)` of a transaction, and as `write(_:)`.
    public func popFirst<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> BucketEntry<K, V>? {
        try write(fileID: fileID, line: line) { tx in try tx.popFirst(in: bucket, range) }
    }

    /// Removes the entry with the first key of a range, and returns it.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func popFirst<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> BucketEntry<K, V>? {
        try await write(fileID: fileID, line: line) { tx in try tx.popFirst(in: bucket, range) }
    }

    /// Removes the entry with the last key of a range, and returns it.
    ///
    /// - Throws: As `popLast(in:_:)` of a transaction, and as `write(_:)`.
    public func popLast<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) throws -> BucketEntry<K, V>? {
        try write(fileID: fileID, line: line) { tx in try tx.popLast(in: bucket, range) }
    }

    /// Removes the entry with the last key of a range, and returns it.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func popLast<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, fileID: StaticString = #fileID,
        line: UInt = #line
    ) async throws -> BucketEntry<K, V>? {
        try await write(fileID: fileID, line: line) { tx in try tx.popLast(in: bucket, range) }
    }
}
