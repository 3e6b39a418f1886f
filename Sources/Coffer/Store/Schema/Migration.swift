#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One named change of a file's schema or of its rows.
///
/// ```swift
/// let migrations = [
///     Migration("create notes") { tx in try tx.create(Note.self) },
///     Migration("trim titles") { tx in try tx.execute("UPDATE note SET title = trim(title)") },
/// ]
/// try store.migrate(migrations)
/// ```
///
/// A migration that was released is never changed, renamed or moved: files have run it. What is to
/// be different is a new migration, at the end of the list.
public struct Migration: Sendable {
    /// Its name: how the file remembers it.
    public let name: String
    let body: @Sendable (inout WriteTransaction) throws -> Void

    /// Makes a migration.
    ///
    /// Foreign keys have no effect while it runs: nothing is refused, and nothing is deleted or
    /// changed because another row was, so a table that others refer to can be dropped and made
    /// anew. All of them are checked when the body has returned; a row that referred to nothing
    /// before is let be.
    ///
    /// - Parameters:
    ///   - name: Any text but an empty one, that no other migration of the program has.
    ///   - body: The change, in a transaction of its own.
    public init(
        _ name: String, _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
    ) {
        self.name = name
        self.body = body
    }
}

/// How far the migrations of a file have come.
public struct MigrationProgress: Sendable, Hashable {
    /// The migration that begins.
    public let name: String
    /// How many migrations the file has run before it.
    public let completedCount: Int
    /// How many there are.
    public let totalCount: Int
}

extension Store {
    /// Runs the migrations that the file has not run yet, each in a transaction that also records
    /// it in the file.
    ///
    /// What the file has run is read again inside each transaction, under the write lock: of two
    /// processes that do this at once, each migration is run by one. If a migration throws, or
    /// leaves a foreign key unsatisfied, it is undone, and the earlier ones stand. Nothing is
    /// written to a file that is up to date.
    ///
    /// - Parameters:
    ///   - migrations: All that the program has ever had, in the order in which they came.
    ///   - isDryRun: Whether to run all of them in one transaction and undo it: what fails, fails,
    ///     and the file stays as it is. Other writes wait for all of that.
    ///   - progress: Called on the working thread when a migration begins.
    /// - Returns: How many migrations this call ran.
    /// - Throws: What a migration throws; `StoreError` `.needsNewerProgram` naming a migration that
    ///   the file has run and that the list does not have, or not in that place; `.constraint` for
    ///   a foreign key that refers to nothing and did not before; `.misuse` for names that are
    ///   empty or equal, or inside a body of this store; otherwise as `write` and `read`.
    /// - Complexity: What the migrations take, and for each one twice O(*rows of tables with
    ///   foreign keys*).
    @discardableResult
    public func migrate(
        _ migrations: [Migration], isDryRun: Bool = false,
        progress: ((MigrationProgress) -> Void)? = nil
    ) throws -> Int {
        let plan = try MigrationPlan(migrations)
        return try run(plan, isDryRun: isDryRun) { migration, pendingCount in
            progress?(plan.progress(migration, pendingCount))
        }
    }

    /// Runs the migrations that the file has not run yet, without blocking a thread of the
    /// cooperative pool.
    ///
    /// - Parameters:
    ///   - migrations: As in the synchronous form.
    ///   - isDryRun: As in the synchronous form.
    ///   - progress: Called on the working thread when a migration begins.
    /// - Returns: How many migrations this call ran.
    /// - Throws: As the synchronous form; `StoreError` `.cancelled` if the task was cancelled. The
    ///   migrations that had ended stand.
    @discardableResult
    public func migrate(
        _ migrations: [Migration], isDryRun: Bool = false,
        progress: (@Sendable (MigrationProgress) -> Void)? = nil
    ) async throws -> Int {
        let plan = try MigrationPlan(migrations)
        return try await run(plan, isDryRun: isDryRun) { migration, pendingCount in
            progress?(plan.progress(migration, pendingCount))
        }
    }

    /// The names of the migrations that `migrate(_:)` would run, in order; nothing is changed.
    ///
    /// - Throws: As `migrate(_:)`, without what a migration throws.
    public func pendingMigrations(_ migrations: [Migration]) throws -> [String] {
        let plan = try MigrationPlan(migrations)
        return try core.read { tx in try plan.pending(tx.connection()).map(\.name) }
    }

