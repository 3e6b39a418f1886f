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

    /// Returns the plan of the buckets with this name, key type and coding; the same object at each
    /// call.
    static func shared(name: String, keyType: BucketKeyType, coding: ValueCoding) -> BucketPlan {
        let identity = Identity(name: SQLText(name), keyType: keyType, coding: coding)
        return plans.withLock { plans in
            if let plan = plans[identity] { return plan }
            let plan = BucketPlan(name: name, keyType: keyType, coding: coding)
            plans[identity] = plan
            return plan
        }
    }

    private init(name: String, keyType: BucketKeyType, coding: ValueCoding) {
        self.name = name
        table = BucketSchema.table(of: name)
        self.keyType = keyType
        self.coding = coding
    }

    /// A key as the file has it.
    ///
    /// - Throws: Errors of the key's type, with the table and its column.
    func stored(_ key: some BucketKey) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try key.storedKey()
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
            return try Key(storedKey: stored)
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
    }

    private static let plans = Mutex<[Identity: BucketPlan]>([:])
}
