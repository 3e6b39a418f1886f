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

    private struct Identity: Hashable {
        /// Distinguishes names that differ only in Unicode normalisation, as SQLite does.
        let name: SQLText
        let keyType: BucketKeyType
        let coding: ValueCoding
    }

    private static let plans = Mutex<[Identity: BucketPlan]>([:])
}
