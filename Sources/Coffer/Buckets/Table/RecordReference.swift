/// The column of records to which the keys of a bucket refer, by a foreign key in the file.
///
/// The foreign key removes the entry of a record that is deleted, also by REPLACE, and gives it the
/// key that the record gets. Two triggers do the same in programs that have foreign keys switched
/// off. A migration is one: see `MigrationMode`.
struct RecordReference: CustomStringConvertible {
    let table: String
    let column: String

    init(_ recordKey: RecordKey) {
        (table, column) = (recordKey.table, recordKey.column)
    }

    /// Finds the foreign key of a bucket's table; `nil` if it has none that Coffer makes.
    ///
    /// - Throws: Errors of reading the schema.
    init?(of bucket: String, _ connection: Connection) throws(StoreError) {
        let rows = try connection.rows(
            "PRAGMA main.foreign_key_list(\(identifier: BucketSchema.table(of: bucket)))",
            isReadOnly: false)
        guard rows.count == 1, rows[0]["from"] == .text("key"),
            rows[0]["on_delete"] == .text("CASCADE"), rows[0]["on_update"] == .text("CASCADE"),
            case .text(let table)? = rows[0]["table"], case .text(let column)? = rows[0]["to"]
        else { return nil }
        (self.table, self.column) = (table, column)
    }

    var description: String { "\(table)(\(column))" }

    func isSame(as other: Self) -> Bool {
        table.isSameIdentifier(as: other.table) && column.isSameIdentifier(as: other.column)
    }

    /// The constraint of the bucket's column.
    var clause: String {
        get throws(StoreError) {
            "REFERENCES \(try table.quotedIdentifier()) (\(try column.quotedIdentifier())) "
                + "ON DELETE CASCADE ON UPDATE CASCADE"
        }
    }

    // MARK: Triggers

    private static let kinds = ["record-deleted", "record-changed"]

    private static func triggers(of bucket: String) -> [String] {
        kinds.map { "coffer:\(BucketSchema.table(of: bucket)):\($0)" }
    }

    /// Whether the table of the records has the triggers.
    ///
    /// - Throws: Errors of reading the schema.
    func hasTriggers(of bucket: String, _ connection: Connection) throws(StoreError) -> Bool {
        let names = Self.triggers(of: bucket)
        let row = try connection.firstRow(
            """
            SELECT count(*) FROM main.sqlite_master WHERE type = 'trigger' \
            AND name IN (\(names[0]), \(names[1])) AND tbl_name = \(table) COLLATE NOCASE
            """, isReadOnly: false)
        return row?[0] == .integer(2)
    }

    /// Makes the triggers on the table of the records.
    ///
    /// - Throws: Errors of the statements.
    func addTriggers(of bucket: String, _ connection: Connection) throws(StoreError) {
        let entries = try BucketSchema.table(of: bucket).quotedIdentifier()
        let column = try column.quotedIdentifier()
        let (old, new) = ("old.\(column)", "new.\(column)")
        // An upload for a record that is gone must not become the attachment of another record,
        // which may get the same row id.
        let contents = ContentTables.contents.inDoubleQuotes
        let uploads =
            "WHERE state <> 'whole' AND state = 'unfinished' "
            + "AND bucket = \(bucket.inSingleQuotes) AND key = \(old)"
        let actions = [
            (
                "AFTER DELETE", "",
                "DELETE FROM \(entries) WHERE key = \(old); "
                    + "UPDATE \(contents) SET state = 'removed' \(uploads)"
            ),
            (
                "AFTER UPDATE OF \(column)", "WHEN \(old) IS NOT \(new) ",
                "UPDATE \(entries) SET key = \(new) WHERE key = \(old); "
                    + "UPDATE \(contents) SET key = \(new) \(uploads)"
            ),
        ]
        for (name, (event, condition, action)) in zip(Self.triggers(of: bucket), actions) {
            try connection.perform(
                SQL(
                    text: "CREATE TRIGGER main.\(try name.quotedIdentifier()) \(event) "
                        + "ON \(try table.quotedIdentifier()) \(condition)BEGIN \(action); END"))
        }
        connection.forgetAttachments()
    }

