import Synchronization

/// The name, key type and value coding of one bucket, computed once for all its verbs.
///
/// Equal buckets share one plan. So the number of different buckets bounds what connections keep
/// for them, however often a program names them.
final class BucketPlan: Sendable {
    let name: String
    let table: String
    let keyType: BucketKeyType
    let coding: ValueCoding
    /// The key of the records to which the entries belong, or why records cannot have them; `nil`
    /// for a bucket of its own.
    let recordKey: Result<RecordKey, StoreError>?
    /// Whether keys are UUIDs and the file has them as texts, as the records have.
    private let hasUUIDTexts: Bool

    /// Returns the plan of the buckets with this name, key type, coding and records; the same
    /// object at each call.
    ///
    /// - Parameter recordKey: The key of the records to which the entries belong, or why records
    ///   cannot have them: then each verb throws it.
    static func shared(
        name: String, keyType: BucketKeyType, coding: ValueCoding,
        recordKey: Result<RecordKey, StoreError>? = nil
    ) -> BucketPlan {
        let make = {
            BucketPlan(name: name, keyType: keyType, coding: coding, recordKey: recordKey)
        }
        if case .failure? = recordKey { return make() }
        let identity = Identity(
            name: SQLText(name), keyType: keyType, coding: coding, recordKey: try? recordKey?.get())
        return plans.withLock { plans in
            if let plan = plans[identity] { return plan }
            let plan = make()
            plans[identity] = plan
            return plan
        }
    }

    private init(
        name: String, keyType: BucketKeyType, coding: ValueCoding,
        recordKey: Result<RecordKey, StoreError>?
    ) {
        self.name = name
        table = BucketSchema.table(of: name)
        self.coding = coding
        self.recordKey = recordKey
        // UUIDs are the only keys that may have another form.
        hasUUIDTexts = (try? recordKey?.get())?.encoding != nil
        self.keyType = hasUUIDTexts ? .text : keyType
    }

    /// A key as the file has it.
    ///
    /// - Throws: Errors of the key's type, with the table and its column.
    func stored(_ key: some BucketKey) throws(StoreError) -> Value {
        do throws(StoreError) {
            guard hasUUIDTexts else { return try key.storedKey() }
            return try ColumnEncoding.uuidText.stored(key.storedKey())
        } catch {
            throw error.with(table: table, column: "key")
        }
    }

    /// The key that the file has as `stored`.
    ///
    /// - Throws: Errors of the key's type, with the table and its column.
    @inline(__always)
    func key<Key: BucketKey>(_ stored: Value) throws(StoreError) -> Key {
        do throws(StoreError) {
            guard hasUUIDTexts else { return try Key(storedKey: stored) }
            return try Key(storedKey: ColumnEncoding.uuidText.usual(stored))
        } catch {
            throw error.with(table: table, column: "key")
        }
    }

    /// The bounds of a range of keys as the file has them.
    ///
    /// - Throws: Errors of the key's type, with the table and its column.
    func stored<Key>(_ range: KeyRange<Key>) throws(StoreError) -> KeyBounds {
        do throws(StoreError) {
            var bounds = try range.bounds.get()
            guard hasUUIDTexts else { return bounds }
            // UUIDs and their texts have the same order.
            let encoding = ColumnEncoding.uuidText
            if let lower = bounds.lower { bounds.lower = try encoding.stored(lower) }
            if let upper = bounds.upper { bounds.upper = try encoding.stored(upper) }
            return bounds
        } catch {
            throw error.with(table: table, column: "key")
        }
    }

    /// The value that the file has as `stored`.
    ///
    /// - Throws: Errors of `decode`, with the table and its column.
    @inline(__always)
    func value<V>(
        _ stored: Value, by decode: (Value) throws(StoreError) -> V
    ) throws(StoreError) -> V {
        do throws(StoreError) {
            return try decode(stored)
        } catch {
            throw error.with(table: table, column: "value")
        }
    }

    /// When an entry ends, in microseconds since 1970; `nil` for never.
    ///
    /// - Parameter now: Microseconds since 1970; only asked if the entry's time depends on it.
    /// - Throws: As `Expiration.time(lifetime:now:)`, with the table and its column.
    func time(
        _ expiration: Expiration, lifetime: Duration?, now: () throws(StoreError) -> Int64
    ) throws(StoreError) -> Int64? {
        if lifetime == nil, case .standard = expiration { return nil }
        do throws(StoreError) {
            return try expiration.time(lifetime: lifetime, now: now)
        } catch {
            throw error.with(table: table, column: "expires")
        }
    }

    private struct Identity: Hashable {
        /// Distinguishes names that differ only in Unicode normalisation, as SQLite does.
        let name: SQLText
        let keyType: BucketKeyType
        let coding: ValueCoding
        let recordKey: RecordKey?
    }

    private static let plans = Mutex<[Identity: BucketPlan]>([:])
}
