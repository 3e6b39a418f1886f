/// The tables of buckets in the schema of the main file: found, checked, made and changed.
///
/// `Documentation/file-format.md` describes them.
struct BucketSchema {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// The name of a bucket's table.
    static func table(of bucket: String) -> String { prefix + bucket }

    /// The prefix of every bucket's table name.
    static let prefix = "bucket:"

    /// The columns of a bucket, and of one with an entry that expires or did.
    fileprivate static let columns = ["key", "value"]
    fileprivate static let expiringColumns = ["key", "value", "expires"]

    // MARK: One bucket

    /// The table of one bucket and its record in `coffer:buckets`, as read from the file.
    struct Found {
        let keyColumnType: String
        let hasExpiry: Bool
        /// The bucket's row in `coffer:buckets`; `nil` if it has none, as buckets made by earlier
        /// versions of Coffer.
        let record: BucketCatalog.Record?

        var columns: [String] { hasExpiry ? expiringColumns : BucketSchema.columns }

        /// The type of the keys, as recorded, or as the column tells; `nil` for bytes that may be
        /// UUIDs.
        var keyType: BucketKeyType? {
            if let record { return record.keyType }
            return switch keyColumnType {
            case "TEXT": .text
            case "INTEGER": .integer
            default: nil
            }
        }
    }

    /// Finds the table of a bucket.
    ///
    /// - Returns: `nil` if there is none.
    /// - Throws: `.mismatch` if what has the name is not the table of a bucket; `.misuse` if the
    ///   name of another bucket differs only in the case of ASCII letters; errors of reading.
    func find(_ bucket: String) throws(StoreError) -> Found? {
        let table = Self.table(of: bucket)
        let object = try connection.firstRow(
            """
            SELECT name, type = 'table' AND rootpage > 0 FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(table) COLLATE NOCASE
            """, isReadOnly: false)
        guard let object else { return nil }
        guard case .text(let name) = object[0], SQLText(name) == SQLText(table) else {
            throw StoreError(
                .misuse, "another bucket's name differs in the case of letters only",
                hint: "Give the bucket another name.", table: table)
        }
        let columns = try connection.rows(
            "PRAGMA main.table_info(\(identifier: table))", isReadOnly: false)
        let names = columns.map { $0["name"] }
        let hasExpiry = names == Self.expiringColumns.map { .text($0) }
        let ranks = columns.map { $0["pk"] }
        guard object[1] == .integer(1), hasExpiry || names == Self.columns.map({ .text($0) }),
            ranks[0] == .integer(1), !ranks.dropFirst().contains(where: { $0 != .integer(0) }),
            columns[0]["notnull"] == .integer(1), columns[1]["type"] == .text(""),
            case .text(let type)? = columns[0]["type"], try hasPlainKeys(table)
        else {
            throw StoreError(.mismatch, "the table is not that of a bucket", table: table)
        }
        let record = try BucketCatalog(connection).record(of: bucket)
        return Found(keyColumnType: type, hasExpiry: hasExpiry, record: record)
    }

    /// Whether the keys of a table are compared byte by byte.
    ///
    /// - Throws: Errors of reading the schema.
    private func hasPlainKeys(_ table: String) throws(StoreError) -> Bool {
        let indexes = try connection.rows(
            "PRAGMA main.index_list(\(identifier: table))", isReadOnly: false)
        for index in indexes where index["origin"] == .text("pk") {
            guard case .text(let name)? = index["name"] else { return false }
            let columns = try connection.rows(
                "PRAGMA main.index_xinfo(\(identifier: name))", isReadOnly: false)
            guard columns.first?["coll"] == .text("BINARY") else { return false }
        }
        return true
    }

    /// Finds the table of a bucket; `nil` also if what has the name is not the table of a bucket.
    ///
    /// - Throws: Errors of reading, and of an unknown type of keys.
    func findBucket(_ bucket: String) throws(StoreError) -> Found? {
        do throws(StoreError) {
            return try find(bucket)
        } catch {
            if error.code == .mismatch { return nil }
            throw error
        }
    }

