import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct RekeyTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ mode: Configuration.JournalMode, profile: CipherProfile? = nil, rowCount: Int = 200,
        isPatient: Bool = true
    ) throws -> Connection {
        let connection = try Connection(
            path: path, key: .numbered(1),
            configuration: isPatient ? .testing(mode, profile: profile) : .impatient(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for number in 0..<rowCount {
                let filler = [UInt8](repeating: UInt8(number % 251), count: 300)
                try connection.execute("INSERT INTO t(v) VALUES (\(filler))")
            }
        }
        return connection
    }

    private func rowCount(key: UInt8, _ mode: Configuration.JournalMode) throws -> Int {
        let connection = try Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(mode))
        return try connection.rows("SELECT * FROM t").count
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `the new key opens every row and the old key none`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let connection = try make(mode, profile: profile)
        try connection.rekey(to: .numbered(2))
        #expect(try connection.rows("SELECT * FROM t").count == 200)
        try connection.execute("INSERT INTO t(v) VALUES (1)")
        connection.close()
        #expect(try rowCount(key: 2, mode) == 201)
        expect(.wrongKey) { _ = try rowCount(key: 1, mode) }
    }

    @Test func `the salt stays`() throws {
        let connection = try make(.delete)
        let before = try connection.current().rawBytes(at: 0, count: 16)
        try connection.rekey(to: .numbered(2))
        #expect(try connection.current().rawBytes(at: 0, count: 16) == before)
    }

    @Test func `no page of the old key is left in the main file`() throws {
        let connection = try make(.wal)
        let old = try connection.fileState().key.copy()
        let profile = try #require(connection.profile)
        try connection.rekey(to: .numbered(2))
        let handle = try connection.current()
        let damaged = try RawPages(handle, key: old, profile: profile).damaged(maximumCount: .max)
        #expect(damaged.count == (try handle.rawByteCount()) / profile.pageByteCount)
    }

    @Test func `a passphrase becomes another passphrase`() throws {
        let connection = try Connection(
            path: path, key: .passphrase("first"), configuration: .testing(profile: .sqlcipher3))
        try connection.execute("CREATE TABLE t(v)")
        try connection.rekey(to: .passphrase("second"))
        connection.close()
        let again = try Connection(path: path, key: .passphrase("second"), mode: .mustExist)
        #expect(try again.rows("SELECT * FROM t").isEmpty)
        again.close()
        expect(.wrongKey) {
            _ = try Connection(path: path, key: .passphrase("first"), mode: .mustExist)
        }
    }

    // MARK: Refused before anything happens

    @Test func `an empty key, the same key and another salt are misuse`() throws {
        let connection = try make(.wal)
        expect(.misuse) { try connection.rekey(to: .passphrase("")) }
        expect(.misuse) { try connection.rekey(to: .raw([1, 2, 3])) }
        expect(.misuse) { try connection.rekey(to: .numbered(1)) }
        expect(.misuse) { try connection.rekey(to: .raw([UInt8](repeating: 9, count: 48))) }
        #expect(try connection.rows("SELECT * FROM t").count == 200)
    }

    @Test func `a rekey inside a transaction is misuse and commits nothing`() throws {
        let connection = try make(.wal)
        try? connection.transaction {
            try connection.execute("DELETE FROM t")
            expect(.misuse) { try connection.rekey(to: .numbered(2)) }
            throw CancellationError()
        }
        #expect(try connection.rows("SELECT * FROM t").count == 200)
    }

    @Test func `a rekey while a statement has a current row is misuse`() throws {
        let connection = try make(.wal)
        let statement = try connection.prepare("SELECT * FROM t")
        #expect(try statement.step())
        expect(.misuse) { try connection.rekey(to: .numbered(2)) }
        try statement.reset()
        try connection.rekey(to: .numbered(2))
        expect(.closed) { _ = try statement.step() }
    }

    @Test func `a read-only connection cannot rekey`() throws {
        try make(.delete).close()
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing(.delete))
        expect(.readOnly) { try connection.rekey(to: .numbered(2)) }
        #expect(try connection.rows("SELECT * FROM t").count == 200)
    }

    @Test(arguments: journalModes)
    func `a rekey during another process's write gives .busy and keeps the key`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try make(mode, isPatient: false)
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        let statement = try connection.prepare("SELECT count(*) FROM t")
        expect(.busy) { try connection.rekey(to: .numbered(2)) }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try statement.step(), "a refused rekey ends no statement")
        try statement.reset()
        #expect(try connection.rows("SELECT * FROM t").count == 200)
        try connection.rekey(to: .numbered(2))
        #expect(try connection.rows("SELECT * FROM t").count == 200)
    }

    @Test func `a rekey during another process's read gives .busy without WAL`() throws {
        let connection = try make(.delete, isPatient: false)
        let peer = try Peer(["hold-read", "delete", path, "1"])
        try #require(peer.line() == "ready")
        expect(.busy) { try connection.rekey(to: .numbered(2)) }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try rowCount(key: 1, .delete) == 200)
    }

    @Test func `a rekey during another process's read in WAL lets the read finish`() throws {
        try make(.wal).close()
        // The checkpoint waits for the reader in vain.
        let connection = try Connection(path: path, key: .numbered(1), configuration: .impatient())
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        try connection.rekey(to: .numbered(2))
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try connection.rows("SELECT * FROM t").count == 200)
    }

    // MARK: Failing on the way

    @Test(arguments: journalModes)
    func `a damaged page stops the rekey and the old key still opens the good rows`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try make(mode)
        let size = try #require(connection.profile).pageByteCount
        connection.close()
        try Damage.flip(path, at: size * 8 + 100)
        let again = try Connection(path: path, key: .numbered(1), configuration: .testing(mode))
        let error = expect(.damaged) { try again.rekey(to: .numbered(2)) }
        #expect(error?.pages == [9])
        #expect(try again.firstRow("SELECT v FROM t WHERE id = 1") != nil)
        again.close()
        expect(.wrongKey) {
            _ = try Connection(
                path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(mode))
        }
    }

    @Test(arguments: journalModes)
    func `a file-size limit stops the rekey with .io and every row stays`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode, rowCount: 2000).close()
        let size = try #require(
            FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        let lines = try Peer.run([
            "rekey-limited", String(size / 2), mode.description, path, "1", "2",
        ])
        #expect(lines == ["io", "rows 2000"])
        #expect(try rowCount(key: 1, mode) == 2000)
    }

    @Test(.onSmallDisk, arguments: journalModes)
    func `a full disk stops the rekey with .full and every row stays`(
        mode: Configuration.JournalMode
    ) throws {
        let lines = try SmallDisk.run(folder, "rekey-now", mode)
        #expect(lines == ["full", "rows 2000"])
    }

    @Test func `a rekey that was reversed before the old key is tried is not a success`() throws {
        try make(.delete).close()
        _ = try folder.copy(path, as: "store.db.before")
        #expect(try Peer.run(["rekey-undone", path, "1", "2"]) == ["engine"])
        #expect(try rowCount(key: 1, .delete) == 200)
    }

    @Test func `a key that was changed says so, even if the connection cannot be set up again`()
        throws
    {
        let folder = try TemporaryFolder()
        let calls = Mutex(0)
        var configuration = Configuration.testing(.delete)
        configuration.prepare = { _ in
            let count = calls.withLock { count in
                count += 1
                return count
            }
            guard count == 1 else { throw CancellationError() }
        }
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try connection.execute("CREATE TABLE t(v)")
        let error = expect(.misuse) { try connection.rekey(to: .numbered(2)) }
        #expect(error?.message.contains("the key was changed") == true)
        #expect(!connection.isOpen)
        let again = try Connection(
            path: folder.path(), key: .numbered(2), configuration: .testing(.delete))
        #expect(try again.tableExists("t"))
    }
}
