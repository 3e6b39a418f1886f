import CSQLCipher
import Testing

@testable import Coffer

/// Databases with everything that a copy can get wrong.
enum OddSchema {
    static let common = """
        PRAGMA user_version = 77;
        PRAGMA application_id = 123456;
        CREATE TABLE loose(a, b TEXT, c INTEGER, d REAL, e NUMERIC, f BLOB);
        INSERT INTO loose(rowid, a, b, c, d, e, f) VALUES
            (100, 'x', 'text', 7, 1.5, '12', x''), (7, NULL, '', 'not a number', 3, 1e300, x'00ff'),
            (-5, x'', 'zero' || char(0) || 'inside', 9223372036854775807, -0.0, '1.50', 'text'),
            (9223372036854775807, 1, CAST(x'ff80' AS TEXT), -1, 9e999, 0, zeroblob(9000));
        CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT IGNORE);
        CREATE TABLE child(id INTEGER PRIMARY KEY DESC, p REFERENCES parent(id) ON DELETE CASCADE);
        INSERT INTO parent VALUES (3, 'three'), (1, NULL), (2, NULL);
        INSERT INTO child VALUES (5, 3), (6, 999);
        CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, v);
        INSERT INTO counted VALUES (10, 'a'), (50, 'b');
        DELETE FROM counted WHERE id = 50;
        CREATE TABLE emptied(id INTEGER PRIMARY KEY AUTOINCREMENT);
        INSERT INTO emptied VALUES (9);
        DELETE FROM emptied;
        CREATE TABLE keyed(a TEXT COLLATE NOCASE, b, c, PRIMARY KEY (b DESC, a)) WITHOUT ROWID;
        INSERT INTO keyed VALUES ('one', 1, zeroblob(5000)), ('two', 2.5, 'x'), ('B', 1, 2);
        CREATE TABLE shadowed(rowid TEXT, "_rowid_" INT, "we ""ird, name" BLOB);
        INSERT INTO shadowed(oid, rowid, _rowid_) VALUES (41, 'r', 1), (42, 's', 2);
        CREATE TABLE [select](a CHECK (a > 0), [order], UNIQUE ([order], a));
        INSERT INTO [select] VALUES (1, 2), (2, 2);
        CREATE INDEX plain ON loose(b);
        CREATE UNIQUE INDEX partial ON loose(c) WHERE c > 5;
        CREATE INDEX expression ON loose(length(b), a COLLATE NOCASE DESC);
        CREATE TABLE log(line);
        CREATE TRIGGER logged AFTER INSERT ON loose BEGIN INSERT INTO log(line) VALUES (new.b); END;
        CREATE TRIGGER guarded BEFORE DELETE ON parent BEGIN SELECT RAISE(ABORT, 'no'); END;
        CREATE VIEW seen AS SELECT l.b, p.name FROM loose l JOIN parent p ON p.id = l.c;
        CREATE TRIGGER through INSTEAD OF INSERT ON seen
            BEGIN INSERT INTO log(line) VALUES ('v'); END;
        CREATE VIRTUAL TABLE words USING fts4(body, tokenize=porter);
        INSERT INTO words(docid, body) VALUES (12, 'running dogs'), (30, 'a lazy cat');
        CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
        INSERT INTO boxes VALUES (1, 0.5, 2), (2, 3, 4);
        ALTER TABLE log ADD COLUMN level DEFAULT 'info';
        INSERT INTO log(line) VALUES ('first');
        CREATE TABLE bare(only);
        ANALYZE;
        """

    /// Statements that SQLite 3.15 does not know.
    static let engine4 = """
        CREATE TABLE computed(a INT, b INT AS (a * 2) VIRTUAL, c INT AS (a + 1) STORED, d);
        INSERT INTO computed(rowid, a, d) VALUES (9, 5, 'd'), (3, 6, NULL);
        CREATE INDEX of_computed ON computed(b);
        CREATE TABLE strictly(a INT, b ANY) STRICT;
        INSERT INTO strictly VALUES (1, '2');
        CREATE VIRTUAL TABLE notes USING fts5(title, body);
        INSERT INTO notes VALUES ('t', 'some words here');
        CREATE VIEW ranked AS SELECT a, row_number() OVER (ORDER BY a) AS n FROM computed;
        """

    static var sql: String { common + (isEngine4 ? engine4 : "") }

    /// Expects what only uses of the copy show: counters, full-text indexes, triggers.
    static func expectAlive(_ connection: Connection) throws {
        let found = try connection.rows("SELECT docid FROM words WHERE words MATCH 'run'")
        #expect(found.map { $0[0] } == [12])
        #expect(try connection.rows("SELECT id FROM boxes WHERE x1 < 3").map { $0[0] } == [1])
        try connection.execute("INSERT INTO counted(v) VALUES ('next')")
        #expect(connection.lastInsertedRowID == 51)
        try connection.execute("INSERT INTO loose(b) VALUES ('seen by the trigger')")
        let lines = try connection.rows("SELECT line FROM log").map { $0[0] }
        #expect(lines == ["first", "seen by the trigger"])
    }
}
