import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ConnectionCopyTests {
    private let folder: TemporaryFolder
    private let path: String
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        connection = try Self.open(path)
        try Self.fill(connection, "original")
    }

    private static func open(
        _ path: String, _ mode: Configuration.JournalMode = .delete, key: UInt8 = 1,
        profile: CipherProfile? = nil
    ) throws -> Connection {
        try Connection(
            path: path, key: .numbered(key), configuration: .testing(mode, profile: profile))
    }

    private static func fill(_ connection: Connection, _ text: String) throws {
        try connection.execute("CREATE TABLE t(v, big)")
        try connection.execute(
            "INSERT INTO t VALUES (\(text), \([UInt8](repeating: 7, count: 20_000)))")
        try connection.setUserVersion(5)
    }

    private func text(_ connection: Connection) throws -> String? {
        try connection.firstRow("SELECT v FROM t WHERE length(big) = 20000")?.get(0)
    }

    @Test func `a database goes into memory and out of it`() throws {
        let memory = try Connection(.memory)
        try connection.backup(to: memory)
        #expect(try text(memory) == "original")
        #expect(try memory.userVersion == 5)
        try memory.execute("UPDATE t SET v = 'changed'")
        #expect(try text(connection) == "original")
        // The copy goes into a new file under its own key, and back over the first file.
        var steps: [CopyProgress.Step] = []
        try memory.save(to: folder.path("saved.db"), key: .numbered(2)) { steps.append($0.step) }
        #expect(steps.contains(.copyingPages) && steps.contains(.verifyingPages))
        #expect(try text(Self.open(folder.path("saved.db"), key: 2)) == "changed")
        try memory.backup(to: connection)
        #expect(try text(connection) == "changed")
        connection.close()
        #expect(try text(Self.open(path)) == "changed")
    }

    @Test(arguments: journalModes)
    func `one file's content replaces another's, which keeps its own key`(
        mode: Configuration.JournalMode
    ) throws {
        let other = try Self.open(folder.path("other.db"), mode, key: 2)
        try other.execute("CREATE TABLE old(v)")
        let kept = try other.prepare("SELECT 7")
        try connection.backup(to: other)
        #expect(try text(other) == "original")
        #expect(try !other.tableExists("old"))
        #expect(try kept.step())
        try kept.reset()
        other.close()
        expect(.wrongKey) { try Self.open(folder.path("other.db"), mode, key: 1) }
        let again = try Self.open(folder.path("other.db"), mode, key: 2)
        #expect(try text(again) == "original")
        #expect(try again.firstRow("PRAGMA journal_mode")?[0] == .text(mode.description))
        #expect(try again.firstRow("PRAGMA integrity_check")?[0] == "ok")
    }

    @Test func `P22 loading never makes a file, and takes nothing from a file that is not a store`()
        throws
    {
        let missing = folder.path("missing.db")
        let memory = try Connection(.memory)
        try Self.fill(memory, "kept")
        expect(.notFound) { try memory.load(from: missing, key: .numbered(1)) }
        #expect(!FileManager.default.fileExists(atPath: missing))
        expect(.wrongKey) { try memory.load(from: path, key: .numbered(9)) }
        let plain = folder.path("plain.db")
        _ = try RawConnection(plain).run("CREATE TABLE t(v)")
        expect(.notEncrypted) { try memory.load(from: plain, key: .numbered(1)) }
        #expect(try text(memory) == "kept")
        // Loading next to a live statement is refused with a message, not half done.
        try memory.execute("INSERT INTO t VALUES (1, 1)")
        let cursor = try memory.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        expect(.misuse) { try memory.load(from: path, key: .numbered(1)) }
        expect(.misuse) { try connection.backup(to: memory) }
        expect(.misuse) { try memory.save(to: missing, key: .numbered(1)) }
        try cursor.reset()
        try memory.load(from: path, key: .numbered(1))
        #expect(try text(memory) == "original")
        // The target is a connection to a file, which FMDB's loading refuses.
        let other = try Self.open(folder.path("other.db"))
        try other.load(from: path, key: .numbered(1))
        #expect(try text(other) == "original")
        #expect(try text(connection) == "original")
    }

    @Test func `nothing is overwritten by save, and nothing is left of a failure`() throws {
        expect(.alreadyExists) { try connection.save(to: path, key: .numbered(1)) }
        expect(.misuse) { try connection.save(to: folder.path("x.db"), key: .passphrase("")) }
        expect(.notFound) { try connection.save(to: folder.path("no/x.db"), key: .numbered(1)) }
        try connection.begin()
        expect(.misuse) { try connection.save(to: folder.path("x.db"), key: .numbered(1)) }
        expect(.misuse) { try connection.backup(to: Connection(.memory)) }
        try connection.rollback()
        expect(.misuse) { try connection.backup(to: connection) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store.db"])
    }

    @Test func `a file of another profile is loaded into memory, and not into a file`() throws {
        let other = try Self.open(folder.path("old.db"), profile: .sqlcipher3)
        try Self.fill(other, "of old")
        let memory = try Connection(.memory)
        try memory.load(from: folder.path("old.db"), key: .numbered(1))
        #expect(try text(memory) == "of old")
        #expect(memory.profile == .sqlcipher3)
        expect(.mismatch) { try connection.load(from: folder.path("old.db"), key: .numbered(1)) }
        expect(.mismatch) { try memory.backup(to: connection) }
        #expect(try text(connection) == "original")
    }

    @Test func `a busy target is .busy and unchanged`() throws {
        let target = try Connection(
            path: folder.path("busy.db"), key: .numbered(1), configuration: .impatient(.delete))
        try Self.fill(target, "kept")
        let holder = try Self.open(folder.path("busy.db"))
        try holder.begin()
        let memory = try Connection(.memory)
        try connection.backup(to: memory)
        expect(.busy) { try memory.backup(to: target) }
        try holder.rollback()
        #expect(try text(target) == "kept")
        try memory.backup(to: target)
        #expect(try text(target) == "original")
        let reader = try Connection(
            path: folder.path("busy.db"), key: .numbered(1), mode: .readOnly,
            configuration: .testing(.delete))
        expect(.readOnly) { try memory.backup(to: reader) }
    }

    @Test func `damage in the source is an error, and no zeros are copied`() throws {
        let size = try #require(connection.profile).pageByteCount
        let end = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        // The last overflow page is damaged: the engine copies zeros and reports success.
        try Damage.flip(path, at: (end - 1) * size + 10)
        let source = try Self.open(path)
        for target in [try Connection(.memory), try Self.open(folder.path("other.db"))] {
            try Self.fill(target, "kept")
            expect(.damaged) { try source.backup(to: target) }
            expect(.damaged) { try target.load(from: path, key: .numbered(1)) }
            #expect(try text(target) == "kept")
        }
        expect(.damaged) { try source.save(to: folder.path("saved.db"), key: .numbered(1)) }
        #expect(!FileManager.default.fileExists(atPath: folder.path("saved.db")))
    }
}
