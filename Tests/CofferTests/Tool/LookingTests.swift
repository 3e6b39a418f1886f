// A process that opens a store in WAL mode for reading only leaves its own `-wal` and `-shm` next
// to it. After `coffer status` by another user of the group the owner's program got "Permission
// denied".

import Foundation
import Testing

@testable import Coffer

/// Looking at a store leaves nothing behind, and locks nobody out.
@Suite(.againstHanging, .onOwnThreads) struct LookingTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Runs all verbs, and expects that each succeeds and leaves everything as it was.
    private func look(under wrapper: [String] = []) throws {
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            let output = try ReadingVerbs.run(verb, path, under: wrapper)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
            #expect(try folder.content() == before, "\(verb)")
        }
    }

    /// A store whose WAL has content, and no WAL index.
    private func makeWithWAL() throws {
        let original = try TemporaryFolder()
        let connection = try Connection(
            path: original.path(), key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE t(v)")
        try connection.transaction {
            try connection.makeBucket("b", keyType: .text, codec: "sql")
        }
        // Another process copies, because a descriptor here would drop SQLite's locks.
        let copied = try Tool.runProgram(
            ["cp", original.path(), original.path() + "-wal", folder.url.path])
        try #require(copied.exitCode == 0)
        connection.close()
    }

    @Test(arguments: journalModes)
    func `the owner leaves nothing behind`(mode: Configuration.JournalMode) throws {
        try ReadingVerbs.make(path, mode)
        try look()
    }

    @Test func `a WAL with content stays as it is`() throws {
        try makeWithWAL()
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            #expect(try ReadingVerbs.run(verb, path).exitCode == 0)
            let after = try folder.content().filter { $0.key != "store.db-shm" }
            #expect(after == before, "\(verb)")
        }
    }

    @Test(
        .enabled(if: OtherUser.isPlayable, OtherUser.reason),
        arguments: journalModes, [0o640, 0o660])
    func `another user of the group leaves nothing behind`(
        mode: Configuration.JournalMode, permissions: Int
    ) throws {
        try ReadingVerbs.make(path, mode)
        try OtherUser.giveAway(folder, file: permissions, folder: 0o770)
        try look(under: OtherUser.sharing)
        // The files that it makes belong to the group, so the owner could use them.
        try look(under: OtherUser.inGroup)
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `another user does not make the index of a WAL, and learns who may`() throws {
        try makeWithWAL()
        try OtherUser.giveAway(folder, file: 0o660, folder: 0o770)
        let before = try folder.content()
        for verb in ReadingVerbs.all {
            let output = try ReadingVerbs.run(verb, path, under: OtherUser.sharing)
            #expect(output.exitCode == 21, "\(verb)")
            #expect(output.errorText.contains("WAL"))
            #expect(output.errorText.contains(OtherUser.owner))
            #expect(try folder.content() == before)
        }
        // As a member of the group it may.
        #expect(try ReadingVerbs.run("sql", path, under: OtherUser.inGroup).exitCode == 0)
    }

    // MARK: Without permission to write

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason), arguments: journalModes)
    func `a file and a folder with read permission are enough`(
        mode: Configuration.JournalMode
    ) throws {
        try ReadingVerbs.make(path, mode)
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o555)
        try look(under: OtherUser.stranger)
        let said = try ReadingVerbs.run("status", path, under: OtherUser.stranger).text
        #expect(said.contains("journal mode"))
        #expect(said.contains(mode.description))
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason), arguments: journalModes)
    func `the owner of a file without write permission leaves nothing behind either`(
        mode: Configuration.JournalMode
    ) throws {
        try ReadingVerbs.make(path, mode)
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o755)
        try look(under: OtherUser.themselves)
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `damage is found there too, and a WAL that cannot be read is named`() throws {
        try ReadingVerbs.make(path, .wal, rowCount: 200)
        try Damage.flip(path, at: 5 * 4096 + 100)
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o555)
        let output = try ReadingVerbs.run("verify", path, under: OtherUser.stranger)
        #expect(output.exitCode == 14)
        #expect(output.text.contains("page 6"))

        try FileManager.default.removeItem(atPath: path)
        try makeWithWAL()
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o555)
        let refused = try ReadingVerbs.run("verify", path, under: OtherUser.stranger)
        #expect(refused.exitCode == 21)
        let byteCount = try Damage.byteCount(path + "-wal")
        #expect(refused.errorText.contains("\(byteCount) bytes"))
        #expect(refused.stdout.isEmpty)
    }

    /// Runs a command where a copy of the store is on a disk without a free byte.
    private func onFullDisk(_ files: String) -> [String] {
        let script = """
            mount -t tmpfs -o size=1m tmpfs "$1" && cd "$2" \
            && cp --preserve=timestamps \(files) "$1" \
            && { cat /dev/zero >"$1/rest" 2>/dev/null; shift 2; "$@"; }
            """
        return ["unshare", "-Urm", "sh", "-c", script, "sh", mount, folder.url.path]
    }

    private var mount: String { folder.path("mount") }

    @Test(.onSmallDisk, arguments: journalModes)
    func `a full disk keeps nobody from reading`(mode: Configuration.JournalMode) throws {
        try ReadingVerbs.make(path, mode)
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        for verb in ["status", "sql", "export", "verify"] {
            let output = try ReadingVerbs.run(
                verb, mount + "/store.db", under: onFullDisk("store.db"))
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
        }
    }

    @Test(.onSmallDisk) func `a full disk keeps a WAL from being read, and is named`() throws {
        try makeWithWAL()
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let output = try ReadingVerbs.run(
            "sql", mount + "/store.db", under: onFullDisk("store.db store.db-wal"))
        #expect(output.exitCode == 17, "\(output.errorText)")
        #expect(output.errorText.contains("No space left"))
        #expect(output.errorText.contains(mount + "/store.db: the disk is full"))
    }

    @Test(.onSmallDisk, arguments: journalModes)
    func `a medium that cannot be written is enough`(mode: Configuration.JournalMode) throws {
        try ReadingVerbs.make(path, mode)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
        let mount = folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let script = """
            mount -t tmpfs tmpfs "$1" && cp --preserve=timestamps "$2" "$1/store.db" \
            && mount -o remount,ro "$1" && shift 2 && exec "$@"
            """
        let wrapper = ["unshare", "-Urm", "sh", "-c", script, "sh", mount, path]
        for verb in ["status", "sql", "export", "verify"] {
            let output = try ReadingVerbs.run(verb, mount + "/store.db", under: wrapper)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
        }
        let written = try Tool.run(
            ["sql", mount + "/store.db", "DELETE FROM t", "--write", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], under: wrapper)
        #expect(written.exitCode == 21)
    }
}
