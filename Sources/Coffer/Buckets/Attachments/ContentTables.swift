/// The tables of the contents of attachments in the schema of the main file: found, checked and
/// made. `Documentation/file-format.md` describes them.
///
/// The contents of all buckets share two tables. Triggers on a bucket's own table mark a content as
/// removed, whatever statement removes or replaces its entry.
struct ContentTables {
    private let connection: Connection

    static let contents = "coffer:contents"
    static let chunks = "coffer:chunks"

    private static let contentColumns = [
        "id", "state", "chunk", "length", "sha256", "bucket", "key", "owner", "touched",
    ]
    private static let chunkColumns = ["id", "bytes"]

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// Whether the file has the tables.
    ///
    /// - Throws: `.mismatch` if a table of that name has other columns, or only one of the two is
    ///   there; errors of reading the schema.
    func exist() throws(StoreError) -> Bool {
        if try connection.attachment(ObjectIdentifier(Self.self)) != nil { return true }
        let contents = try isThere(Self.contents, Self.contentColumns)
        let chunks = try isThere(Self.chunks, Self.chunkColumns)
        guard contents == chunks else {
            throw StoreError(
                .mismatch, "the tables of the attachments are not complete",
                hint: "Restore the file from a backup.",
                table: contents ? Self.chunks : Self.contents)
        }
        if contents { connection.attach(Found(), as: ObjectIdentifier(Self.self)) }
        return contents
    }

    /// Tells that the tables of a connection's schema were checked.
    private final class Found {}

    private func isThere(_ table: String, _ names: [String]) throws(StoreError) -> Bool {
        let object = try connection.firstRow(
            """
            SELECT type = 'table' AND rootpage > 0 FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(table) COLLATE NOCASE
            """, isReadOnly: false)
        guard let object else { return false }
        let columns = try connection.rows(
            "PRAGMA main.table_info(\(identifier: table))", isReadOnly: false)
        guard object[0] == .integer(1), columns.map({ $0["name"] }) == names.map({ .text($0) }),
            columns[0]["type"] == .text("INTEGER"), columns[0]["pk"] == .integer(1)
        else {
            throw StoreError(
                .mismatch, "the table is not one of Coffer's attachments", table: table)
        }
        return true
    }

    /// Makes what is missing.
    ///
    /// - Throws: As `exist()`; errors of the statements.
    func make() throws(StoreError) {
        guard try !exist() else { return }
        // The ids of removed contents are not used again: an upload may still know one.
        try run(
            """
            CREATE TABLE main."coffer:contents" (id INTEGER PRIMARY KEY AUTOINCREMENT, \
            state TEXT NOT NULL, chunk INTEGER NOT NULL, length INTEGER NOT NULL, sha256 BLOB, \
            bucket TEXT, key, owner BLOB, touched INTEGER)
            """)
        try run(
            """
            CREATE INDEX main."coffer:contents:state" ON "coffer:contents" (state) \
            WHERE state <> 'whole'
            """)
        try run(
            "CREATE TABLE main.\"coffer:chunks\" (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")
    }

    // MARK: Triggers of a bucket

    /// The kinds of triggers that mark a content as removed, with their events.
    private static let triggers = [
        ("content-deleted", "AFTER DELETE"), ("content-replaced", "AFTER UPDATE OF value"),
    ]

    /// The names of these triggers of a bucket. No other of Coffer's triggers has one of them.
    static func triggerNames(of bucket: String) -> [String] {
        triggers.map { triggerName($0.0, of: bucket) }
    }

    private static func triggerName(_ kind: String, of bucket: String) -> String {
        "coffer:\(BucketSchema.table(of: bucket)):\(kind)"
    }

    private static func trigger(_ kind: String, of bucket: String) throws(StoreError) -> String {
        try triggerName(kind, of: bucket).quotedIdentifier()
    }

    /// Makes the triggers of a bucket's table.
    ///
    /// - Throws: Errors of the statements.
    func addTriggers(to bucket: String) throws(StoreError) {
        let table = try BucketSchema.table(of: bucket).quotedIdentifier()
        for (kind, event) in Self.triggers {
            let condition = event == "AFTER DELETE" ? "" : "WHEN old.value IS NOT new.value "
            try run(
                """
                CREATE TRIGGER main.\(try Self.trigger(kind, of: bucket)) \(event) ON \(table) \
                \(condition)BEGIN UPDATE "coffer:contents" SET state = 'removed' \
                WHERE id = old.value; END
                """)
        }
    }

    /// Drops the triggers of a bucket's table, which contain its name.
    ///
    /// - Throws: Errors of the statements.
    func dropTriggers(of bucket: String) throws(StoreError) {
        for (kind, _) in Self.triggers {
            try run("DROP TRIGGER IF EXISTS main.\(try Self.trigger(kind, of: bucket))")
        }
    }

    private func run(_ sql: String) throws(StoreError) {
        try connection.perform(SQL(text: sql))
        connection.forgetAttachments()
    }
}
