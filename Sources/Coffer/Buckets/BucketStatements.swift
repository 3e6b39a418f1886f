/// The statements of one bucket's table on one connection, compiled when first needed.
///
/// Finding them builds no SQL text. They end with the connection, or with the schema that they were
/// compiled for.
final class BucketStatements {
    /// The quoted name.
    let table: String
    private var selecting: Statement?
    private var inserting: Statement?
    private var updating: Statement?
    private var deleting: Statement?

    init(table: String) {
        self.table = table
    }

    func selection(_ connection: Connection) throws(StoreError) -> Statement {
        if let selecting { return selecting }
        let made = try compile("SELECT value FROM \(table) WHERE key = ?1", connection)
        selecting = made
        return made
    }

    /// The statement that inserts an entry: the key is `?1`, the value `?2`. It leaves an existing
    /// entry unchanged.
    func insertion(_ connection: Connection) throws(StoreError) -> Statement {
        if let inserting { return inserting }
        let made = try compile(
            "INSERT OR IGNORE INTO \(table) (key, value) VALUES (?1, ?2)", connection)
        inserting = made
        return made
    }

    /// The statement that replaces the value of an existing entry: the key is `?1`, the value `?2`.
    /// `OR FAIL` makes no difference for a single row, and saves SQLCipher 3.4.1 a statement
    /// journal.
    func update(_ connection: Connection) throws(StoreError) -> Statement {
        if let updating { return updating }
        let made = try compile(
            "UPDATE OR FAIL \(table) SET value = ?2 WHERE key = ?1", connection)
        updating = made
        return made
    }

    func deletion(_ connection: Connection) throws(StoreError) -> Statement {
        if let deleting { return deleting }
        let made = try compile("DELETE FROM \(table) WHERE key = ?1", connection)
        deleting = made
        return made
    }

    private func compile(
        _ sql: String, _ connection: Connection
    ) throws(StoreError) -> Statement {
        try connection.compile(sql, persistent: true)
    }
}