    /// Finds the table of a bucket and compares its types with those that a program names.
    ///
    /// - Returns: `true` if the bucket's table has the column `expires`, `false` if it lacks it;
    ///   `nil` if the bucket has no table yet.
    /// - Throws: `.mismatch` if the bucket has keys of another type or another codec, or if its
    ///   entries do not belong to the records of the plan; `.misuse` for an unusable name of the
    ///   bucket or its codec, and for records that cannot have entries; otherwise as `find(_:)`.
    func hasExpiry(_ plan: BucketPlan) throws(StoreError) -> Bool? {
        let recordKey = try plan.recordKey?.get()
        guard let found = try find(plan) else { return nil }
        guard let expected = recordKey else { return found.hasExpiry }
        let reference = try RecordReference(of: plan.name, connection)
        guard reference?.isSame(as: RecordReference(expected)) == true else {
            let actual = reference.map { "those of \($0)" } ?? "of no records"
            throw StoreError(
                .mismatch,
                "the bucket's attachments are \(actual), not those of "
                    + "\(RecordReference(expected))",
                hint: "Call create(_:) of the bucket in a migration.", table: plan.table,
                column: "key")
        }
        return found.hasExpiry
    }

    /// Finds the table of a bucket and compares its types with those that a program names.
    ///
    /// - Throws: As `hasExpiry(_:)`, without the comparison of records.
    private func find(_ plan: BucketPlan) throws(StoreError) -> Found? {
        guard !plan.name.isEmpty else {
            throw StoreError(.misuse, "a bucket's name must not be empty")
        }
        guard !plan.keyType.parts.isEmpty else {
            throw StoreError(.misuse, "a composite key must have a part")
        }
        try plan.coding.check()
        guard let found = try find(plan.name) else { return nil }
        let keyType = found.record?.keyType
        let isSameColumn = found.keyColumnType == plan.keyType.columnType
        guard isSameColumn, (keyType ?? plan.keyType) == plan.keyType else {
            let type = keyType?.description ?? found.keyColumnType
            throw StoreError(
                .mismatch, "the bucket's keys are \(type), not \(plan.keyType)",
                hint: "Name the bucket with the key type that it was made with.",
                table: plan.table, column: "key")
        }
        let isSame =
            found.record.map { $0.coding == plan.coding } ?? plan.coding.isWithoutRecord
        guard isSame else {
            let coding = found.record?.coding.name ?? "sql or json"
            throw StoreError(
                .mismatch,
                "the bucket's values are stored as \(coding), not as \(plan.coding.name)",
                hint: "Name the bucket with the codec, or type of values, that it was made with.",
                table: plan.table, column: "value")
        }
        return found
    }

    /// Makes the table of a bucket, and records it.
    ///
    /// - Throws: `.sql` for a name with a NUL character; errors of the statements.
    func make(_ plan: BucketPlan, lifetime: Duration?) throws(StoreError) {
        // Must come before CREATE TABLE: a lifetime that is too long must not leave a table.
        _ = try lifetime?.wholeMicroseconds()
        let reference = try plan.recordKey.map { (key) throws(StoreError) in
            RecordReference(try key.get())
        }
        try makeTable(plan.name, keyColumnType: plan.keyType.columnType, reference)
        let record = BucketCatalog.Record(
            keyType: plan.keyType, coding: plan.coding, lifetime: lifetime)
        try BucketCatalog(connection).set(record, for: plan.name)
        guard plan.coding == .attachment else { return }
        let contents = ContentTables(connection)
        try contents.make()
        try contents.addTriggers(to: plan.name)
        guard let reference else { return }
        try reference.requireUniqueKeys(of: plan.name, connection)
        try reference.addTriggers(of: plan.name, connection)
    }

    /// Makes the table of a bucket, or lets the entries that it has belong to the records of the
    /// plan.
    ///
    /// - Throws: `.constraint` if a key is that of no record; `.unsupported` for a bucket with
    ///   triggers, or with a table that others name; otherwise as `make(_:lifetime:)` and
    ///   `hasExpiry(_:)`.
    func create(_ plan: BucketPlan, lifetime: Duration?) throws(StoreError) {
        guard let found = try find(plan) else { return try make(plan, lifetime: lifetime) }
        guard let recordKey = try plan.recordKey?.get() else { return }
        let reference = RecordReference(recordKey)
        let isReferring =
            try RecordReference(of: plan.name, connection)?.isSame(as: reference) == true
        if isReferring, try reference.hasTriggers(of: plan.name, connection) { return }
        try RecordReference.dropTriggers(of: plan.name, connection)
        if !isReferring {
            try requireNoTriggers(plan.name)
            try reference.requireNoOthers(of: plan.name, connection)
            try reference.requireRecordsTable(connection)
            try reference.requireRecords(of: plan.name, connection)
            try remake(plan.name, found, reference)
        }
        try reference.requireUniqueKeys(of: plan.name, connection)
        try reference.addTriggers(of: plan.name, connection)
    }

