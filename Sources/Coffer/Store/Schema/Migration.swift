#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One named change of a file's schema or of its rows.
///
/// ```swift
/// let migrations = [
///     Migration("create notes") { tx in
///         struct Note: Record {  // as it was then
///             var id: UUID
///             var title: String
///         }
///         try tx.create(Note.self)
///     },
///     Migration("trim titles") { tx in try tx.execute("UPDATE note SET title = trim(title)") },
/// ]
/// try store.migrate(migrations)
/// ```
///
/// Never change, rename or move a released migration: files have run it. To change something, add a
/// new migration at the end of the list. A migration that makes a table declares the type as it was
/// then, inside its body; otherwise it would make another table once the type changes.
/// ``rehearse(_:for:)`` tests all of them on a new file.
public struct Migration: Sendable {
    /// The name by which the file remembers it.
    public let name: String
    let body: @Sendable (inout WriteTransaction) throws -> Void

    /// Creates a migration.
    ///
    /// Foreign keys are not enforced while it runs: they refuse no change, and no row is deleted or
    /// changed because another row was. So a table that others refer to can be dropped and created
    /// again. All foreign keys are checked when the body has returned. A row that already referred
    /// to nothing is ignored. On both engines `ALTER TABLE … RENAME TO` leaves the foreign keys,
    /// triggers and views of other tables as they are (`PRAGMA legacy_alter_table`).
    ///
    /// - Parameters:
    ///   - name: Any text that is not empty and that no other migration of the program has.
    ///   - body: The change, in its own transaction.
    public init(
        _ name: String, _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
    ) {
        self.name = name
        self.body = body
    }
}

/// The progress of a file's migrations.
public struct MigrationProgress: Sendable, Hashable {
    /// The migration that begins.
    public let name: String
    /// How many migrations the file had run before it.
    public let completedCount: Int
    /// How many there are.
    public let totalCount: Int
}

extension Store {
    /// Runs the migrations that the file has not run yet, each in a transaction that also records
    /// it in the file.
    ///
    /// The list of completed migrations is read again inside each transaction, under the write
    /// lock: if two processes migrate at once, each migration is run by one of them. If a migration
    /// throws, or leaves a foreign key unsatisfied, it is undone, and the earlier ones remain.
    /// Nothing is written to a file that is up to date.
    ///
    /// - Parameters:
    ///   - migrations: All migrations that the program has ever had, in their original order.
    ///   - isDryRun: Whether to run all of them in one transaction and undo it: errors are thrown
    ///     as usual, and the file stays as it is. Other writes wait for all of that.
    ///   - progress: Called on the working thread when a migration begins.
    /// - Returns: How many migrations this call ran.
    /// - Throws: What a migration throws; `StoreError` `.needsNewerProgram` if the file has run a
    ///   migration that the list lacks or has in another place; `.constraint` if a migration leaves
    ///   a foreign key without its row (those that were so before do not count); `.misuse` for
    ///   names that are empty or equal, or inside a body of this store; otherwise as `write` and
    ///   `read`.
    /// - Complexity: The time of the migrations, and for each one twice O(*rows of tables with
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
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled. The
    ///   completed migrations remain.
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
    /// - Throws: As `migrate(_:)`, without the errors of migrations.
    public func pendingMigrations(_ migrations: [Migration]) throws -> [String] {
        let plan = try MigrationPlan(migrations)
        return try core.read { tx in try plan.pending(tx.connection()).map(\.name) }
    }

    /// The names of the migrations that `migrate(_:)` would run, in order; nothing is changed.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
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
    ///   - migrations: All migrations that the program has ever had, in their original order.
    ///   - isDryRun: Whether to run all of them in one transaction and undo it.
    ///   - progress: Called when a migration begins.
    /// - Returns: How many migrations this call ran.
    /// - Throws: What a migration throws; `StoreError` `.needsNewerProgram` if the file has run a
    ///   migration that the list lacks or has in another place; `.constraint` if a migration leaves
    ///   a foreign key without its row (those that were so before do not count); `.misuse` for
    ///   names that are empty or equal, or inside a transaction; `.busy`, `.full`, `.io`,
    ///   `.damaged`, `.readOnly`.
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

    /// Checks that every migration has a name of its own.
    ///
    /// - Throws: `.misuse` for names that are empty or equal.
    init(_ migrations: [Migration]) throws(StoreError) {
        var names: Set<String> = []
        for migration in migrations {
            guard !migration.name.isEmpty, names.insert(migration.name).inserted else {
                throw StoreError(
                    .misuse, "two migrations are named “\(migration.name)”, or one has no name",
                    hint: "The file records migrations by name: give each its own.")
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
            "the file has run the migration “\(name)” as number \(position + 1), but here it is "
                + "number \(here + 1)",
            hint: "A newer version of the program has changed the file, or a migration was added "
                + "before others instead of after them.")
    }
}
