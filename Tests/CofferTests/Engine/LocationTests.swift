import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// The system's VFS under another name, for as long as this value lives.
final class CustomVFS {
    let name: String
    private let vfs: UnsafeMutablePointer<sqlite3_vfs>
    private let text: UnsafeMutablePointer<CChar>
    private var isRegistered = true

    init(_ name: String) throws {
        self.name = name
        let original = try #require(sqlite3_vfs_find(nil))
        text = strdup(name)
        vfs = .allocate(capacity: 1)
        vfs.initialize(to: original.pointee)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(text)
        try #require(sqlite3_vfs_register(vfs, 0) == SQLITE_OK)
    }

    func unregister() -> Int32 {
        isRegistered = false
        return sqlite3_vfs_unregister(vfs)
    }

    // Neither is freed, because a connection that is still open points to them.
    deinit { if isRegistered { sqlite3_vfs_unregister(vfs) } }
}

@Suite(.againstHanging, .onOwnThreads) struct LocationTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(v)")
    }

    private func open(_ location: Location, _ mode: OpenMode? = nil) throws -> Connection {
        try Connection(
            location, key: .numbered(1), mode: mode, configuration: .testing(.delete))
    }

    @Test(arguments: [Location.memory, .temporary])
    func `a database without a file works like one with a file, and leaves none`(
        location: Location
    ) throws {
        let connection = try Connection(location)
        try connection.execute("CREATE TABLE t(v)")
        try connection.transaction {
            let value = [UInt8](repeating: 1, count: 900)
            for _ in 0..<2000 { try connection.execute("INSERT INTO t VALUES (\(value))") }
        }
        expect(.notFound) {
            try connection.transaction {
                try connection.execute("DELETE FROM t")
                throw StoreError(.notFound, "undone")
            }
        }
        #expect(try connection.rows("SELECT v FROM t").count == 2000)
        #expect(connection.url == nil)
        #expect(connection.location == location)
        #expect(connection.profile == (try Engine.capabilities.defaultProfile))
        try connection.check()
        #expect(try connection.firstRow("PRAGMA journal_mode")?[0] == "memory")
        expect(.unsupported) { try connection.rekey(to: .numbered(2)) }
        expect(.misuse) { try connection.setKey(.numbered(2)) }
        #expect(try connection.checkpoint() == nil)
        // Two such connections have two databases.
        #expect(try !Connection(location).tableExists("t"))
        connection.close()
        expect(.closed) { try connection.rows("SELECT v FROM t") }
    }

    @Test func `a file takes a key, and a database without a file takes none`() throws {
        expect(.misuse) { try Connection(.file(path)) }
        expect(.misuse) { try Connection(.memory, key: .numbered(1)) }
        expect(.misuse) { try Connection(.memory, mode: .readOnly) }
        expect(.unsupported) { try Connection(path: ":memory:", key: .numbered(1)) }
        expect(.misuse) { try Connection(path: "", key: .numbered(1)) }
    }

    @Test func `P11 a store refuses a database without a file`() throws {
        // Each of the store's connections would have its own empty database.
        expect(.unsupported) { try Store(path: ":memory:", key: .numbered(1)) }
        expect(.misuse) { try Store(path: "", key: .numbered(1)) }
    }

    @Test func `P32 only the URL of a file on this machine is opened`() throws {
        for text in ["https://example.org\(path)", "ftp:\(path)", "file://elsewhere\(path)"] {
            let url = try #require(URL(string: text))
            expect(.misuse) { try Connection(url: url, key: .numbered(1)) }
            expect(.misuse) { try Store(url: url, key: .numbered(1)) }
        }
        let spaced = folder.url.appending(path: "with space & ü%.db")
        let connection = try Connection(
            url: spaced, key: .numbered(1), configuration: .testing(.delete))
        #expect(FileManager.default.fileExists(atPath: folder.path("with space & ü%.db")))
        #expect(connection.url == spaced)
        // The connection is open, so setKey does not open it again with other options.
        expect(.misuse) { try connection.setKey(.numbered(1)) }
    }

    @Test func `a URI says how to open the file`() throws {
        let escaped = path.replacingOccurrences(of: "s", with: "%73")
        for text in [
            "file:\(path)", "file://\(path)", "file://localhost\(path)?mode=rw", "file:\(escaped)",
            "file:\(path)?mode=rwc#fragment?mode=ro",
        ] {
            #expect(try open(.uri(text)).tableExists("t"), "\(text)")
        }
        let reader = try open(.uri("file:\(path)?mode=ro"))
        expect(.readOnly) { try reader.execute("INSERT INTO t VALUES (1)") }
        expect(.notFound) { try open(.uri("file:\(folder.path("none.db"))?mode=rw")) }
        expect(.misuse) { try open(.uri("file:\(path)?mode=ro"), .mustExist) }
        #expect(try Location.uri("file::memory:") == .memory)
        #expect(try Location.uri("file:any?mode=memory") == .memory)
        #expect(try Location.uri("file:") == .temporary)
    }

    @Test(arguments: [
        "cache=shared", "nolock=1", "immutable=1", "psow=0", "key=hunter2", "hexkey=hunter2",
        "textkey=hunter2", "mode=hunter2", "hunter2", "hunter2=1", "mode=ro&mode=rw", "mode=ro%2",
        "mode=%+1", "m%6Fde=r&key=hunter2",
    ])
    func `a URI that asks for more is refused without quoting it`(query: String) throws {
        let error = expect(.misuse) { try Location.uri("file:x.db?" + query) }
        #expect(!"\(try #require(error))".contains("hunter2"))
        expect(.misuse) { try Location.uri("https://x/" + query) }
        expect(.misuse) { try Location.uri("file://elsewhere/x.db") }
    }

    @Test func `a VFS is used by every physical open`() throws {
        let vfs = try CustomVFS("cofferLocationTest")
        var configuration = Configuration.testing(.wal)
        configuration.vfs = vfs.name
        func vfsName(_ connection: Connection) throws -> String? {
            try connection.withUnsafeHandle { db in
                var name: UnsafeMutablePointer<CChar>?
                sqlite3_file_control(db, "main", SQLITE_FCNTL_VFSNAME, &name)
                defer { sqlite3_free(name) }
                return name.map { String(cString: $0) }
            }
        }
        let connection = try Connection(
            path: folder.path("vfs.db"), key: .numbered(1), configuration: configuration)
        try connection.execute("CREATE TABLE t(v)")
        #expect(try vfsName(connection) == vfs.name)
        try connection.rekey(to: .numbered(2))
        #expect(try vfsName(connection) == vfs.name)
        connection.close()
        let store = try Store(
            path: folder.path("vfs.db"), key: .numbered(2), configuration: configuration)
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            let name = try vfsName(tx.connection())
            #expect(name == vfs.name)
        }
        try store.read { tx in
            let count = try tx.rows("SELECT v FROM t").count
            let name = try vfsName(tx.connection())
            #expect(count == 1)
            #expect(name == vfs.name)
        }
        try store.backup(to: folder.path("copy.db"))
        try store.close()
        let uri = try Location.uri("file:\(folder.path("copy.db"))?vfs=\(vfs.name)")
        #expect(try vfsName(Connection(uri, key: .numbered(2))) == vfs.name)
        var other = configuration
        other.vfs = "another"
        expect(.misuse) { try Connection(uri, key: .numbered(2), configuration: other) }
        #expect(vfs.unregister() == SQLITE_OK)
    }

    @Test func `P10 what the configuration prepares exists on every physical open`() throws {
        var configuration = Configuration.testing(.wal)
        configuration.prepare = { try $0.setLimit(.column, to: 5) }
        let path = folder.path("prepared.db")
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: configuration)
        #expect(try connection.limit(.column) == 5)
        try connection.rekey(to: .numbered(2))
        #expect(try connection.limit(.column) == 5)
        connection.close()
        // The connection is closed, so nothing opens it again behind the caller's back.
        expect(.closed) { try connection.rows("SELECT 1") }
        #expect(!connection.isOpen)
        let store = try Store(path: path, key: .numbered(2), configuration: configuration)
        func limits() throws -> [Int] {
            try [
                store.write { tx in try tx.connection().limit(.column) },
                store.read { tx in try tx.connection().limit(.column) },
            ]
        }
        #expect(try limits() == [5, 5])
        try store.rekey(to: .numbered(1))
        #expect(try limits() == [5, 5])
        try store.close()
        expect(.closed) { try store.read { tx in try tx.rows("SELECT 1").count } }
        configuration.prepare = { _ in throw StoreError(.mismatch, "not prepared") }
        expect(.mismatch) {
            try Connection(path: path, key: .numbered(1), configuration: configuration)
        }
    }

    @Test(arguments: journalModes)
    func `P29 check reads the file again each time`(mode: Configuration.JournalMode) throws {
        let path = folder.path("checked.db")
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(v)")
        try connection.checkpoint(.truncate)
        for _ in 0..<3 { try connection.check() }
        // The byte is in the middle of page 1, where the engine has no sign of the change.
        try Damage.overwriteFromOutside(path, at: 600)
        let error = expect(.damaged) { try connection.check() }
        #expect(error?.pages == [1])
    }

    @Test func `P24 opening proves the key, and a wrong one is never accepted`() throws {
        let wrong = Connection(path: path, configuration: .testing(.delete))
        expect(.misuse) { try wrong.check() }
        expect(.wrongKey) { try wrong.setKey(.numbered(9)) }
        #expect(!wrong.isOpen)
        expect(.misuse) { try wrong.check() }
        expect(.misuse) { try wrong.setKey(.passphrase("")) }
        try wrong.setKey(.numbered(1))
        try wrong.check()
        // The codec is linked, and describes itself.
        let information = try wrong.cipherInformation()
        #expect(information.version == (try Engine.capabilities.cipherVersion))
        #expect(!information.provider.isEmpty && !information.providerVersion.isEmpty)
        #expect(!information.isFIPS)
        #expect(information.profile == wrong.profile)
        // A change of the key does not encrypt a plaintext file.
        let plain = folder.path("plain.db")
        _ = try RawConnection(plain).run("CREATE TABLE t(v)")
        expect(.notEncrypted) { try Connection(path: plain, key: .numbered(1)) }
    }
}

