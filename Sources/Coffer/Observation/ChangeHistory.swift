/// The change history of a file: a bounded table that triggers in the file write to.
///
/// An entry belongs to the transaction that changes the row, whoever runs it: other processes and
/// other programs write to it as well. Its entries are what triggers can see
/// (`ChangeTriggers`); reading combines them by row (`RowMarks`).
struct ChangeHistory {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
    }

    private static let prefix = "\(ChangeTriggers.prefix)log"
    private static let entries = prefix.inDoubleQuotes
    private static let about = "\(prefix):about".inDoubleQuotes
    private static let bound = "\(prefix):bound".inDoubleQuotes
    /// Old entries are deleted each time the history has grown by this many.
    private static let trimCount = 256

    // MARK: Opting in

    func begin(_ name: String, maximumCount: Int) throws(StoreError) {
        guard maximumCount > 0 else {
            throw StoreError(.misuse, "a history must keep at least one entry")
        }
        guard let table = try KeyedTable(name, connection) else {
            throw StoreError(.notFound, "there is no such table", table: name)
        }
        guard !table.name.hasPrefix(ChangeTriggers.prefix) else {
            throw StoreError(
                .misuse,
                "the table of the change history cannot have a history", table: name)
        }
        guard !table.hasHiddenUniqueKeys else {
            throw StoreError(
                .unsupported,
                "a unique index on an expression or on a part of the rows hides "
                    + "which rows REPLACE deletes",
                hint: "Keep the history of a table without one.", table: name)
        }
        try make()
        try run("DROP TRIGGER IF EXISTS main.\(Self.bound)")
        try run(
            "CREATE TRIGGER main.\(Self.bound) AFTER INSERT ON \(Self.entries) "
                + "WHEN new.n % \(Self.trimCount) = 0 BEGIN "
                + "DELETE FROM \(Self.entries) WHERE n <= new.n - \(maximumCount); END")
        try end(table.name)
        for trigger in try triggers(table) { try run("CREATE TRIGGER main.\(trigger.text)") }
    }

    func end(_ name: String) throws(StoreError) {
        guard let table = try KeyedTable(name, connection) else { return }
        for trigger in try triggers(table) {
            // A loop over `changes(in:)` has temporary triggers of the same names, which SQLite
            // would find first.
            try run("DROP TRIGGER IF EXISTS main.\(trigger.name.inDoubleQuotes)")
        }
    }

    private func triggers(_ table: KeyedTable) throws(StoreError) -> [ChangeTriggers.Trigger] {
        try ChangeTriggers(table: table, place: .file, entryTable: Self.entries).triggers(when: nil)
    }

    private func make() throws(StoreError) {
        guard try identity() == nil else { return }
        let columns = ChangeTriggers.keyColumns.joined(separator: ", ")
        try run("CREATE TABLE \(Self.entries) (n INTEGER PRIMARY KEY, tbl, kind, \(columns))")
        try run("CREATE TABLE \(Self.about) (id TEXT NOT NULL)")
        try run("INSERT INTO \(Self.about) VALUES (lower(hex(randomblob(8))))")
    }

    /// Adds an entry for a row whose blob is written in place, which no trigger sees. Does nothing
    /// if the row's table has no history.
    ///
    /// - Throws: Errors of reading the schema and of the insert.
    func note(_ cell: BlobCell) throws(StoreError) {
        guard try historyTables().contains(SQLText(cell.table.asciiLowercased)),
            let table = try KeyedTable(cell.table, connection)
        else { return }
        let triggers = ChangeTriggers(
            table: table, place: .file, entryTable: "main.\(Self.entries)")
        if let sql = triggers.noteUpdate(ofRow: cell.row) { try connection.perform(sql) }
    }

    /// The names of the tables with a history, in lower case of ASCII; read once for each version
    /// of the schema.
    ///
    /// - Throws: Errors of reading the schema.
    private func historyTables() throws(StoreError) -> Set<SQLText> {
        let id = ObjectIdentifier(HistoryTables.self)
        if let known = try connection.attachment(id) as? HistoryTables { return known.names }
        let rows = try connection.rows(
            """
            SELECT tbl_name FROM main.sqlite_master
            WHERE type = 'trigger' AND name LIKE \("\(ChangeTriggers.prefix)%:update")
            """, isReadOnly: true)
        var names: Set<SQLText> = []
        for row in rows {
            names.insert(SQLText(try row.read("tbl_name", as: String.self).asciiLowercased))
        }
        connection.attach(HistoryTables(names), as: id)
        return names
    }

    /// The tables with a history, which a connection remembers as long as the schema is the same.
    private final class HistoryTables {
        let names: Set<SQLText>

        init(_ names: Set<SQLText>) {
            self.names = names
        }
    }

    private func run(_ sql: String) throws(StoreError) {
        try connection.perform(SQL(text: sql))
    }

    // MARK: Reading

    /// The random name of the history that this file has; `nil` if no table ever had a history.
    ///
    /// - Throws: Errors of reading the schema or the name.
    private func identity() throws(StoreError) -> String? {
        let found = try connection.firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE name = \(Self.prefix + ":about")",
            isReadOnly: true)
        guard found != nil else { return nil }
        return try connection.firstRow(
            SQL(text: "SELECT id FROM main.\(Self.about)"), isReadOnly: true
        )?.read("id")
    }

    /// The token after the last entry.
    ///
    /// - Throws: `.notFound` if no table ever had a history.
    func token() throws(StoreError) -> ChangeToken {
        let (history, range) = try state()
        return ChangeToken(history: history, position: range.upperBound)
    }

    /// The name of the history, and the positions that can be read from; 0 only, without entries.
    /// Reading from a position begins with the entry after it.
    ///
    /// - Throws: `.notFound` if no table ever had a history.
    private func state() throws(StoreError) -> (history: String, ClosedRange<Int64>) {
        guard let history = try identity() else {
            throw StoreError(
                .notFound, "no table has a history", hint: "Call tx.keepHistory(of:) in a write.")
        }
        let row = try connection.firstRow(
            SQL(
                text: "SELECT (SELECT min(n) FROM main.\(Self.entries)) AS first, "
                    + "(SELECT max(n) FROM main.\(Self.entries)) AS last"), isReadOnly: true)
        guard let first = try row?.read("first", as: Int64?.self),
            let last = try row?.read("last", as: Int64?.self)
        else { return (history, 0...0) }
        return (history, (first - 1)...last)
    }

    func batch(since token: ChangeToken, maximumCount: Int) throws(StoreError) -> ChangeBatch {
        guard maximumCount > 0 else {
            throw StoreError(
                .misuse,
                "a batch must have at least one entry")
        }
        let (history, range) = try state()
        guard token.history == history, range.contains(token.position) else {
            throw StoreError(
                .tokenExpired,
                token.history == history
                    ? "entries after the token are no longer in the history"
                    : "the token belongs to another history",
                hint: "Read everything again, and take a token in the same transaction.")
        }
        let columns = ChangeTriggers.keyColumns.joined(separator: ", ")
        let rows = try connection.rows(
            SQL(
                text: "SELECT n, tbl, kind, \(columns) FROM main.\(Self.entries) "
                    + "WHERE n > ? ORDER BY n LIMIT ?",
                arguments: [.integer(token.position), .integer(Int64(maximumCount))]),
            isReadOnly: true)
        var last = token.position
        var numbers: [SQLText: Int] = [:]
        var tables: [(name: String, table: KeyedTable?)] = []
        var marks = RowMarks()
        for row in rows {
            last = try row.read("n")
            let name = try row.read("tbl", as: String.self)
            guard let mark = ChangeTriggers.Mark(rawValue: try row.read("kind")) else { continue }
            let number = numbers[SQLText(name), default: tables.count]
            if number == tables.count {
                numbers[SQLText(name)] = number
                tables.append((name, try KeyedTable(name, connection)))
            }
            // No column of a key is NULL.
            let key = Array(row.values.dropFirst(3).prefix { $0 != .null })
            marks.add(mark, RowMarks.Row(table: number, key: RowMarks.Key(key)))
        }
        let known = tables
        let changes = try marks.changes(named: known.map(\.name)) { row throws(StoreError) in
            try known[row.table].table?.hasRow(row.key.values, connection) ?? false
        }
        return ChangeBatch(
            changes: changes, next: ChangeToken(history: history, position: last),
            hasMore: last < range.upperBound)
    }
}
