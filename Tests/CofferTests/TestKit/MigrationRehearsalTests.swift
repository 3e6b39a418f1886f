import Coffer
import CofferTestKit
import Foundation
import Testing

/// Migrations on copies of files that old versions have made.
@Suite(.againstHanging, .onOwnThreads) struct MigrationRehearsalTests {
    private struct Note: Record {
        var id: Int
        var title: String
        var pinned: Bool
    }

    private static let secret = [UInt8](repeating: 9, count: 32)

    private let folder: TemporaryFolder
    private let migrations = [
        Migration("notes") { tx in
            struct Note: Record {
                var id: Int
                var title: String
            }
            try tx.create(Note.self)
            try tx.insert([Note(id: 1, title: "a"), Note(id: 2, title: "a")])
        },
        Migration("pins") { tx in
            try tx.execute("ALTER TABLE note ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")
        },
        Migration("log") { tx in try tx.execute("CREATE TABLE log(line TEXT)") },
    ]

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A file as a version with some of the migrations has left it.
    private func oldFile(_ name: String, _ count: Int) throws -> OldFile {
        let path = folder.path(name)
        let store = try Store(path: path, key: .raw(Self.secret))
        try store.migrate(Array(migrations.prefix(count)))
        try store.close()
        return OldFile(path) { .raw(Self.secret) }
    }

    @Test func `each file is migrated in a copy, with its rows counted`() throws {
        let files = [try oldFile("one.db", 1), try oldFile("two.db", 2)]
        let before = try Data(contentsOf: URL(filePath: folder.path("one.db")))
        let found = Migration.rehearse(migrations, on: files, for: Note.self)
        #expect(found.map(\.problems) == [[], []])
        #expect(found.map(\.migrationCount) == [2, 1])
        let tables = try #require(found.first?.tables)
        #expect(tables.map(\.name) == ["log", "note"])
        #expect(tables.map(\.rowCountBefore) == [nil, 2])
        #expect(tables.map(\.rowCountAfter) == [0, 2])
        #expect("\(found[0])".contains("log: none -> 0 rows"))
        #expect(try Data(contentsOf: URL(filePath: folder.path("one.db"))) == before)
    }

    @Test func `a file behind a symbolic link stays as it is`() throws {
        _ = try oldFile("old.db", 1)
        let link = folder.path("link.db")
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: folder.path("old.db"))
        let file = OldFile(link) { .raw(Self.secret) }
        #expect(Migration.rehearse(migrations, on: [file])[0].migrationCount == 2)
        #expect(Migration.rehearse(migrations, on: [file])[0].migrationCount == 2)
        let store = try Store(path: folder.path("old.db"), key: .raw(Self.secret))
        #expect(try store.pendingMigrations(migrations) == ["pins", "log"])
    }

    @Test func `a migration that fails, a wrong key and a newer file are told of their file`()
        throws
    {
        var failing = migrations
        failing[2] = Migration("log") { tx in
            try tx.execute("CREATE UNIQUE INDEX titles ON note(title)")
        }
        let old = try oldFile("old.db", 1)
        let newer = try oldFile("newer.db", 3)
        let wrong = OldFile(folder.path("old.db")) { .raw([UInt8](repeating: 1, count: 32)) }
        let missing = OldFile(folder.path("none.db")) { .random() }
        let found = Migration.rehearse(
            Array(failing.prefix(3)), on: [old, wrong, missing], for: Note.self)
        #expect(found.map(\.isGood) == [false, false, false])
        #expect(found[0].problems.first?.contains("constraint") == true)
        #expect(found[1].problems.first?.contains("wrongKey") == true)
        let older = Migration.rehearse(Array(migrations.prefix(1)), on: [newer])
        #expect(older[0].problems.first?.contains("needsNewerProgram") == true)
    }

    @Test func `a type that does not fit its table, and a damaged file, are problems`() throws {
        let file = try oldFile("old.db", 1)
        let found = Migration.rehearse(Array(migrations.prefix(1)), on: [file], for: Note.self)
        #expect(found[0].problems.contains { $0.contains("pinned") })
        let handle = try FileHandle(forUpdating: URL(filePath: folder.path("old.db")))
        try handle.seek(toOffset: 4096 + 100)
        try handle.write(contentsOf: Data([0xAA, 0x55, 0xAA, 0x55]))
        try handle.close()
        #expect(!Migration.rehearse(migrations, on: [file], for: Note.self)[0].isGood)
    }
}