    /// Drops the triggers, which contain the name of the bucket.
    ///
    /// - Throws: Errors of the statements.
    static func dropTriggers(of bucket: String, _ connection: Connection) throws(StoreError) {
        for name in triggers(of: bucket) {
            try connection.perform(
                SQL(text: "DROP TRIGGER IF EXISTS main.\(try name.quotedIdentifier())"))
        }
        connection.forgetAttachments()
    }

    // MARK: Checks

    /// - Throws: `.mismatch` if the file does not keep the keys of the records unique, so that it
    ///   would refuse each change of them, or does not compare them byte by byte.
    func requireUniqueKeys(of bucket: String, _ connection: Connection) throws(StoreError) {
        try requirePlainKeys(connection)
        do throws(StoreError) {
            _ = try connection.rows(
                "PRAGMA main.foreign_key_check(\(identifier: BucketSchema.table(of: bucket)))",
                isReadOnly: false)
        } catch {
            guard error.code == .sql else { throw error }
            throw StoreError(
                .mismatch, "records can have attachments by a unique key of a table only",
                hint: "Make \(self) the key, or give it a unique index.", table: table,
                column: column, cause: error)
        }
    }

    /// A foreign key leaves an attachment where it is if the new key is equal by another collation.
    ///
    /// - Throws: `.mismatch` if an index compares the key by another collation than BINARY.
    private func requirePlainKeys(_ connection: Connection) throws(StoreError) {
        let indexes = try connection.rows(
            "PRAGMA main.index_list(\(identifier: table))", isReadOnly: false)
        for index in indexes where index["unique"] == .integer(1) {
            guard case .text(let name)? = index["name"] else { continue }
            let columns = try connection.rows(
                "PRAGMA main.index_xinfo(\(identifier: name))", isReadOnly: false
            ).filter { $0["key"] == .integer(1) }
            guard columns.count == 1, case .text(let indexed)? = columns[0]["name"],
                indexed.isSameIdentifier(as: column), columns[0]["coll"] != .text("BINARY")
            else { continue }
            throw StoreError(
                .mismatch, "\(self) is compared by another collation than BINARY",
                hint: "Name a key whose column has no COLLATE clause.", table: table,
                column: column)
        }
    }

    /// A table that is made again takes its name along into what refers to it, and out of it.
    ///
    /// - Throws: `.unsupported` if a table, trigger or view of the program names the bucket's
    ///   table.
    func requireNoOthers(of bucket: String, _ connection: Connection) throws(StoreError) {
        let entries = BucketSchema.table(of: bucket)
        let other = try connection.firstRow(
            """
            SELECT type, name FROM main.sqlite_master
            WHERE tbl_name <> \(entries) COLLATE NOCASE AND type IN ('table', 'trigger', 'view')
            AND instr(lower(sql), lower(\(entries))) > 0 LIMIT 1
            """, isReadOnly: false)
        guard let other, case .text(let type)? = other["type"],
            case .text(let name)? = other["name"]
        else { return }
        throw StoreError(
            .unsupported, "the \(type) \(name) names the table of the bucket",
            hint: "Drop it first, and make it again after create(_:).", table: entries)
    }

    /// - Throws: `.notFound` if the main file has no table of the records.
    func requireRecordsTable(_ connection: Connection) throws(StoreError) {
        let found = try connection.firstRow(
            """
            SELECT 1 FROM main.sqlite_master
            WHERE type = 'table' AND name = \(table) COLLATE NOCASE
            """, isReadOnly: false)
        guard found == nil else { return }
        throw StoreError(
            .notFound, "the file has no table \(table)",
            hint: "Make the table of the records first, with create(_:).", table: table)
    }

    /// - Throws: `.constraint` if an entry has a key that no record has.
    func requireRecords(of bucket: String, _ connection: Connection) throws(StoreError) {
        let (entries, records) = (BucketSchema.table(of: bucket), try table.quotedIdentifier())
        let orphan = try connection.firstRow(
            SQL(
                text: """
                    SELECT 1 FROM main.\(try entries.quotedIdentifier()) AS entry \
                    WHERE NOT EXISTS (SELECT 1 FROM main.\(records) \
                    WHERE \(records).\(try column.quotedIdentifier()) = entry.key) LIMIT 1
                    """), isReadOnly: false)
        guard orphan != nil else { return }
        throw StoreError(
            .constraint, "an entry of the bucket has a key that no record of \(table) has",
            hint: "Remove such entries before.", table: entries, column: "key")
    }
}
