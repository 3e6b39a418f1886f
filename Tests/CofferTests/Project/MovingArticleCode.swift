import Coffer
import Foundation
import Testing

/// The code of the articles about moving from SQLite.swift, MMKV and Core Data, on files as these
/// libraries leave them.
@Suite(.againstHanging, .onOwnThreads) struct MovingArticleCode {
    private let folder: TemporaryFolder
    private var key: StoreKey { .numbered(7) }
    private var path: String { folder.path() }

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A plaintext file.
    private func plainFile(_ script: String) throws -> String {
        let maker = try Store(path: folder.path("maker.db"), key: .numbered(8))
        try maker.write { tx in _ = try tx.executeScript(script) }
        let plain = folder.path("plain.db")
        try maker.decrypt(to: plain)
        try maker.close()
        return plain
    }

    struct User: Record {
        static let table = "users"
        static var encodings: [PartialKeyPath<User>: ColumnEncoding] {
            [\.id: .uuidText, \.joined: .date(.format("yyyy-MM-dd'T'HH:mm:ss.SSS"))]
        }
        var id: UUID
        var name: String
        var joined: Date
    }

    @Test func `Coming from SQLite.swift: a plaintext file, names and dates`() async throws {
        let oldPath = try plainFile(
            """
            CREATE TABLE users(
                id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, joined TEXT NOT NULL);
            INSERT INTO users VALUES
                ('00000000-0000-0000-0000-00000000000A', 'Ada', '2026-11-24T12:00:00.500');
            """)
        let report = try await Store.encrypt(plaintextAt: oldPath, to: path, key: key)
        print("\(report.rowCount) rows")
        let store = try await Store(path: path, key: key)
        try await store.write { tx in
            #expect(try tx.schemaDifferences(of: User.self).isEmpty)
            let user = try tx.fetch(User.where(\.name == "Ada")).first
            #expect(user?.joined == Date(timeIntervalSince1970: 1_795_521_600.5))
            try tx.insert(User(id: UUID(), name: "Alan", joined: .now))
        }
    }

    @Test func `Coming from MMKV: moving values`() async throws {
        let launches = Bucket<String, Int>("launches")
        let launchesOfMMKV = ["today": 7, "ever": 300]
        let store = try await Store(path: path, key: key)
        try await store.write { tx in
            for (key, value) in launchesOfMMKV { try tx.set(value, for: key, in: launches) }
        }
        #expect(try await store.get("ever", in: launches) == 300)
    }

    @Test func `Coming from Core Data: moving the rows`() async throws {
        let modelPath = try plainFile(
            """
            CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER,
                ZCREATED TIMESTAMP, ZTITLE VARCHAR);
            INSERT INTO ZNOTE VALUES (7, 1, 1, 800000000.25, 'Milk'), (8, 1, 1, NULL, 'Tea');
            """)
        try await Store.encrypt(plaintextAt: modelPath, to: path, key: key)
        let store = try await Store(path: path, key: key)
        try await store.migrate([
            Migration("rows of Core Data") { tx in
                struct Note: Record {  // as it was then
                    var id: Int64?
                    var title: String
                    var created: Date
                }
                try tx.create(Note.self)
                for row in try tx.rows("SELECT Z_PK, ZTITLE, ZCREATED FROM ZNOTE") {
                    let created = try row.date("ZCREATED", as: .secondsSince2001)
                    try tx.insert(
                        Note(
                            id: row.get("Z_PK"), title: row.get("ZTITLE"),
                            created: created ?? .distantPast))
                }
                try tx.execute("DROP TABLE ZNOTE")
            }
        ])
        let rows = try await store.read { tx in
            try tx.rows("SELECT id, title, created FROM note ORDER BY id").map(\.values)
        }
        #expect(rows.map(\.[0]) == [.integer(7), .integer(8)])
        #expect(rows[0] == [.integer(7), .text("Milk"), .real(800_000_000.25)])
    }
}
