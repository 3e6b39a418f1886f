import Coffer
import CofferTestKit
import Foundation
import Testing

/// The code of articles about testing, backups and migrations, as they show it.
@Suite(.againstHanging, .onOwnThreads) struct TestingArticleCode {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    struct Note: Record {
        var id: Int
        var title: String
        var pinned: Bool
    }

    private let migrations = [
        Migration("notes") { tx in
            struct Note: Record {
                var id: Int
                var title: String
            }
            try tx.create(Note.self)
        },
        Migration("pins") { tx in
            struct Note: Record {
                static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
                var id: Int
                var title: String
                var pinned: Bool
            }
            try tx.create(Note.self)
        },
    ]

    @Test func `Testing: stores`() throws {
        do {
            let store = try Store(.memory)
            try store.migrate(migrations)
            try store.write { tx in try tx.insert(Note(id: 1, title: "a", pinned: true)) }
        }
        let path = folder.path()
        let key = StoreKey.random()
        let store = try Store(path: path, key: key)
        try store.close()
        let template = try StoreTemplate { store in
            try store.migrate(migrations)
            try store.write { tx in try tx.insert(Note(id: 1, title: "a", pinned: true)) }
        }
        let copy = try template.copy()
        #expect(try copy.store.read { tx in try tx.count(Note.all) } == 1)
    }

    @Test func `Testing: time`() throws {
        let sessions = Bucket<String, String>("sessions", lifetime: .seconds(1800))
        let clock = ManualClock()
        var configuration = Configuration()
        configuration.currentDate = { clock.date }
        configuration.expirySweepInterval = nil
        let store = try Store(.memory, configuration: configuration)
        try store.set("ada", for: "token", in: sessions)
        #expect(try store.get("token", in: sessions) == "ada")
        clock.advance(by: .seconds(1801))
        #expect(try store.get("token", in: sessions) == nil)
    }

    @Test func `Testing: migrations`() throws {
        let secret = [UInt8](repeating: 7, count: 32)
        let fileOfVersion1 = folder.path("version1.db")
        let old = try Store(path: fileOfVersion1, key: .raw(secret))
        try old.migrate([migrations[0]])
        try old.close()
        try Migration.rehearse(migrations, for: Note.self)
        let files = [OldFile(fileOfVersion1) { .raw(secret) }]
        for rehearsal in Migration.rehearse(migrations, on: files, for: Note.self) {
            #expect(rehearsal.isGood, "\(rehearsal)")
        }
    }

    @Test func `BackupAndVerification: a restore that is tried`() async throws {
        let key = StoreKey.random()
        let store = try await Store(path: folder.path(), key: key)
        try await store.migrate(migrations)
        try await store.write { tx in try tx.insert(Note(id: 1, title: "a", pinned: true)) }
        let newestBackup = folder.path("backup.db")
        try await store.backup(to: newestBackup)
        let copy = try await Store(path: newestBackup, key: key, mode: .readOnly)
        #expect(try await copy.verify().isGood)
        #expect(try await copy.read { tx in try tx.count(Note.all) } > 0)
    }

    @Test func `SchemaAndMigrations: a new CHECK`() async throws {
        let store = try await Store(path: folder.path(), key: .random())
        try await store.write { tx in
            try tx.execute(
                "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
            try tx.execute("INSERT INTO account VALUES (1, -5), (2, 7)")
        }
        try await store.migrate([
            Migration("no negative balance") { tx in
                struct Account: Record {  // as it is from then on
                    static var checks: [CheckConstraint<Self>] { [CheckConstraint(\.balance >= 0)] }
                    var id: Int64?
                    var balance: Int
                }
                try tx.execute("UPDATE account SET balance = 0 WHERE balance < 0")
                try tx.alter(Account.self) { _ in }
            }
        ])
        await #expect(throws: StoreError.self) {
            try await store.write { tx in try tx.execute("UPDATE account SET balance = -1") }
        }
        let balances = try await store.read { tx in
            try tx.rows("SELECT balance FROM account ORDER BY id").flatMap(\.values)
        }
        #expect(balances == [0, 7])
    }

    @Test func `Testing: what goes wrong`() throws {
        let path = folder.path()
        let key = StoreKey.random()
        let store = try Store(path: path, key: key)
        try store.migrate(migrations)
        try store.close()
        let file = try FileHandle(forUpdating: URL(filePath: path))
        try file.seek(toOffset: 4096 + 100)
        try file.write(contentsOf: Data([0xAA, 0x55, 0xAA, 0x55]))
        try file.close()
        let damaged = try Store(path: path, key: key)
        #expect(try !damaged.verify().isGood)
    }
}
