import CWorkload

/// The tables as Coffer makes them, for systems that do not make them by themselves.
public enum Tables {
    public static let item = """
        CREATE TABLE item (id INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL, \
        url TEXT NOT NULL, kind TEXT NOT NULL, x REAL NOT NULL, y REAL NOT NULL, \
        created REAL NOT NULL, flag INTEGER NOT NULL, note TEXT, data BLOB NOT NULL)
        """
    public static let entry =
        "CREATE TABLE entry (key BLOB PRIMARY KEY NOT NULL, value) WITHOUT ROWID"

    public static var flight: String { String(cString: bench_create_flight) }

    public static let insert = """
        INSERT INTO item (id, name, url, kind, x, y, created, flag, note, data) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        """
    public static let select =
        "SELECT id, name, url, kind, x, y, created, flag, note, data FROM item"
    public static let find = select + " WHERE id = ?1"
    /// OR FAIL as in the C floor: it spares SQLCipher 3.4.1 an encrypted statement journal.
    public static let update = """
        UPDATE OR FAIL item SET name = ?2, url = ?3, kind = ?4, x = ?5, y = ?6, created = ?7, \
        flag = ?8, note = ?9, data = ?10 WHERE id = ?1
        """
    /// Fails if the key exists.
    public static let putOnce = "INSERT INTO entry (key, value) VALUES (?1, ?2)"
    public static let putNew = "INSERT OR IGNORE INTO entry (key, value) VALUES (?1, ?2)"
    public static let putAgain = "UPDATE OR FAIL entry SET value = ?2 WHERE key = ?1"
    public static let get = "SELECT value FROM entry WHERE key = ?1"

    /// The settings that every system reports of its connection.
    public static let settings = [
        "cipher_version", "page_size", "cache_size", "journal_mode", "synchronous", "temp_store",
    ]
}
