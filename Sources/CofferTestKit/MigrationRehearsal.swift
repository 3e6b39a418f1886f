import Coffer
import Foundation

/// A file of an old version of a program, which a rehearsal copies and never changes.
public struct OldFile: Sendable {
    let path: String
    let key: @Sendable () throws -> StoreKey

    /// Names a file.
    ///
    /// - Parameters:
    ///   - path: The path of the file. Its WAL and its keyring are found next to it.
    ///   - key: Makes its key.
    public init(_ path: String, key: @escaping @Sendable () throws -> StoreKey) {
        (self.path, self.key) = (path, key)
    }
}

/// The result of running the migrations on a copy of one file.
public struct MigrationRehearsal: Sendable, CustomStringConvertible {
    /// The rows of one table.
    public struct Table: Sendable, Equatable {
        /// The name.
        public let name: String
        /// The number of rows before the migrations; `nil` if they made the table.
        public let rowCountBefore: Int?
        /// The number of rows after the migrations; `nil` if they dropped the table.
        public let rowCountAfter: Int?
    }

    /// The path of the file.
    public let path: String
    /// The number of migrations that ran.
    public fileprivate(set) var migrationCount = 0
    /// The time that they took.
    public fileprivate(set) var duration = Duration.zero
    /// The tables before or after, by name.
    public fileprivate(set) var tables: [Table] = []
    /// A sentence for each failure; empty if there was none.
    public fileprivate(set) var problems: [String] = []

    /// Whether the migrations ran, every page is authentic, and the types fit their tables.
    public var isGood: Bool { problems.isEmpty }

    /// The file, what happened to its tables, and what went wrong.
    public var description: String {
        let rows = tables.filter { $0.rowCountBefore != $0.rowCountAfter }.map { table in
            let counts = [table.rowCountBefore, table.rowCountAfter].map {
                $0.map { "\($0)" } ?? "none"
            }
            return "\(table.name): \(counts.joined(separator: " -> ")) rows"
        }
        return (["\(path): \(migrationCount) migrations in \(duration)"] + rows + problems)
            .joined(separator: "\n  ")
    }
}

extension Migration {
    /// Runs migrations on copies of files that old versions of the program have made, and looks
    /// whether the result is whole and fits the types.
    ///
    /// ```swift
    /// let files = [OldFile("Fixtures/version1.db") { .raw(secret) }]
    /// let rehearsals = Migration.rehearse(migrations, on: files, for: Note.self)
    /// for rehearsal in rehearsals { #expect(rehearsal.isGood, "\(rehearsal)") }
    /// ```
    ///
    /// A file that fails does not end the rehearsal of the others.
    ///
    /// - Parameters:
    ///   - migrations: All migrations of the program.
    ///   - files: The old files, which stay as they are.
    ///   - types: The record types whose tables the migrations make.
    /// - Returns: What happened to each file, in their order.
    /// - Complexity: The time of the migrations, and of a copy and a verification of each file.
    public static func rehearse(
        _ migrations: [Migration], on files: [OldFile], for types: any Record.Type...
    ) -> [MigrationRehearsal] {
        files.map { file in
            var rehearsal = MigrationRehearsal(path: file.path)
            do {
                try rehearsal.run(migrations, file, types)
            } catch {
                rehearsal.problems.append("\(error)")
            }
            return rehearsal
        }
    }
}

extension MigrationRehearsal {
    fileprivate mutating func run(
        _ migrations: [Migration], _ file: OldFile, _ types: [any Record.Type]
    ) throws {
        let folder = try TemporaryFolder()
        try Self.copy(file.path, to: folder.path)
        let store = try Store(path: folder.path, key: file.key(), mode: .mustExist)
        defer { try? store.close() }
        let before = try store.read { tx in try Self.rowCounts(&tx) }
        let clock = ContinuousClock()
        duration = try clock.measure { migrationCount = try store.migrate(migrations) }
        let after = try store.read { tx in try Self.rowCounts(&tx) }
        tables = Set(before.keys).union(after.keys).sorted().map {
            Table(name: $0, rowCountBefore: before[$0], rowCountAfter: after[$0])
        }
        let report = try store.verify()
        if !report.isGood { problems.append("not whole: \(report)") }
        try store.read { tx in
            for type in types { try compare(type, &tx) }
        }
    }

    private mutating func compare<R: Record>(
        _ type: R.Type, _ tx: inout ReadTransaction
    ) throws {
        for difference in try tx.schemaDifferences(of: type) {
            problems.append("\(R.table): \(difference)")
        }
    }

    /// Copies a file with the files that belong to it, whose names begin with its name.
    private static func copy(_ path: String, to copy: String) throws {
        // A copy of a symbolic link would be the file itself.
        let file = URL(filePath: path).resolvingSymlinksInPath()
        let folder = file.deletingLastPathComponent()
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name.hasPrefix(file.lastPathComponent) {
            let suffix = name.dropFirst(file.lastPathComponent.count)
            // SQLite makes the shared memory again.
            guard suffix != "-shm" else { continue }
            try FileManager.default.copyItem(
                atPath: folder.appending(path: name).path, toPath: copy + suffix)
        }
    }

    private static func rowCounts(_ tx: inout ReadTransaction) throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for table in try tx.schemaObjects(in: "main")
        where table.kind == .table && !table.name.hasPrefix("coffer:") {
            counts[table.name] = try tx.requireScalar(
                "SELECT count(*) FROM \(identifier: table.name)", as: Int.self)
        }
        return counts
    }
}
