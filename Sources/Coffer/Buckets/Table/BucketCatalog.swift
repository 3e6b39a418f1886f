/// The types of the buckets of a file, as the file records them: the table `coffer:buckets`.
struct BucketCatalog {
    /// One row of the table: the types and the lifetime of one bucket.
    struct Record {
        let keyType: BucketKeyType
        let coding: ValueCoding
        let lifetime: Duration?
    }

    private let connection: Connection
    private static let table = "coffer:buckets"

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// Reads the row of a bucket; `nil` if the table or the row does not exist.
    ///
    /// - Throws: `.mismatch` if the record does not have the types that a record has, or names an
    ///   unknown type of keys; errors of reading.
    func record(of bucket: String) throws(StoreError) -> Record? {
        guard try exists() else { return nil }
        let row = try connection.firstRow(
            """
            SELECT key_type, codec, lifetime FROM main.\(identifier: Self.table)
            WHERE name = \(bucket)
            """, isReadOnly: false)
        guard let row else { return nil }
        guard case .text(let keys) = row[0], case .text(let values) = row[1] else {
            throw StoreError(
                .mismatch, "the record of the bucket \(bucket) is not one", table: Self.table)
        }
        guard let keyType = BucketKeyType(named: keys) else {
            throw StoreError(
                .needsNewerProgram,
                "the bucket \(bucket) has keys of a type that this version "
                    + "does not know: \(keys)", table: Self.table)
        }
        let lifetime = try Int64?(row[2] ?? Value.null)
        return Record(
            keyType: keyType, coding: ValueCoding(named: values),
            lifetime: lifetime.map { .microseconds($0) })
    }

    /// Records a bucket, and replaces an earlier record.
    ///
    /// - Parameter record: `nil` to remove the record.
    /// - Throws: Errors of the statements.
    func set(_ record: Record?, for bucket: String) throws(StoreError) {
        guard let record else {
            guard try exists() else { return }
            try connection.perform(
                "DELETE FROM main.\(identifier: Self.table) WHERE name = \(bucket)")
            return
        }
        let lifetime = try record.lifetime.map { (life) throws(StoreError) in
            try life.wholeMicroseconds()
        }
        if try !exists() {
            try connection.perform(
                """
                CREATE TABLE main.\(identifier: Self.table) (name TEXT PRIMARY KEY NOT NULL, \
                key_type TEXT NOT NULL, codec TEXT NOT NULL, lifetime INTEGER) WITHOUT ROWID
                """)
            connection.forgetAttachments()
        }
        try connection.perform(
            """
            INSERT OR REPLACE INTO main.\(identifier: Self.table) (name, key_type, codec, lifetime)
            VALUES (\(bucket), \(record.keyType.description), \(record.coding.name), \(lifetime))
            """)
    }

    private func exists() throws(StoreError) -> Bool {
        try connection.firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = \(Self.table)",
            isReadOnly: false) != nil
    }
}
