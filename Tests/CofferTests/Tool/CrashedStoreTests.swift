// With a rollback journal a crash leaves the file in the middle of a transaction. A connection that
// is open for reading only cannot play the journal back: every verb that reads failed, with either
// key, and the message after Ctrl-C named one of them. So did random bytes under the journal's
// name.

import Foundation
import Testing

@testable import Coffer

/// Reading a store that a crash left in the middle of a transaction.
@Suite(.againstHanging, .onOwnThreads) struct CrashedStoreTests {
    private static let rowCount = 600
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// A store whose writer was killed when pages and journal were on the disk.
    private func crash() throws {
        try ReadingVerbs.make(path, .delete, rowCount: Self.rowCount)
        let peer = try Peer(["spill", path, "1"])
        try #require(peer.line() == "ready")
        peer.kill()
        try #require(FileLocation(path).hasJournal)
    }

    private var journal: URL { URL(filePath: path + "-journal") }

    @Test(arguments: ReadingVerbs.all)
    func `every verb that reads plays back the journal of a crash`(verb: String) throws {
        try crash()
        #expect(try ReadingVerbs.run(verb, path, key: 2).exitCode == 12)
        let output = try ReadingVerbs.run(verb, path)
        #expect(output.exitCode == 0, "\(output.errorText)")
        if verb == "sql" { #expect(output.text.contains("\(Self.rowCount)")) }
        #expect(try folder.content().keys.sorted() == ["store.db"])
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        let filler = Data(repeating: 5, count: 3000)
        let kept = try connection.firstRow("SELECT count(*) FROM t WHERE v = \(filler)")
        #expect(kept?[0] == .integer(Int64(Self.rowCount)))
    }

    @Test func `a read-only store and connection play it back, and write nothing else`()
        throws
    {
        try crash()
        let crashed = try folder.content()
        let store = try Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing(.existing))
        let filler = Data(repeating: 5, count: 3000)
        #expect(
            try store.read { tx in
                try tx.firstRow("SELECT count(*) FROM t WHERE v = \(filler)")?.get(0)
            } == Self.rowCount)
        expect(.readOnly) { try store.write { tx in try tx.execute("DELETE FROM t") } }
        try store.close()

        for (name, data) in crashed { try data.write(to: folder.url.appending(path: name)) }
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing(.existing))
        let kept = try connection.firstRow("SELECT count(*) FROM t WHERE v = \(filler)")
        #expect(kept?[0] == .integer(Int64(Self.rowCount)))
        expect(.readOnly) { try connection.execute("DELETE FROM t") }
    }

    @Test(arguments: journalModes)
    func `nothing makes a read-only connection write`(
        mode: Configuration.JournalMode
    ) throws {
        try ReadingVerbs.make(path, mode)
        let before = try folder.content()
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing(.existing))
        expect(.misuse) { try connection.execute("PRAGMA query_only = OFF") }
        let statements: [SQL] = [
            "DELETE FROM t", "CREATE TABLE u(v)", "PRAGMA user_version = 7", "VACUUM", "ANALYZE",
        ]
        for sql in statements { expect(.readOnly) { try connection.execute(sql) } }
        expect(.readOnly) { try connection.checkpoint() }
        expect(.readOnly) { try connection.withWritableBlob("v", in: "t", row: 1) { _ in } }
        connection.close()
        #expect(try folder.content() == before)
    }

    @Test(arguments: journalModes, [0, 100, 4000])
    func `a file that is not a journal keeps nobody from reading`(
        mode: Configuration.JournalMode, byteCount: Int
    ) throws {
        try ReadingVerbs.make(path, mode)
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            let bytes = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) })
            try bytes.write(to: journal)
            let output = try ReadingVerbs.run(verb, path)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
            // SQLite deletes it, unless it is empty.
            try? FileManager.default.removeItem(at: journal)
            #expect(try folder.content() == before)
        }
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason), arguments: journalModes)
    func `a file that is not a journal is not touched by a user without write permission`(
        mode: Configuration.JournalMode
    ) throws {
        try ReadingVerbs.make(path, mode)
        try Data(repeating: 7, count: 4000).write(to: journal)
        try OtherUser.giveAway(folder, file: 0o644, folder: 0o755)
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            let output = try ReadingVerbs.run(verb, path, under: OtherUser.stranger)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
            #expect(try folder.content() == before)
        }
    }

    @Test(
        .enabled(if: OtherUser.isPlayable, OtherUser.reason),
        arguments: [(0o644, 0o644), (0o644, 0o600), (0o666, 0o666)])
    func `a user who must not play a journal back learns who may, and changes nothing`(
        permissions: Int, ofJournal: Int
    ) throws {
        try crash()
        // A file that may be written is not enough in a folder that may not.
        try OtherUser.giveAway(folder, file: permissions, folder: 0o755)
        try FileManager.default.setAttributes(
            [.posixPermissions: ofJournal], ofItemAtPath: journal.path)
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            let output = try ReadingVerbs.run(verb, path, under: OtherUser.stranger)
            #expect(output.exitCode == 21)
            #expect(output.errorText.contains("journal"))
            #expect(output.errorText.contains(OtherUser.owner))
            #expect(try folder.content() == before)
        }
        #expect(try ReadingVerbs.run("status", path).exitCode == 0)
    }

    @Test(.againstHanging, .onOwnThreads)
    func `an interrupted rekey is finished by the command that its message names`() throws {
        try ReadingVerbs.make(path, .delete, rowCount: 6000)
        let tool = try Tool.start(
            ["rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4"],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
        let deadline = ContinuousClock.now + .seconds(60)
        let location = try FileLocation(path)
        while location.companionByteCount("-journal") < 1 << 20, ContinuousClock.now < deadline {
            usleep(200)
        }
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect([0, 130].contains(output.exitCode))
        if output.exitCode == 130 {
            #expect(output.errorText.contains("run the same command again"))
        }
        let codes = try [UInt8(1), 2].map { try ReadingVerbs.run("status", path, key: $0).exitCode }
        #expect(codes.sorted() == [0, 12])
        let again = try Tool.run(
            ["rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4"],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
        #expect(again.exitCode == 0, "\(again.errorText)")
        #expect(try ReadingVerbs.run("status", path, key: 2).exitCode == 0)
    }
}
