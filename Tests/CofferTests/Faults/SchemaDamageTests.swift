import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// A damaged page of the schema never becomes another schema.
///
/// SQLite loads the schema in its own transaction, and forgets at its end that a page failed. The
/// tail of the last object reads as zeros, and its text ends there: `visible` then shows the row
/// that its last condition hides. On SQLCipher 3.4.1 a change of the key even made a page of zeros
/// authentic.
@Suite(.againstHanging, .onOwnThreads) struct SchemaDamageTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: SchemaFixture.LastObject.allCases, supportedProfiles)
    func `no statement uses a schema of which a page is damaged`(
        last: SchemaFixture.LastObject, profile: CipherProfile
    ) throws {
        let fixture = try SchemaFixture(folder.path("good.db"), last, profile)
        var refusedCount = 0
        for page in 2...fixture.pageCount {
            for way in fixture.ways {
                for kind in fixture.kinds(by: way) {
                    let path = folder.path("damaged.db")
                    try fixture.write(to: path, kind, page: page)
                    defer { removeStore(path) }
                    do {
                        let found = try fixture.ask(way, path)
                        #expect(found == fixture.truth, "\(way), \(kind) in page \(page)")
                    } catch let error as StoreError {
                        #expect(error.code == .damaged, "\(way), \(kind) in page \(page): \(error)")
                        refusedCount += 1
                    }
                }
            }
        }
        #expect(refusedCount > 0)
    }

    @Test(arguments: SchemaFixture.LastObject.allCases, supportedProfiles)
    func `a change of the key or VACUUM over a damaged page fails and changes nothing`(
        last: SchemaFixture.LastObject, profile: CipherProfile
    ) throws {
        let fixture = try SchemaFixture(folder.path("good.db"), last, profile)
        for page in 2...fixture.pageCount {
            for kind in fixture.kinds(by: .attached) {
                for way in SchemaFixture.Rewrite.allCases {
                    let path = folder.path("damaged.db")
                    let before = try fixture.write(to: path, kind, page: page)
                    defer { removeStore(path) }
                    expect(.damaged) { try fixture.rewrite(way, path) }
                    let after = try Data(contentsOf: URL(filePath: path))
                    #expect(after == before, "\(way), \(kind) in page \(page)")
                }
            }
        }
    }

    @Test(arguments: journalModes, [false, true])
    func `a schema that another connection has changed is authenticated before it is used`(
        mode: Configuration.JournalMode, isInTransaction: Bool
    ) throws {
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try SchemaFixture.fill(connection)
        #expect(try connection.rows("SELECT title FROM note").count == 2)
        try damageNewView(path, mode)
        for _ in 0..<3 {
            expect(.damaged) {
                if isInTransaction {
                    try connection.transaction(.deferred) {
                        _ = try connection.rows("SELECT title FROM visible")
                    }
                } else {
                    _ = try connection.rows("SELECT title FROM visible")
                }
            }
            expect(.damaged) { try connection.prepare("SELECT title FROM visible") }
            expect(.damaged) { _ = try connection.rows("PRAGMA table_info(visible)") }
            expect(.damaged) { try connection.execute("INSERT INTO note VALUES (3, 'new', 0)") }
            expect(.damaged) { try connection.execute("VACUUM") }
            expect(.damaged) { try connection.execute("BEGIN") }
            expect(.damaged) { try connection.check() }
        }
    }

    @Test(arguments: journalModes)
    func `a store that is open does not use a changed schema with a damaged page`(
        mode: Configuration.JournalMode
    ) throws {
        let path = folder.path()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        let held = try Connection(path: path, key: .numbered(1), configuration: .testing(mode))
        try SchemaFixture.fill(held)
        held.close()
        #expect(try store.read { tx in try tx.rows("SELECT title FROM note").count } == 2)
        try damageNewView(path, mode)
        for _ in 0..<3 {
            expect(.damaged) {
                try store.read { tx in _ = try tx.rows("SELECT title FROM visible") }
            }
            expect(.damaged) {
                try store.write { tx in _ = try tx.rows("SELECT title FROM visible") }
            }
            expect(.damaged) {
                try store.write { tx in try tx.execute("INSERT INTO note VALUES (3, 'new', 0)") }
            }
        }
        try store.close()
    }

    @Test(arguments: journalModes)
    func `a schema that a rollback made the engine forget is authenticated`(
        mode: Configuration.JournalMode
    ) throws {
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try SchemaFixture.fill(connection)
        try connection.execute(SQL(text: SchemaFixture.LastObject.view.sql))
        if mode == .wal { try connection.checkpoint(.truncate) }
        let size = try #require(connection.profile).pageByteCount
        let page = try connection.current().firstInteger("PRAGMA page_count")
        let prepared = try connection.prepare("SELECT title FROM visible")
        #expect(try prepared.step())
        try prepared.reset()
        struct Undone: Error {}
        #expect(throws: Undone.self) {
            try connection.transaction {
                try connection.execute("CREATE TABLE undone(a)")
                throw Undone()
            }
        }
        // Otherwise the page is in its cache.
        sqlite3_db_release_memory(try connection.current().db)
        try Damage.overwriteFromOutside(path, at: (page - 1) * size + 100)
        for _ in 0..<2 {
            expect(.damaged) { try prepared.step() }
            expect(.damaged) { try connection.rows("SELECT title FROM visible") }
            expect(.damaged) { try connection.execute("INSERT INTO note VALUES (3, 'new', 0)") }
        }
    }

    @Test func `a schema is read again after damage elsewhere, and statements go on`() throws {
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try SchemaFixture.fill(connection)
        try connection.execute("CREATE TABLE long(v)")
        let text = String(repeating: "long ", count: 4000)
        try connection.execute("INSERT INTO long VALUES (\(text))")
        let size = try #require(connection.profile).pageByteCount
        let page = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        try Damage.flip(path, at: (page - 1) * size + 10)
        let again = try Connection(path: path, key: .numbered(1), configuration: .testing(.delete))
        let prepared = try again.prepare("SELECT title FROM note")
        for _ in 0..<3 {
            expect(.damaged) { _ = try again.rows("SELECT v FROM long") }
            #expect(try again.rows("SELECT title FROM note").count == 2)
            #expect(try prepared.step())
            try prepared.reset()
            try again.execute("UPDATE note SET title = title || '.'")
        }
    }

    /// Another connection makes a view whose text ends in the file's last page, which is then
    /// damaged from outside.
    private func damageNewView(_ path: String, _ mode: Configuration.JournalMode) throws {
        let other = try Connection(path: path, key: .numbered(1), configuration: .testing(mode))
        try other.execute(SQL(text: SchemaFixture.LastObject.view.sql))
        let size = try #require(other.profile).pageByteCount
        let page = try other.current().firstInteger("PRAGMA page_count")
        if mode == .wal { try other.checkpoint(.truncate) }
        other.close()
        try Damage.overwriteFromOutside(path, at: (page - 1) * size + 100)
    }
}
