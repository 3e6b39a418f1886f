import Foundation
import Testing

@testable import Coffer

/// Opening and closing a store, and what other processes do to its file.
@Suite(.againstHanging, .onOwnThreads) struct OpenStoreTests: StoreSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `a second store on the same file is .alreadyOpen until the first is closed`() throws
    {
        let store = try make()
        let link = folder.path("link.db")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
        expect(.alreadyOpen) { _ = try Store(path: link, key: .numbered(1)) }
        try store.close()
        let second = try Store(path: link, key: .numbered(1))
        try store.close()
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
        _ = second.path
    }

    @Test(arguments: [
        ("cell_size_check", 1), ("foreign_keys", 1), ("mmap_size", 0), ("synchronous", 2),
        ("temp_store", 2),
    ])
    func `the writer, a reader and a connection that copies have the settings of Coffer`(
        setting: String, value: Int
    ) throws {
        let store = try make()
        let pool = store.core.pool
        let reader = try pool.openReader(isCounted: false)
        let copying = try pool.openForCopy(cacheByteCount: 1 << 20)
        for (connection, isQueryOnly) in [
            (pool.writer, 0), (reader.connection, 1), (copying, 0),
        ] {
            let handle = try connection.current()
            #expect(try handle.firstInteger("PRAGMA \(setting)") == value)
            #expect(try handle.firstInteger("PRAGMA query_only") == isQueryOnly)
        }
        reader.connection.close()
        copying.close()
    }

    @Test func `no connection that may write computes a refused function, not even for Coffer`()
        throws
    {
        let store = try make()
        let pool = store.core.pool
        let copying = try pool.openForCopy(cacheByteCount: 1 << 20)
        let reader = try pool.openReader(isCounted: false)
        for connection in [pool.writer, copying, reader.connection] {
            let handle = try connection.current()
            for sql in ["SELECT load_extension('x')", "SELECT fts3_tokenizer('simple', x'00')"] {
                #expect(throws: StoreError.self) { try handle.run(sql) }
            }
        }
        for connection in [pool.writer, copying] {
            let handle = try connection.current()
            #expect(throws: StoreError.self) { try handle.run("SELECT fts3_tokenizer('simple')") }
        }
        // Of the SQL of others, the authorizer refuses it.
        expect(.misuse) { try reader.connection.rows("SELECT fts3_tokenizer('simple')") }
        reader.connection.close()
        copying.close()
    }

    @Test func `a store that pauses gives the file free, and resumes when it is free again`()
        throws
    {
        let store = try make()
        try store.suspend()
        let second = try Store(path: path, key: .numbered(1))
        expect(.alreadyOpen) { try store.resume() }
        expect(.alreadyOpen) { try store.reopen(with: .numbered(1)) }
        expect(.suspended) { try store.read { _ in } }
        try second.write { tx in try tx.execute("INSERT INTO t VALUES (7)") }
        try second.close()
        try store.resume()
        #expect(try values(store) == [7])
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
    }

    @Test(arguments: journalModes)
    func `a store that may not resume leaves the mode of the other store`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        try store.suspend()
        let other: Configuration.JournalMode = mode == .wal ? .delete : .wal
        let second = try Store(path: path, key: .numbered(1), configuration: .testing(other))
        expect(.alreadyOpen) { try store.resume() }
        expect(.alreadyOpen) { try store.reopen(with: .numbered(1)) }
        // A connection asks the file for its mode when it reads.
        try second.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try second.core.pool.writer.current().journalMode() == other)
    }

    @Test(arguments: [true, false])
    func `a store that opens a new file at its path has that file, and no longer the old one`(
        pauses: Bool
    ) throws {
        let store = try make()
        try store.backup(to: folder.path("other.db"))
        if pauses { try store.suspend() }
        let old = folder.path("old.db")
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.moveItem(atPath: path + suffix, toPath: old + suffix)
        }
        unlinkIfPresent(path + "-shm")
        try FileManager.default.moveItem(atPath: folder.path("other.db"), toPath: path)
        try store.reopen(with: .numbered(1))
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
        try Store(path: old, key: .numbered(1)).close()
    }

    @Test func `opening a file that another store is closing waits for it`() async throws {
        let file = try FileLocation(make().path)
        guard case .file(_, let identity) = try file.status() else {
            Issue.record("there is no file")
            return
        }
        let closing = try OpenFiles.Claim(identity, path: file.path)
        expect(.alreadyOpen) { try OpenFiles.require(identity, isFreeAt: file.path) }
        closing.willEnd()
        let isOver = Shared(false)
        let next = Task {
            let claim = try OpenFiles.Claim(
                identity, path: file.path, timeout: .seconds(3600))
            defer { claim.release() }
            return isOver.value
        }
        for _ in 0..<100 { await Task.yield() }
        isOver.value = true
        closing.release()
        #expect(try await next.value)
    }

    @Test func `a store that is let go gives the file free`() throws {
        do { _ = try make() }
        _ = try make()
    }

    @Test func `everything after close is .closed`() async throws {
        let store = try make()
        try await store.close()
        try await store.close()
        let late: [() throws -> Void] = [
            { try store.read { _ in } }, { try store.write { _ in } }, { try store.suspend() },
            { try store.rekey(to: .numbered(2)) }, { try store.reopen(with: .numbered(1)) },
            { _ = try store.snapshot() },
        ]
        for verb in late { _ = expect(.closed) { try verb() } }
        await #expect {
            try await store.write { _ in }
        } throws: { ($0 as? StoreError)?.code == .closed }
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
    }

    @Test func `close, rekey and verbs of one's own transaction are misuse inside a body`() throws {
        let store = try make()
        let changes: [() throws -> Void] = [
            { try store.close() }, { try store.suspend() }, { try store.resume() },
            { try store.rekey(to: .numbered(2)) }, { try store.reopen(with: .numbered(1)) },
        ]
        for change in changes {
            try store.write { _ in _ = expect(.misuse) { try change() } }
            try store.read { _ in _ = expect(.misuse) { try change() } }
        }
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try values(store) == [1])
    }

    @Test(arguments: [
        ("PRAGMA journal_mode = DELETE", "Configuration.journalMode"),
        ("PRAGMA key = 'x'", "store.rekey(to:)"), ("PRAGMA rekey = 'x'", "store.rekey(to:)"),
        ("ATTACH 'other.db' AS other", "another Store"),
        ("PRAGMA synchronous = OFF", "Configuration"), ("COMMIT", "throw to roll back"),
    ])
    func `misuse in a body says what to do instead`(sql: String, words: String) throws {
        let store = try make()
        let error = expect(.misuse) {
            try store.write { tx in try tx.execute(SQL(text: sql)) }
        }
        let text = try #require(error).description
        #expect(text.contains(words), "\(text)")
    }

    @Test(arguments: journalModes)
    func `a read-only store reads and refuses to write`(mode: Configuration.JournalMode) throws {
        do { try make(.testing(mode)).close() }
        let store = try make(.testing(mode), mode: .readOnly)
        #expect(try values(store) == [])
        expect(.readOnly) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") } }
        expect(.readOnly) { try store.rekey(to: .numbered(2)) }
    }

    @Test func `a store with all its connections costs one derivation, made or opened`() throws {
        // In a process of its own: the counter is the process's, and tests run side by side.
        #expect(
            try Peer.run(["derivations", path])
                == ["4 readers, 1 derivations", "4 readers, 2 derivations"])
    }

    // MARK: Other processes

    @Test(arguments: journalModes)
    func `a write beside another process's write is .busy and loses nothing`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.impatient(mode))
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        expect(.busy) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") } }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test(arguments: journalModes)
    func `a store that another process rekeys gets .wrongKey, not garbage`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try values(store) == [1])
        #expect(try Peer.run(["rekey-now", mode.description, path, "1", "2"]) == ["rekeyed"])
        expect(.wrongKey) { _ = try values(store) }
        expect(.wrongKey) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") } }
        try store.close()
        let again = try Store(path: path, key: .numbered(2), configuration: .testing(mode))
        #expect(try values(again) == [1])
    }
}
