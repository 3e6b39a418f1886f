import Foundation
import Testing

@testable import Coffer

/// A backup takes the place of a store, whole or not at all.
@Suite(.againstHanging, .onOwnThreads) struct RestoreTests {
    private let folder: TemporaryFolder
    private let path: String
    private let backup: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        backup = folder.path("backup.db")
    }

    private func make(
        _ path: String, _ text: String, key: UInt8, _ mode: Configuration.JournalMode = .delete
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(key), configuration: .testing(mode))
        try connection.execute("CREATE TABLE note(body)")
        try connection.execute("INSERT INTO note VALUES (\(text))")
        connection.close()
    }

    /// A store that has its newest commit in the WAL only, and nobody has it open.
    private func makeOld() throws {
        let made = folder.path("made.db")
        let connection = try Connection(
            path: made, key: .numbered(1), configuration: .testing(.wal))
        try connection.execute("CREATE TABLE note(body)")
        _ = try connection.checkpoint(.truncate)
        try connection.execute("INSERT INTO note VALUES ('old')")
        _ = try folder.copy(made, as: "store.db")
        _ = try folder.copy(made + "-wal", as: "store.db-wal")
        connection.close()
        try FileManager.default.removeItem(atPath: made)
    }

    private func body(_ path: String, key: UInt8) throws -> [[Value]] {
        let connection = try Connection(
            path: path, key: .numbered(key), mode: .mustExist,
            configuration: .testing(.existing))
        defer { connection.close() }
        return try connection.rows("SELECT body FROM note").map(\.values)
    }

    private func restore() throws -> RestoreReport {
        var configuration = Configuration.testing(.existing)
        configuration.busyTimeout = .milliseconds(20)
        return try Store.restore(
            from: backup, key: .numbered(2), to: path, configuration: configuration)
    }

    @Test(arguments: journalModes)
    func `a backup takes the place of a store, which is kept with its WAL under another name`(
        mode: Configuration.JournalMode
    ) throws {
        try makeOld()
        try make(backup, "new", key: 2, mode)
        try FileLocation(path).setPermissions(0o640)
        let report = try restore()
        let old = try #require(report.oldPath)
        #expect(old.hasSuffix("/store.db.old-1"))
        #expect(report.copy.rowCount == 1)
        #expect(try body(path, key: 2) == [[.text("new")]])
        #expect(try FileLocation(path).permissions() == 0o640)
        #expect(try body(old, key: 1) == [[.text("old")]])
        #expect(try body(backup, key: 2) == [[.text("new")]])
        #expect(try restore().oldPath?.hasSuffix(".old-2") == true)
    }

    @Test func `without a store the backup becomes one`() throws {
        try make(backup, "new", key: 2)
        #expect(try restore().oldPath == nil)
        #expect(try body(path, key: 2) == [[.text("new")]])
        // A WAL without its main file may be all that is left of a store.
        try FileManager.default.removeItem(atPath: path)
        try Data([1, 2, 3]).write(to: URL(filePath: path + "-wal"))
        expect(.damaged) { try restore() }
        #expect(FileManager.default.fileExists(atPath: path + "-wal"))
    }

    @Test func `a store that no key opens any more is replaced too`() throws {
        try Data("no store at all".utf8).write(to: URL(filePath: path))
        try make(backup, "new", key: 2)
        let old = try #require(try restore().oldPath)
        #expect(try String(contentsOfFile: old, encoding: .utf8) == "no store at all")
        #expect(try body(path, key: 2) == [[.text("new")]])
    }

    @Test func `a damaged backup, a wrong key and the store itself replace nothing`() throws {
        try make(path, "old", key: 1)
        try make(backup, "new", key: 2)
        let before = try Data(contentsOf: URL(filePath: path))
        expect(.wrongKey) {
            try Store.restore(from: backup, key: .numbered(3), to: path)
        }
        expect(.misuse) { try Store.restore(from: path, key: .numbered(1), to: path) }
        expect(.notFound) {
            try Store.restore(from: folder.path("none.db"), key: .numbered(1), to: path)
        }
        try Damage.flip(backup, at: 4096 + 100)
        expect(.damaged) { try restore() }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        #expect(
            try Set(FileManager.default.contentsOfDirectory(atPath: folder.url.path))
                == ["store.db", "backup.db"])
    }

    @Test func `a store that somebody uses is not replaced`() throws {
        try make(backup, "new", key: 2)
        for mode in journalModes {
            try make(path, "old", key: 1, mode)
            let connection = try Connection(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: .testing(.existing))
            try connection.execute("BEGIN IMMEDIATE")
            try connection.execute("INSERT INTO note VALUES ('held')")
            expect(.busy) { try restore() }
            try connection.execute("COMMIT")
            connection.close()
            let store = try Store(
                path: path, key: .numbered(1), configuration: .testing(.existing))
            expect(.alreadyOpen) { try restore() }
            try store.close()
            try FileManager.default.removeItem(atPath: path)
        }
    }

    // MARK: Steps

    private func clear() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        where name.hasPrefix("store.db") {
            try FileManager.default.removeItem(atPath: folder.path(name))
        }
    }

    @Test func `a restore that is killed at any step leaves the old content whole, or the new one`()
        throws
    {
        try make(backup, "new", key: 2)
        for stop in 0..<5 {
            try clear()
            try makeOld()
            let lines = try Peer.run(["restore-killed", path, backup, "2", "\(stop)"])
            #expect(lines == (stop < 4 ? [] : ["restored"]), "\(stop)")
            if stop < 4 {
                let whole = stop < 2 ? path : path + ".old-1"
                #expect(try body(whole, key: 1) == [[.text("old")]], "\(stop)")
            } else {
                #expect(try body(path, key: 2) == [[.text("new")]])
                #expect(try body(path + ".old-1", key: 1) == [[.text("old")]])
            }
        }
    }

    @Test func `another run goes on with the name that a killed one gave, and clears up after it`()
        throws
    {
        try make(backup, "new", key: 2)
        for stop in 0..<4 {
            try clear()
            try makeOld()
            _ = try Peer.run(["restore-killed", path, backup, "2", "\(stop)"])
            let old = try #require(try restore().oldPath)
            #expect(old == path + ".old-1", "\(stop)")
            #expect(try body(old, key: 1) == [[.text("old")]], "\(stop)")
            #expect(try body(path, key: 2) == [[.text("new")]], "\(stop)")
            #expect(
                try Set(folder.content().keys) == ["backup.db", "store.db", "store.db.old-1"])
        }
    }

    @Test func `a WAL that came after a killed run does not replace the one that has moved`() throws
    {
        try make(backup, "new", key: 2)
        try makeOld()
        let log = try Data(contentsOf: URL(filePath: path + "-wal"))
        _ = try Peer.run(["restore-killed", path, backup, "2", "2"])
        try Data([1, 2, 3]).write(to: URL(filePath: path + "-wal"))
        #expect(try restore().oldPath == path + ".old-2")
        #expect(try Data(contentsOf: URL(filePath: path + ".old-1-wal")) == log)
        #expect(try Data(contentsOf: URL(filePath: path + ".old-2-wal")) == Data([1, 2, 3]))
    }

    /// Story: a rename failed half-way, such as that of a WAL of another user in a sticky folder.
    /// The second name stayed, the WAL was at that name, and the report said that the store was as
    /// it was. Now each step that was made is undone.
    @Test(arguments: 0..<4)
    func `a step that fails is undone with those before it`(stop: Int) throws {
        try make(backup, "new", key: 2)
        try makeOld()
        // No journal of the store: only its name matters.
        try Data([1, 2, 3]).write(to: URL(filePath: path + "-journal"))
        let before = try folder.content()
        var step = 0
        let restoration = Restoration(
            configuration: .testing(.existing), monitor: CopyMonitor(progress: nil)
        ) { () throws(StoreError) in
            if step == stop { throw StoreError(.io, "stopped") }
            step += 1
        }
        expect(.io) { try restoration.run(from: backup, key: .numbered(2), to: path) }
        #expect(try folder.content() == before)
    }

    @Test func `a rename that the system refuses is undone, or the error says where the file is`()
        throws
    {
        try make(backup, "new", key: 2)
        for isStuck in [false, true] {
            try clear()
            try makeOld()
            let before = try folder.content()
            var step = 0
            let restoration = Restoration(
                configuration: .testing(.existing),
                monitor: CopyMonitor(progress: nil)
            ) { () throws(StoreError) in
                step += 1
                guard step == 4 else { return }
                for left in UnfinishedFile.all(inFolder: folder.url.path) { unlink(left.path) }
                // Nothing takes the name of a folder that has a file.
                guard isStuck else { return }
                mkdir(path + "-wal", 0o700)
                mkdir(path + "-wal/full", 0o700)
            }
            let error = expect(.io) {
                try restoration.run(from: backup, key: .numbered(2), to: path)
            }
            guard isStuck else {
                #expect(try folder.content() == before)
                continue
            }
            let moved = path + ".old-1-wal"
            #expect(
                error?.message.contains("-wal is now \(moved)") == true)
            #expect(try Data(contentsOf: URL(filePath: moved)) == before["store.db-wal"])
        }
    }

    // MARK: Other users

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `in a sticky folder, a WAL of another user ends the restore with everything as it was`()
        throws
    {
        try make(backup, "new", key: 1)
        try makeOld()
        try OtherUser.giveAway(folder, file: 0o600, folder: 0o777)
        try FileManager.default.setAttributes(
            [.ownerAccountID: 0, .posixPermissions: 0o1777], ofItemAtPath: folder.url.path)
        try FileManager.default.setAttributes(
            [.ownerAccountID: 0, .posixPermissions: 0o666], ofItemAtPath: path + "-wal")
        let before = try folder.content()
        let output = try Tool.run(
            ["restore", backup, path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)],
            under: OtherUser.themselves)
        #expect(output.exitCode == 17, "\(output.errorText)")
        #expect(output.errorText.contains("cannot rename"), "\(output.errorText)")
        #expect(try folder.content() == before)
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `a store that this user may not write is not replaced, and salvage says what that means`()
        throws
    {
        try make(backup, "new", key: 1, .wal)
        try make(path, "old", key: 1, .wal)
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o777)
        let before = try folder.content()
        let refused = try Tool.run(
            ["restore", backup, path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)],
            under: OtherUser.themselves)
        #expect(refused.exitCode == 21, "\(refused.errorText)")
        #expect(refused.errorText.contains("would go unnoticed"), "\(refused.errorText)")
        #expect(try folder.content() == before)
        let saved = try Tool.run(
            ["salvage", path, folder.path("rest.db"), "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], under: OtherUser.themselves)
        #expect(saved.exitCode == 14, "\(saved.errorText)")
        #expect(saved.text.contains("could not be locked"), "\(saved.text)")
    }
}
