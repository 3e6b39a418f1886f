/// The statements of one bucket's table on one connection, compiled when first needed.
///
/// Finding them builds no SQL text. They end with the connection, or with the schema that they were
/// compiled for.
final class BucketStatements {
    /// The quoted name, with the main file's.
    let table: String
    /// Whether the table has a column for expiry.
    let hasExpiry: Bool
    /// Whether the table has triggers of a program. A statement's conflict clause would then hold
    /// for the statements of these triggers too.
    let hasTriggers: Bool
    private var compiled: [Kind: Statement] = [:]
    private var selecting: Statement?
    private var inserting: Statement?
    private var replacing: Statement?

    init(table: String, hasExpiry: Bool, hasTriggers: Bool) {
        self.table = table
        self.hasExpiry = hasExpiry
        self.hasTriggers = hasTriggers
    }

    /// The beginning of an UPDATE. `OR FAIL` makes no difference for a single row without triggers,
    /// and saves SQLCipher 3.4.1 a statement journal.
    private var update: String { "UPDATE \(hasTriggers ? "" : "OR FAIL ")\(table)" }

    /// A statement for one entry, whose key is `?1`.
    enum Kind {
        /// Its time of expiry, if it lives at `?2`.
        case expiration
        /// Removes it.
        case deletion
        /// Gives it the value `?2`, and keeps its time of expiry.
        case keepingUpdate
        /// Gives it the value `?2` and the time `?3`, unless it lives at `?4`.
        case revival
        /// Gives it the time `?2`, if it lives at `?3`.
        case touch

        var change: ReportedChange.Kind? {
            switch self {
            case .expiration: nil
            case .deletion: .deletion
            case .keepingUpdate, .revival, .touch: .update
            }
        }
    }

    /// The condition that an entry lives at the time of a parameter; always true without expiry.
    func isLive(at parameter: String) -> String {
        hasExpiry ? "(expires IS NULL OR expires > \(parameter))" : "1"
    }

    /// Selects the value of an entry, which lives at `?2` in a table with expiry.
    func selection(_ connection: Connection) throws(StoreError) -> Statement {
        if let selecting { return selecting }
        let condition = hasExpiry ? " AND \(isLive(at: "?2"))" : ""
        let made = try compile("SELECT value FROM \(table) WHERE key = ?1\(condition)", connection)
        selecting = made
        return made
    }

    /// Inserts an entry: the key is `?1`, the value `?2`, the time of expiry `?3`. It leaves an
    /// existing entry unchanged, but fails for it if the table has triggers.
    func insertion(_ connection: Connection) throws(StoreError) -> Statement {
        if let inserting { return inserting }
        let insert = "INSERT \(hasTriggers ? "" : "OR IGNORE ")INTO \(table)"
        let made = try compile(
            hasExpiry
                ? "\(insert) (key, value, expires) VALUES (?1, ?2, ?3)"
                : "\(insert) (key, value) VALUES (?1, ?2)", connection, changes: .insertion)
        inserting = made
        return made
    }

    /// Replaces the value `?2`, and the time of expiry `?3`, of an existing entry.
    func replacement(_ connection: Connection) throws(StoreError) -> Statement {
        if let replacing { return replacing }
        let made = try compile(
            hasExpiry
                ? "\(update) SET value = ?2, expires = ?3 WHERE key = ?1"
                : "\(update) SET value = ?2 WHERE key = ?1", connection, changes: .update)
        replacing = made
        return made
    }

    /// A statement that is needed less often.
    func statement(_ kind: Kind, _ connection: Connection) throws(StoreError) -> Statement {
        if let known = compiled[kind] { return known }
        let sql =
            switch kind {
            case .expiration:
                "SELECT expires FROM \(table) WHERE key = ?1 AND \(isLive(at: "?2"))"
            case .deletion: "DELETE FROM \(table) WHERE key = ?1"
            case .keepingUpdate: "\(update) SET value = ?2 WHERE key = ?1"
            case .revival:
                "\(update) SET value = ?2, expires = ?3 "
                    + "WHERE key = ?1 AND NOT \(isLive(at: "?4"))"
            case .touch:
                "\(update) SET expires = ?2 WHERE key = ?1 AND \(isLive(at: "?3"))"
            }
        let made = try compile(sql, connection, changes: kind.change)
        compiled[kind] = made
        return made
    }

    /// - Parameter change: What the statement does to the row of its key; `nil` if it reads.
    private func compile(
        _ sql: String, _ connection: Connection, changes change: ReportedChange.Kind? = nil
    ) throws(StoreError) -> Statement {
        let statement = try connection.compile(sql, persistent: true)
        statement.changesOneRow = change != nil
        statement.reportedChange = change
        return statement
    }
}
