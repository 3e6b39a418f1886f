import Synchronization

/// The SQL of one bucket, made once.
///
/// Equal buckets share one plan. So the number of different buckets bounds what connections keep
/// for them, however often a program names them.
final class BucketPlan: Sendable {
    let table: String
    let keyType: String
    let coding: ValueCoding
    /// The quoted table name, or the error for an unusable name.
    let quoted: Result<String, StoreError>

    /// Returns the plan of the buckets with this name, key type and coding; the same object at each
    /// call.
    static func shared(name: String, keyType: String, coding: ValueCoding) -> BucketPlan {
        let identity = Identity(name: SQLText(name), keyType: keyType, coding: coding)
        return plans.withLock { plans in
            if let plan = plans[identity] { return plan }
            let plan = BucketPlan(name: name, keyType: keyType, coding: coding)
            plans[identity] = plan
            return plan
        }
    }

    private init(name: String, keyType: String, coding: ValueCoding) {
        table = "bucket:\(name)"
        self.keyType = keyType
        self.coding = coding
        let table = table
        quoted = Result { () throws(StoreError) in
            guard !name.isEmpty else {
                throw StoreError(.misuse, "a bucket's name must not be empty")
            }
            return try table.quotedIdentifier()
        }
    }

    private struct Identity: Hashable {
        /// Distinguishes names that differ only in Unicode normalisation, as SQLite does.
        let name: SQLText
        let keyType: String
        let coding: ValueCoding
    }

    private static let plans = Mutex<[Identity: BucketPlan]>([:])

    /// The SQL that makes the bucket's table. Integer keys are the row id itself. Tables with other
    /// keys are WITHOUT ROWID, which saves them a second B-tree next to that of the row ids.
    ///
    /// - Throws: `.misuse` for an empty name, `.sql` for one with a NUL character.
    func createSQL() throws(StoreError) -> String {
        let suffix = keyType == "INTEGER" ? "" : " WITHOUT ROWID"
        return "CREATE TABLE \(try quoted.get()) "
            + "(key \(keyType) PRIMARY KEY NOT NULL, value)\(suffix)"
    }
}
