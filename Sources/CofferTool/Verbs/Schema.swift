import ArgumentParser
import Coffer

/// `coffer tables`
struct Tables: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the tables and views of a store.",
        discussion: """
            One name a line, without those of SQLite. --json writes an object a line, with name \
            and type (table or view).

            EXAMPLES
              coffer tables notes.db
              coffer tables notes.db --json --passphrase-file secret
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    private struct Line: Encodable {
        let name: String
        let type: String
    }

    func run() async throws {
        let connection = try store.connect(secret, mode: .readOnly)
        defer { connection.close() }
        var standardOutput = StandardOutput()
        for object in try SchemaObject.all(in: connection) where object.isTable {
            try standardOutput.writeLine(
                output.json
                    ? JSON.line(Line(name: object.name, type: object.type))
                    : VisibleText.of(object.name))
        }
        try standardOutput.flush()
    }
}

/// `coffer schema`
struct Schema: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the SQL that made a store's tables, indexes, views and triggers.",
        discussion: """
            With the name of a table it prints that table, its indexes and its triggers. Run on \
            an empty store, the statements make the same schema. --json writes an object a line, \
            with name, type, table and sql.

            EXAMPLES
              coffer schema notes.db
              coffer schema notes.db note
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "The table; without it everything is printed.")
    var table: String?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        let connection = try store.connect(secret, mode: .readOnly)
        defer { connection.close() }
        let name = table.map(ColumnKey.init)
        let objects = try SchemaObject.all(in: connection).filter {
            name == nil || ColumnKey($0.table) == name
        }
        if let table, objects.isEmpty {
            throw ToolError(
                .notFound, "there is no table \(table)", hint: "coffer tables lists them.")
        }
        var standardOutput = StandardOutput()
        for object in objects {
            try standardOutput.writeLine(
                output.json ? JSON.line(object) : object.statement)
        }
        try standardOutput.flush()
    }
}

/// A row of a store's schema that a statement made.
struct SchemaObject: Encodable {
    let type: String
    let name: String
    let table: String
    let sql: String

    var isTable: Bool { type == "table" || type == "view" }

    /// A comment at the end would hide the semicolon.
    var statement: String { sql + (sql.contains("--") ? "\n;" : ";") }

    private var isVirtual: Bool {
        sql.prefix(while: { $0 != "(" }).uppercased().hasPrefix("CREATE VIRTUAL TABLE")
    }

    /// What the modules of SQLite append to a virtual table's name for the tables behind it: FTS3
    /// and FTS4, FTS5, R*Tree.
    private static let shadowSuffixes = [
        "_content", "_segments", "_segdir", "_docsize", "_stat", "_data", "_idx", "_config",
        "_node", "_rowid", "_parent",
    ]

    /// All of them in the order in which they were made, but those of SQLite and those that a
    /// virtual table makes by itself.
    static func all(in connection: Connection) throws -> [SchemaObject] {
        let all = try stored(in: connection)
        let virtual = all.filter(\.isVirtual).map(\.name)
        let shadows = Set(virtual.flatMap { name in shadowSuffixes.map { ColumnKey(name + $0) } })
        return all.filter { !shadows.contains(ColumnKey($0.table)) || $0.isVirtual }
    }

    private static func stored(in connection: Connection) throws -> [SchemaObject] {
        try connection.rows(
            """
            SELECT type, name, tbl_name, sql FROM sqlite_master
            WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid
            """
        ).map { row in
            SchemaObject(
                type: try row.get(0), name: try row.get(1), table: try row.get(2),
                sql: try row.get(3))
        }
    }
}