    /// Makes a new table for a bucket of attachments, and moves the entries there.
    private func remake(
        _ bucket: String, _ found: Found, _ reference: RecordReference
    ) throws(StoreError) {
        let table = try Self.table(of: bucket).quotedIdentifier()
        let contents = ContentTables(connection)
        try contents.dropTriggers(of: bucket)
        try dropObservingTriggers(bucket)
        if found.hasExpiry {
            try run(
                "DROP INDEX IF EXISTS main.\(try Self.expiryIndex(of: bucket).quotedIdentifier())")
        }
        try run("ALTER TABLE main.\(table) RENAME TO \(Self.former)")
        try makeTable(bucket, keyColumnType: found.keyColumnType, reference)
        if found.hasExpiry { try addExpiry(bucket) }
        let columns = found.columns.joined(separator: ", ")
        try run(
            "INSERT INTO main.\(table) (\(columns)) SELECT \(columns) FROM main.\(Self.former)")
        try run("DROP TABLE main.\(Self.former)")
        try contents.addTriggers(to: bucket)
    }

    /// The name of the old table while the entries move, quoted.
    private static let former = "\"coffer:former\""

    /// Makes the table of a bucket, without a column for expiry.
    ///
    /// Integer keys are the row id itself. Tables with other keys are WITHOUT ROWID, which saves
    /// them a second B-tree next to that of the row ids.
    ///
    /// - Throws: `.sql` for a name with a NUL character; errors of the statement.
    private func makeTable(
        _ bucket: String, keyColumnType: String, _ reference: RecordReference? = nil
    ) throws(StoreError) {
        let suffix = keyColumnType == "INTEGER" ? "" : " WITHOUT ROWID"
        let clause = try reference.map { (found) throws(StoreError) in " \(try found.clause)" }
        try run(
            "CREATE TABLE main.\(try Self.table(of: bucket).quotedIdentifier()) "
                + "(key \(keyColumnType) PRIMARY KEY NOT NULL\(clause ?? ""), value)\(suffix)")
    }

    /// Adds the column for expiry, with the index by which a sweep finds what has expired.
    ///
    /// - Throws: Errors of the statements.
    func addExpiry(_ bucket: String) throws(StoreError) {
        let table = try Self.table(of: bucket).quotedIdentifier()
        try run("ALTER TABLE main.\(table) ADD COLUMN expires INTEGER")
        try makeExpiryIndex(bucket)
    }

    private func makeExpiryIndex(_ bucket: String) throws(StoreError) {
        let index = try Self.expiryIndex(of: bucket).quotedIdentifier()
        let table = try Self.table(of: bucket).quotedIdentifier()
        try run("CREATE INDEX main.\(index) ON \(table) (expires) WHERE expires IS NOT NULL")
    }

    /// The name of the index over the times at which entries end.
    private static func expiryIndex(of bucket: String) -> String { "coffer:expires:\(bucket)" }

    // MARK: All buckets

    /// The names of all tables that are named as buckets, in the order of their bytes.
    ///
    /// - Throws: Errors of reading the schema.
    func names() throws(StoreError) -> [String] {
        let rows = try connection.rows(
            """
            SELECT substr(name, \(Self.prefix.utf8.count + 1)) FROM main.sqlite_master
            WHERE type = 'table' AND rootpage > 0 AND name GLOB \(Self.prefix + "?*") ORDER BY 1
            """, isReadOnly: false)
        var names: [String] = []
        for case .text(let name) in rows.map({ $0[0] }) { names.append(name) }
        return names
    }

    /// The names of the buckets with a column for expiry, without those that this version does not
    /// know.
    ///
    /// - Throws: Errors of reading the schema.
    func expiringNames() throws(StoreError) -> [String] {
        var found: [String] = []
        for name in try names() {
            do throws(StoreError) {
                if try find(name)?.hasExpiry == true { found.append(name) }
            } catch {
                guard [.mismatch, .misuse, .needsNewerProgram].contains(error.code) else {
                    throw error
                }
            }
        }
        return found
    }

