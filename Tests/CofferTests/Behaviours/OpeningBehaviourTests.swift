import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Opening, closing and what a connection says of itself.
@Suite(.againstHanging, .onOwnThreads) struct OpeningBehaviourTests {
    @Test func `F001 a database in memory opens through a VFS of one's own`() throws {
        let vfs = try CustomVFS("MyCustomVFS")
        var configuration = Configuration()
        configuration.vfs = "MyCustomVFS"
        let connection = try Connection(.memory, configuration: configuration)
        #expect(try connection.firstRow("SELECT 1")?[0] == 1)
        connection.close()
        #expect(vfs.unregister() == SQLITE_OK)
    }

    @Test func `F002 a connection opens at a URL, tells it, and closes`() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appending(path: "fresh.db")
        let connection = try Connection(
            url: url, key: .numbered(7), configuration: .testing(.delete))
        #expect(connection.isOpen)
        #expect(connection.url == url)
        connection.close()
        #expect(!connection.isOpen)
        try FileManager.default.removeItem(at: url)
        #expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `F003 an unknown VFS is .notFound by its name`() throws {
        var configuration = Configuration()
        configuration.vfs = "UnknownVFS"
        let error = expect(.notFound) {
            try Connection(.memory, configuration: configuration)
        }
        #expect(error?.message.contains("UnknownVFS") == true)
    }

    @Test func `F007 the journal mode is asked by pragma and set by the configuration`() throws {
        let fixture = try BehaviourFixture.test()
        let connection = fixture.connection
        let error = expect(.misuse) { try connection.rows("pragma journal_mode=delete") }
        #expect(error?.code == .misuse)
        let rows = try connection.rows("pragma journal_mode")
        #expect(rows.count == 1)
        #expect(rows.first?[0] == "delete")
        connection.close()
        #expect(!connection.isOpen)
    }

    @Test func `F008 pages of 2048 bytes are a profile, not a pragma`() throws {
        let fixture = try BehaviourFixture.test()
        expect(.misuse) { try fixture.connection.execute("PRAGMA page_size=2048") }
        let profile = try Engine.capabilities.defaultProfile.with(pageByteCount: 2048)
        let connection = try Connection(
            path: fixture.folder.path("small.db"), key: .numbered(7),
            configuration: .testing(.delete, profile: profile))
        // SQLCipher 4 answers with text.
        #expect(try connection.firstRow("PRAGMA page_size")?.coerced[0].int == 2048)
    }

    @Test func `F009 VACUUM runs and keeps the rows`() throws {
        let fixture = try BehaviourFixture.test()
        let connection = fixture.connection
        try connection.execute("VACUUM")
        #expect(try connection.rows("SELECT * FROM test").count == 40)
        #expect(try connection.rows("SELECT * FROM t3").count == 20)
    }

    @Test func `F054 the library tells its version`() throws {
        #expect(Release.version == "0.1.0")
        #expect(Engine.Version(Release.version) != nil)
    }

    @Test func `F055 a version above the required one is above it number by number`() throws {
        // Coffer's own is 0.x: the stated values are compared, which as texts come the other way.
        let required = try #require(Engine.Version("1.100.42"))
        #expect(try #require(Engine.Version("2.7.12")) > required)
        #expect(try #require(Engine.Version("1.100.43")) > required)
    }

    @Test func `F056 a version below the required one is below it number by number`() throws {
        let required = try #require(Engine.Version("10.0.42"))
        #expect(try #require(Engine.Version("2.7.12")) < required)
        #expect(try #require(Engine.Version(Release.version)) < required)
    }

    @Test func `F059 SQLite is of version 3`() throws {
        let version = try #require(try Engine.capabilities.sqlite)
        #expect(try #require(Engine.Version("3.7")) < version)
        #expect(try #require(Engine.Version("4.0")) > version)
    }

    @Test func `F060 the engine is thread-safe`() {
        #expect(Engine.isThreadSafe)
    }

    @Test func `F061 a database in memory keeps what it is given`() throws {
        let connection = try Connection(.memory)
        try connection.execute("CREATE TABLE foo(bar TEXT)")
        try connection.execute("INSERT INTO foo VALUES (\("baz"))")
        #expect(try connection.firstRow("SELECT bar FROM foo")?.get(0, as: String.self) == "baz")
    }

    @Test func `F062 a temporary database keeps what it is given and leaves no file`() throws {
        let connection = try Connection(.temporary)
        try connection.execute("CREATE TABLE foo(bar TEXT)")
        try connection.execute("INSERT INTO foo VALUES (\("baz"))")
        #expect(try connection.firstRow("SELECT bar FROM foo")?.get(0, as: String.self) == "baz")
        // A process of its own: the open files of this one are other tests' as well.
        #expect(try Peer.run(["temporary-files", "wal", ""]) == ["files "])
    }

    @Test func `F063 opening an open connection is misuse and leaves it open`() throws {
        let fixture = try BehaviourFixture.test()
        let connection = fixture.connection
        expect(.misuse) { try connection.setKey(.numbered(7)) }
        #expect(connection.isOpen)
        #expect(try connection.rows("SELECT * FROM t3").count == 20)
    }

    @Test func `F069 an open connection is good`() throws {
        try Connection(.memory).check()
        let fixture = try BehaviourFixture.test()
        try fixture.connection.check()
    }

    @Test func `F070 a connection that was never opened is not good`() throws {
        let folder = try TemporaryFolder()
        let connection = Connection(path: folder.path())
        expect(.misuse) { try connection.check() }
        #expect(!connection.isOpen)
    }

    @Test func `F078 a connection whose file was missing opens when it is there`() throws {
        let folder = try TemporaryFolder()
        let first = try Connection(
            path: folder.path("1.db"), key: .numbered(7), configuration: .testing(.delete))
        try first.execute("CREATE TABLE foo(bar TEXT)")
        first.close()
        let second = Connection(
            path: folder.path("2.db"), mode: .mustExist, configuration: .testing(.delete))
        expect(.notFound) { try second.setKey(.numbered(7)) }
        #expect(!second.isOpen)
        #expect(!FileManager.default.fileExists(atPath: folder.path("2.db")))
        _ = try folder.copy(folder.path("1.db"), as: "2.db")
        try second.setKey(.numbered(7))
        #expect(second.isOpen)
        let cursor = try second.prepare("select * from foo")
        #expect(try !cursor.step())
    }
}
