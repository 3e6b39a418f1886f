/// The name, types and size of one bucket, as the store's file has them.
public struct BucketInformation: Sendable, Hashable {
    /// The bucket's name.
    public let name: String
    /// The type of its keys; `nil` if the file does not record it.
    public let keyType: BucketKeyType?
    /// How its values are stored: `sql` for the SQL values that their type has, `json`, `any` for
    /// settings, `attachment` for an ``AttachmentBucket``, or the name of a ``BucketCodec``; `nil`
    /// if it was not recorded.
    public let codec: String?
    /// The lifetime that the bucket was made with; `nil` for none.
    public let lifetime: Duration?
    /// Whether an entry ever had a time of expiry.
    public let hasExpiry: Bool
    /// The number of entries that have not expired.
    public let count: Int
    /// The bytes of all keys, and of all values or attachments, also of the entries that have
    /// expired and were not swept.
    /// The file needs more: pages are not full.
    public let byteCount: Int
}

extension Reading where Self: ~Copyable {
    /// The buckets of the store, in the order of their names.
    ///
    /// Skips tables that have a bucket's name but other columns.
    ///
    /// - Throws: `StoreError` `.needsNewerProgram` for a bucket whose keys have a type that this
    ///   version does not know; `.damaged`; otherwise as `rows(_:)`.
    /// - Complexity: O(*bytes* of all buckets), since it counts.
    public func buckets() throws -> [BucketInformation] {
        let connection = try connection()
        let schema = BucketSchema(connection)
        var buckets: [BucketInformation] = []
        for name in try schema.names() {
            guard let found = try schema.findBucket(name) else { continue }
            buckets.append(try Self.information(name, found, connection))
        }
        return buckets
    }

    private static func information(
        _ name: String, _ found: BucketSchema.Found, _ connection: Connection
    ) throws(StoreError) -> BucketInformation {
        let table = try BucketSchema.table(of: name).quotedIdentifier()
        let sizes = try numbers(
            SQL(
                text: """
                    SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) \
                    + coalesce(length(CAST(value AS BLOB)), 0)), 0) FROM main.\(table)
                    """), connection)
        var expiredCount = 0
        if found.hasExpiry {
            let now = try connection.configuration.currentDate().microseconds()
            expiredCount = try numbers(
                SQL(
                    text: "SELECT count(*) FROM main.\(table) WHERE expires <= ?",
                    arguments: [.integer(now)]), connection)[0]
        }
        var attachedByteCount = 0
        if found.record?.coding == .attachment, try ContentTables(connection).exist() {
            attachedByteCount = try numbers(
                SQL(
                    text: """
                        SELECT coalesce(sum(length), 0) FROM main."coffer:contents" \
                        WHERE id IN (SELECT value FROM main.\(table))
                        """), connection)[0]
        }
        return BucketInformation(
            name: name, keyType: found.keyType, codec: found.record?.coding.name,
            lifetime: found.record?.lifetime, hasExpiry: found.hasExpiry,
            count: sizes[0] - expiredCount, byteCount: sizes[1] + attachedByteCount)
    }

    /// The integers of the one row of a query.
    private static func numbers(
        _ sql: SQL, _ connection: Connection
    ) throws(StoreError) -> [Int] {
        var numbers: [Int] = []
        for value in try connection.firstRow(sql, isReadOnly: false)?.values ?? [] {
            numbers.append(try Int(value))
        }
        return numbers
    }
}

extension WriteTransaction {
    /// Removes a bucket with all its entries.
    ///
    /// A history of its changes ends with it, and does not record that they are gone. A bucket that
    /// is made under the name later has none, until `keepHistory(of:)`.
    ///
    /// - Returns: Whether there was one; `false` is not an error.
    /// - Throws: `StoreError` `.mismatch` if the table is not that of a bucket; `.full`, `.io`,
    ///   `.damaged`; otherwise as `execute(_:)`.
    /// - Complexity: O(*pages* of the bucket).
    @discardableResult
    public func dropBucket(_ name: String) throws -> Bool {
        let schema = BucketSchema(try connection())
        guard let found = try schema.find(name) else { return false }
        try schema.drop(name, found)
        if found.record?.coding == .attachment {
            try connection().willExpire?(ExpirySweep.work)
        }
        return true
    }

    /// Gives a bucket another name.
    ///
    /// A history of its changes must end before (`stopKeepingHistory(of:)`), and may begin again
    /// under the new name: its triggers name the table.
    ///
    /// - Throws: `StoreError` `.notFound` naming the buckets that there are, if there is no such
    ///   one; `.alreadyExists` if the new name is taken; `.misuse` for an empty name, or one that
    ///   differs from that of a bucket in the case of letters only; `.unsupported` for a bucket
    ///   with triggers; otherwise as `execute(_:)`.
    /// - Complexity: O(1), and O(*entries*) for one with expiry, whose index is made again.
    public func renameBucket(_ name: String, to newName: String) throws {
        let schema = BucketSchema(try connection())
        let found = try schema.require(name, andNot: newName)
        try schema.requireNoTriggers(name)
        try schema.rename(name, found, to: newName)
    }

    /// Makes a bucket with the entries of another one, and their times of expiry.
    ///
    /// - Returns: The number of entries, also of those that have expired and were not swept.
    /// - Throws: As `renameBucket(_:to:)`, but triggers are not copied, and refuse nothing;
    ///   `StoreError` `.unsupported` for a bucket of attachments.
    /// - Complexity: O(*entries*).
    @discardableResult
    public func copyBucket(_ name: String, to newName: String) throws -> Int {
        let schema = BucketSchema(try connection())
        let found = try schema.require(name, andNot: newName)
        guard found.record?.coding != .attachment else {
            throw StoreError(
                .unsupported, "the bucket \(name) has attachments, which are not copied",
                hint: "Read each one with withAttachment, and set it in the other bucket.",
                table: BucketSchema.table(of: name))
        }
        return try schema.copy(name, found, to: newName)
    }
}

extension BucketSchema {
    /// - Throws: `.unsupported` for a bucket with triggers; errors of reading the schema.
    func requireNoTriggers(_ name: String) throws(StoreError) {
        guard try hasTriggers(name) else { return }
        throw StoreError(
            .unsupported, "the bucket \(name) has triggers, which name its table",
            hint: "End its history with stopKeepingHistory(of:), and drop other triggers.",
            table: Self.table(of: name))
    }

    /// Finds a bucket, and checks that there is none with the new name.
    ///
    /// - Throws: `.notFound` or `.alreadyExists`; `.misuse` for an empty new name; otherwise as
    ///   `find(_:)`.
    fileprivate func require(_ name: String, andNot newName: String) throws(StoreError) -> Found {
        guard let found = try find(name) else {
            let names = try names()
            let list = names.prefix(10).joined(separator: ", ")
            throw StoreError(
                .notFound, "there is no bucket \(name)",
                hint: names.isEmpty
                    ? "The store has no buckets."
                    : "The store has: \(list)\(names.count > 10 ? ", …" : "").")
        }
        guard !newName.isEmpty else {
            throw StoreError(.misuse, "a bucket's name must not be empty")
        }
        guard try find(newName) == nil else {
            throw StoreError(.alreadyExists, "there is a bucket \(newName) already")
        }
        return found
    }
}