    /// Removes a bucket's table and its record.
    ///
    /// - Throws: Errors of the statements.
    func drop(_ bucket: String, _ found: Found) throws(StoreError) {
        // DROP TABLE fires no trigger.
        if found.record?.coding == .attachment {
            try Contents(connection)?.removeAll(of: bucket)
            try RecordReference.dropTriggers(of: bucket, connection)
        }
        try run("DROP TABLE main.\(try Self.table(of: bucket).quotedIdentifier())")
        try BucketCatalog(connection).set(nil, for: bucket)
    }

    /// Whether a bucket's table has triggers besides those by which the store observes it, and
    /// those that mark contents of attachments as removed.
    ///
    /// - Parameter isOnlyPrograms: Whether triggers of a history do not count either.
    /// - Throws: Errors of reading the schema.
    func hasTriggers(
        _ bucket: String, ofPrograms isOnlyPrograms: Bool = false
    ) throws(StoreError) -> Bool {
        let table = Self.table(of: bucket)
        let contents = ContentTables.triggerNames(of: bucket)
        return try connection.firstRow(
            """
            SELECT 1 FROM main.sqlite_master
            WHERE type = 'trigger' AND tbl_name = \(table) COLLATE NOCASE
            AND name COLLATE NOCASE NOT IN (\(contents[0]), \(contents[1]))
            AND (NOT \(isOnlyPrograms) OR name NOT GLOB 'coffer:*')
            UNION ALL SELECT 1 FROM sqlite_temp_master
            WHERE type = 'trigger' AND tbl_name = \(table) COLLATE NOCASE
            AND name NOT GLOB 'coffer:*'
            """, isReadOnly: false) != nil
    }

    /// Drops the triggers by which the store observes a bucket. The next transaction makes them
    /// again, for the names that tables then have.
    ///
    /// - Throws: Errors of the statements.
    private func dropObservingTriggers(_ bucket: String) throws(StoreError) {
        let triggers = try connection.rows(
            """
            SELECT name FROM sqlite_temp_master
            WHERE type = 'trigger' AND tbl_name = \(Self.table(of: bucket)) COLLATE NOCASE
            """, isReadOnly: false)
        for case .text(let name) in triggers.map({ $0[0] }) {
            try run("DROP TRIGGER temp.\(try name.quotedIdentifier())")
        }
    }

    /// Gives a bucket's table another name, and its record.
    ///
    /// - Throws: Errors of the statements.
    func rename(_ bucket: String, _ found: Found, to name: String) throws(StoreError) {
        let old = try Self.table(of: bucket).quotedIdentifier()
        let new = try Self.table(of: name).quotedIdentifier()
        if found.hasExpiry {
            try run(
                "DROP INDEX IF EXISTS main.\(try Self.expiryIndex(of: bucket).quotedIdentifier())")
        }
        let contents = ContentTables(connection)
        let hasContents = found.record?.coding == .attachment
        let reference = hasContents ? try RecordReference(of: bucket, connection) : nil
        if hasContents {
            try contents.dropTriggers(of: bucket)
            try RecordReference.dropTriggers(of: bucket, connection)
        }
        try dropObservingTriggers(bucket)
        try run("ALTER TABLE main.\(old) RENAME TO \(new)")
        if found.hasExpiry { try makeExpiryIndex(name) }
        if hasContents {
            try contents.addTriggers(to: name)
            try Contents(connection)?.rename(bucket, to: name)
            try reference?.addTriggers(of: name, connection)
        }
        let catalog = BucketCatalog(connection)
        try catalog.set(nil, for: bucket)
        try catalog.set(found.record, for: name)
    }

    /// Makes a bucket with the entries of another one.
    ///
    /// - Returns: The number of entries.
    /// - Throws: Errors of the statements.
    func copy(_ bucket: String, _ found: Found, to name: String) throws(StoreError) -> Int {
        let old = try Self.table(of: bucket).quotedIdentifier()
        let new = try Self.table(of: name).quotedIdentifier()
        try makeTable(name, keyColumnType: found.keyColumnType)
        if found.hasExpiry { try addExpiry(name) }
        let columns = found.columns.joined(separator: ", ")
        try BucketCatalog(connection).set(found.record, for: name)
        return try connection.perform(
            SQL(
                text: "INSERT INTO main.\(new) (\(columns)) "
                    + "SELECT \(columns) FROM main.\(old) ORDER BY key"))
    }

    private func run(_ sql: String) throws(StoreError) {
        try connection.perform(SQL(text: sql))
        connection.forgetAttachments()
    }
}