    /// The names of the migrations that `migrate(_:)` would run, in order; nothing is changed.
    ///
    /// - Throws: As the synchronous form; `StoreError` `.cancelled` if the task was cancelled.
    public func pendingMigrations(_ migrations: [Migration]) async throws -> [String] {
        let plan = try MigrationPlan(migrations)
        return try await core.read { tx in try plan.pending(tx.connection()).map(\.name) }
    }
}

extension Connection {
    /// Runs the migrations that the file has not run yet, each in a transaction that also records
    /// it in the file, as ``Store`` does.
    ///
    /// - Parameters:
    ///   - migrations: All that the program has ever had, in the order in which they came.
    ///   - isDryRun: Whether to run all of them in one transaction and undo it.
    ///   - progress: Called when a migration begins.
    /// - Returns: How many migrations this call ran.
    /// - Throws: What a migration throws; `StoreError` `.needsNewerProgram` naming a migration that
    ///   the file has run and that the list does not have, or not in that place; `.constraint` for
    ///   a foreign key that refers to nothing and did not before; `.misuse` for names that are
    ///   empty or equal, or inside a transaction; `.busy`, `.full`, `.io`, `.damaged`, `.readOnly`.
    @discardableResult
    public func migrate(
        _ migrations: [Migration], isDryRun: Bool = false,
        progress: ((MigrationProgress) -> Void)? = nil
    ) throws -> Int {
        let plan = try MigrationPlan(migrations)
        return try run(plan, isDryRun: isDryRun) { migration, pendingCount in
            progress?(plan.progress(migration, pendingCount))
        }
    }
}

/// Migrations whose names were checked, and the table in which a file records them.
private struct MigrationPlan: SchemaSteps, Sendable {
    private let migrations: [Migration]

    private static let tableName = "coffer:migrations"
    private static let table = "main.\(tableName.inDoubleQuotes)"

    var pausesForeignKeys: Bool { true }

    /// - Throws: `.misuse` for names that are empty or equal.
    init(_ migrations: [Migration]) throws(StoreError) {
        var names: Set<String> = []
        for migration in migrations {
            guard !migration.name.isEmpty, names.insert(migration.name).inserted else {
                throw StoreError(
                    .misuse, "two migrations are named “\(migration.name)”, or one has no name",
                    hint: "The file remembers them by their names.")
            }
        }
        self.migrations = migrations
    }

    func progress(_ migration: Migration, _ pendingCount: Int) -> MigrationProgress {
        MigrationProgress(
            name: migration.name, completedCount: migrations.count - pendingCount,
            totalCount: migrations.count)
    }

    func pending(_ connection: Connection) throws -> ArraySlice<Migration> {
        let completed = try completedNames(connection)
        for (position, name) in completed.enumerated() {
            guard position < migrations.count, migrations[position].name == name else {
                throw newer(name, position)
            }
        }
        return migrations[completed.count...]
    }

    func run(_ migration: Migration, _ transaction: inout WriteTransaction) throws {
        try migration.body(&transaction)
        let connection = try transaction.connection()
        try connection.perform(
            SQL(
                text: "CREATE TABLE IF NOT EXISTS \(Self.table) "
                    + "(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
                    + "completed REAL NOT NULL)"))
        let now = Date().timeIntervalSince1970
        try connection.perform(
            SQL(
                text: "INSERT INTO \(Self.table) (name, completed) VALUES (?, ?)",
                arguments: [.text(migration.name), .real(now)]))
    }

    private func completedNames(_ connection: Connection) throws(StoreError) -> [String] {
        let exists = try connection.firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = \(Self.tableName)",
            isReadOnly: true)
        guard exists != nil else { return [] }
        var names: [String] = []
        for row in try connection.rows(
            SQL(text: "SELECT name FROM \(Self.table) ORDER BY number"), isReadOnly: true)
        {
            names.append(try row.read("name"))
        }
        return names
    }

    private func newer(_ name: String, _ position: Int) -> StoreError {
        guard let here = migrations.firstIndex(where: { $0.name == name }) else {
            return StoreError(
                .needsNewerProgram,
                "the file has run the migration “\(name)”, which is not known here",
                hint: "A newer version of the program has changed the file: use that one.")
        }
        return StoreError(
            .needsNewerProgram,
            "the file has run the migration “\(name)” as number \(position + 1), and here it is "
                + "number \(here + 1)",
            hint: "A newer version of the program has changed the file, or a migration was added "
                + "before others instead of behind them.")
    }
}