@Suite(.againstHanging, .onOwnThreads, .serialized) struct EngineInformationTests {
    // Serialized, because the log level belongs to the process.

    @Test func `versions are compared number by number`() throws {
        let versions = ["3.4", "3.4.1", "3.15.2", "3.46.1", "10.0.42"].map { Engine.Version($0)! }
        #expect(versions.sorted() == versions)
        #expect(Engine.Version("4.6.1 community")! > Engine.Version("4.6")!)
        #expect(Engine.Version("3.4.0")! == Engine.Version("3.4")!)
        #expect(Engine.Version("none") == nil && Engine.Version("") == nil)
        #expect(try Engine.capabilities.cipher! >= Engine.Version("3.4.1")!)
    }

    @Test func `the engine reports what it was built from`() throws {
        #expect(Engine.compileOptions.contains { $0.hasPrefix("THREADSAFE=") })
        #expect(Engine.compileOptions.contains("HAS_CODEC"))
        #expect(Engine.sourceID.hasPrefix("20"))
    }

    @Test func `the level of SQLCipher's log survives later opens, where there is a log`() throws {
        guard isEngine4 else {
            expect(.unsupported) { try Engine.setCipherLogLevel(.none) }
            return
        }
        #expect(Engine.cipherLogLevel == .none)
        try Engine.setCipherLogLevel(.error)
        let connection = try Connection(.memory)
        #expect(try connection.current().firstText("PRAGMA cipher_log_level") == "ERROR")
        try Engine.setCipherLogLevel(.none)
        #expect(try connection.current().firstText("PRAGMA cipher_log_level") == "NONE")
    }

    @Test func `a database in memory keeps its content if a loaded one cannot be set up`() throws {
        let folder = try TemporaryFolder()
        let source = try Connection(
            path: folder.path("source.db"), key: .numbered(1), configuration: .testing(.delete))
        try source.execute("CREATE TABLE other(v)")
        var configuration = Configuration.testing(.delete)
        configuration.prepare = { connection in
            guard try !connection.tableExists("other") else { throw CancellationError() }
        }
        let connection = try Connection(.memory, configuration: configuration)
        try connection.execute("CREATE TABLE mine(v)")
        try connection.execute("INSERT INTO mine VALUES (1)")
        expect(.misuse) { try connection.load(from: folder.path("source.db"), key: .numbered(1)) }
        expect(.misuse) { try source.backup(to: connection) }
        #expect(try connection.scalar("SELECT v FROM mine") == 1)
        try connection.execute("INSERT INTO mine VALUES (2)")
        #expect(try connection.rows("SELECT v FROM mine").count == 2)
    }
}
