/// Buckets whose types only the file knows, or a person names.
extension Connection {
    /// The types of a bucket, each `nil` if the file does not record it; `nil` without the bucket.
    ///
    /// Must be called in a transaction.
    ///
    /// - Throws: `.mismatch` if the table is not that of a bucket; `.misuse` if the name of another
    ///   bucket differs only in the case of ASCII letters; `.needsNewerProgram` for keys of a type
    ///   that this version does not know; errors of reading.
    package func bucketTypes(
        of name: String
    ) throws(StoreError) -> (keyType: BucketKeyType?, codec: String?)? {
        guard let found = try BucketSchema(self).find(name) else { return nil }
        return (found.keyType, found.record?.coding.name)
    }

    /// Makes a bucket without entries and without a lifetime.
    ///
    /// Must be called in a transaction for writing.
    ///
    /// - Parameter codec: `sql`, `json`, `any`, or the name of a program's codec.
    /// - Throws: `.misuse` for an empty name of a codec; `.sql` for a name with a NUL character, or
    ///   one that is taken; errors of the statements.
    package func makeBucket(
        _ name: String, keyType: BucketKeyType, codec: String
    ) throws(StoreError) {
        let coding = ValueCoding(named: codec)
        try coding.check()
        let plan = BucketPlan.shared(name: name, keyType: keyType, coding: coding)
        try BucketSchema(self).make(plan, lifetime: nil)
    }
}
