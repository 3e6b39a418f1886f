extension AttachmentBucket {
    /// Names the attachments of records: each record has one of them at most, under its key.
    ///
    /// ```swift
    /// extension Film {
    ///     static let videos = AttachmentBucket("videos", of: \Film.id)
    /// }
    /// try store.write { tx in try tx.insert(film) }
    /// try await store.set(contentsOf: request.body, for: film.id, in: Film.videos)
    /// try store.write { tx in try tx.delete(film) }  // with its video
    /// ```
    ///
    /// All verbs of attachments work on it. The file itself keeps attachments and records together,
    /// by a foreign key with ON DELETE CASCADE and ON UPDATE CASCADE, and two triggers:
    ///
    /// - Setting an attachment throws `.notFound` if no record has the key.
    /// - An attachment is removed in the transaction that deletes its record, and it follows the
    ///   record if its key changes. REPLACE deletes the row that it replaces, and so the
    ///   attachment; `upsert` keeps it. Where foreign keys are off, in a migration and in many
    ///   other programs, REPLACE and DROP TABLE leave an attachment without its record.
    /// - The store frees the chunks later, as for attachments that are removed. A process that only
    ///   deletes records starts freeing them when it calls `tx.create(Film.videos)`.
    ///
    /// Declare several buckets for several attachments, or another record type that refers to this
    /// one for any number of them. `tx.create(Film.videos)` gives an existing bucket of attachments
    /// to the records.
    ///
    /// - Parameters:
    ///   - name: As in `init(_:lifetime:)`.
    ///   - key: The key of the record type, or another property with a unique index. Its type is
    ///     `String`, an integer other than `UInt` and `UInt64`, `UUID`, `Data`, or a `BucketKey`
    ///     with such a raw value. Otherwise every verb throws `.misuse`, which says why. A property
    ///     that is not the key must not become `nil` while its record has an attachment: the update
    ///     then throws `.constraint`.
    ///   - lifetime: As in `init(_:lifetime:)`.
    public init<R: Record>(
        _ name: String, of key: KeyPath<R, Key>, lifetime: Duration? = nil
    ) {
        self.init(name, ofPath: key, lifetime)
    }

    /// Names the attachments of records whose key is optional, because the engine may choose it.
    ///
    /// - Parameters:
    ///   - name: As in `init(_:lifetime:)`.
    ///   - key: As in `init(_:of:lifetime:)`.
    ///   - lifetime: As in `init(_:lifetime:)`.
    public init<R: Record>(
        _ name: String, of key: KeyPath<R, Key?>, lifetime: Duration? = nil
    ) {
        self.init(name, ofPath: key, lifetime)
    }

    private init<R: Record>(
        _ name: String, ofPath path: PartialKeyPath<R>, _ lifetime: Duration?
    ) {
        let recordKey = Result { () throws(StoreError) in
            let key = try RecordKey(path)
            try key.require(Key.keyType)
            return key
        }
        self.init(name, recordKey: recordKey, lifetime: lifetime)
    }
}

extension RecordKey {
    /// - Throws: `.misuse` if a bucket stores keys of this type otherwise than the records.
    fileprivate func require(_ type: BucketKeyType) throws(StoreError) {
        let storages: [BucketKeyType: Storage] = [
            .text: .text, .integer: .integer, .uuid: .blob, .bytes: .blob,
        ]
        if storages[type] == storage, encoding == nil { return }
        if type == .uuid, storage == .text, encoding != nil { return }
        throw StoreError(
            .misuse,
            "the records of \(typeName) cannot have attachments by \(column), because its keys "
                + "are \(type)",
            hint: "Name a key that is a text, an integer of 64 bits with a sign, a UUID or bytes.",
            table: table, column: column)
    }
}

extension WriteTransaction {
    /// Makes the table of a bucket of attachments, if it is missing, and gives an existing one to
    /// the records that the bucket is declared for.
    ///
    /// Setting an attachment makes a missing table too. Call this in a migration for a bucket that
    /// has attachments already, and after the migration has renamed the table of the records or
    /// made it again. It also makes a missing table of the records.
    ///
    /// - Throws: `StoreError` `.constraint` if an attachment has a key that no record has;
    ///   `.mismatch` if the file does not keep the records' keys unique, or if the bucket was made
    ///   with other types; `.unsupported` for an existing bucket with triggers of a program or a
    ///   history of changes, which `stopKeepingHistory` ends, or whose table another table, trigger
    ///   or view names; `.misuse` for a type that cannot have attachments. After an error nothing
    ///   is changed.
    /// - Complexity: O(1), and O(*entries*) for a bucket that is given to records.
    public func create<K>(_ bucket: AttachmentBucket<K>) throws {
        let connection = try connection()
        let plan = bucket.entries.plan
        try connection.savepoint { () throws in
            try plan.recordKey?.get().makeTable(connection)
            try BucketSchema(connection).create(plan, lifetime: bucket.lifetime)
        }
        // The store frees the chunks of records that others delete.
        connection.willExpire?(ExpirySweep.work)
    }
}

extension Bucket {
    /// - Parameter key: As the file has it.
    /// - Throws: `.notFound` if the entries belong to records and none has this key.
    func requireRecord(_ key: Coffer.Value, _ connection: Connection) throws(StoreError) {
        guard let recordKey = try plan.recordKey?.get(),
            try !recordKey.contains(key, connection)
        else { return }
        throw StoreError(
            .notFound, "\(recordKey.table) has no row with this key",
            hint: "Insert the record first. Another write may have removed it.",
            table: recordKey.table, column: recordKey.column)
    }
}
