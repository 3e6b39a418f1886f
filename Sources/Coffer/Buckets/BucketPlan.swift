import Synchronization

/// The SQL of one bucket, made once.
///
/// Equal buckets share one plan, so that what connections keep for it is bounded by the number of
/// different buckets, however often a program names them.
final class BucketPlan: Sendable {
    let table: String
    let keyType: String
    let coding: ValueCoding
    /// The quoted table name, or why there is none.
    let quoted: Result<String, StoreError>

    /// Returns the shared plan.
    static func shared(name: String, keyType: String, coding: ValueCoding) -> BucketPlan {
        let identity = Identity(name: name, bytes: SQLText(name), keyType: keyType, coding: coding)
        return plans.withLock { plans in
            if let plan = plans[identity] { return plan }
            let plan = BucketPlan(identity)
            plans[identity] = plan
            return plan
        }
    }

    private init(_ identity: Identity) {
        table = "bucket:\(identity.name)"
        keyType = identity.keyType
        coding = identity.coding
        let table = table
        quoted = Result { () throws(StoreError) in
            guard !identity.name.isEmpty else {
                throw StoreError(.misuse, "a bucket's name is not empty")
            }
            return try table.quotedIdentifier()
        }
    }

    private struct Identity: Hashable {
        let name: String
        /// Tells names apart that differ in Unicode normalisation only, as SQLite does.
        let bytes: SQLText
        let keyType: String
        let coding: ValueCoding

        static func == (left: Identity, right: Identity) -> Bool {
            left.bytes == right.bytes && left.keyType == right.keyType
                && left.coding == right.coding
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(bytes)
        }
    }

    private static let plans = Mutex<[Identity: BucketPlan]>([:])

    /// Integer keys are the row id itself; others need no second tree beside the row ids.
    func createSQL() throws(StoreError) -> String {
        let suffix = keyType == "INTEGER" ? "" : " WITHOUT ROWID"
        return "CREATE TABLE \(try quoted.get()) "
            + "(key \(keyType) PRIMARY KEY NOT NULL, value)\(suffix)"
    }
}
