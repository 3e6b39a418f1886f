import Foundation
import Testing

@testable import Coffer

/// `coffer rekey`: its report about the main file, running it again, and its rehearsal.
@Suite(.againstHanging, .onOwnThreads) struct RekeyVerbTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ mode: Configuration.JournalMode = .wal, rowCount: Int = 20) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, body)")
        try connection.transaction {
            for number in 0..<rowCount {
                try connection.execute("INSERT INTO t VALUES (\(number), zeroblob(2000))")
            }
        }
        connection.close()
    }

    /// Runs `coffer rekey` from one key to another one.
    private func rekey(
        _ options: String..., from old: UInt8 = 1, to new: UInt8 = 2, under wrapper: [String] = []
    ) throws -> Tool.Output {
        try Tool.run(
            ["rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4"] + options,
            descriptors: [3: Tool.key(old), 4: Tool.key(new)], under: wrapper)
    }

    private func said(_ output: Tool.Output) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: output.stdout) as? [String: Any])
    }

    private func opens(_ key: UInt8) -> Bool {
        (try? Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(.existing)))
            != nil
    }

    // MARK: The main file

    @Test(arguments: journalModes)
    func `rekey reports how many pages of the main file it counted`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let output = try rekey("--json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        let said = try said(output)
        #expect(said["isChanged"] as? Bool == true)
        #expect(said["isWholeFile"] as? Bool == true)
        #expect(said["oldPageCount"] as? Int == 0)
        #expect(said["pageCount"] as? Int ?? 0 > 10)
        #expect(said["journalMode"] as? String == mode.description)
        #expect(said["seconds"] as? Double != nil)
    }

    @Test func `during a read the main file keeps the old key: exit 18, and again until it ends`()
        throws
    {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let first = try rekey("--json")
        #expect(first.exitCode == 18)
        let said = try said(first)
        #expect(said["isChanged"] as? Bool == true)
        #expect(said["isWholeFile"] as? Bool == false)
        #expect(said["oldPageCount"] as? Int == said["pageCount"] as? Int)
        #expect(first.errorText.contains("another program is reading"))
        let alone = folder.path("alone.db")
        #expect(try Tool.runProgram(["cp", path, alone]).exitCode == 0)
        try Connection(
            path: alone, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing)
        ).close()

        let status = try ReadingVerbs.run("status", path, key: 2)
        #expect(status.text.contains("without its WAL"), "\(status.text)")

        let second = try rekey("--json")
        #expect(second.exitCode == 18)
        #expect(try self.said(second)["isChanged"] as? Bool == false)

        peer.goOn()
        #expect(peer.finish() == ["released"])
        let third = try rekey("--json")
        #expect(third.exitCode == 0, "\(third.errorText)")
        #expect(try self.said(third)["isChanged"] as? Bool == false)
        #expect(try self.said(third)["isWholeFile"] as? Bool == true)
        #expect(try FileLocation(path).hasPendingChanges == false)
        #expect(opens(2) && !opens(1))
        #expect(!(try ReadingVerbs.run("status", path, key: 2).text.contains("without its WAL")))
    }

    // MARK: Again

    @Test(arguments: journalModes)
    func `a rekey that was done before says so and succeeds`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        #expect(try rekey().exitCode == 0)
        let again = try rekey()
        #expect(again.exitCode == 0, "\(again.errorText)")
        #expect(again.text.contains("changed before"))
        #expect(try said(try rekey("--json"))["isChanged"] as? Bool == false)
        let wrong = try rekey("--json", from: 8, to: 9)
        #expect(wrong.exitCode == 12)
        #expect(wrong.stdout.isEmpty)
        #expect(try rekey(from: 8, to: 9).errorText.contains("new secret does not open it either"))
        #expect(opens(2))
    }

    // MARK: Room

    @Test(.onSmallDisk, arguments: journalModes)
    func `a disk without room for the journal is reported before anything begins`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode, rowCount: 200)
        let byteCount = try Damage.byteCount(path)
        let script = """
            mount -t tmpfs -o size=\(byteCount + 100_000) tmpfs "$1" && cp "$2" "$1/store.db" \
            && cd "$1" && shift 2 && before=$(cksum store.db); "$@"; code=$?; \
            test "$before" = "$(cksum store.db)" && echo same; ls; exit $code
            """
        let mount = folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        for option in ["--quiet", "--dry-run"] {
            let output = try Tool.run(
                ["rekey", "store.db", "--raw-key-fd", "3", "--new-raw-key-fd", "4", option],
                descriptors: [3: Tool.key(1), 4: Tool.key(2)],
                under: ["unshare", "-Urm", "sh", "-c", script, "sh", mount, path])
            #expect(output.exitCode == 17, "\(output.errorText)")
            #expect(output.text.hasSuffix("same\nstore.db\n"), "\(output.text)")
            let words = option == "--dry-run" ? "not have enough room" : "free bytes next to"
            #expect((output.text + output.errorText).contains(words))
        }
    }

    @Test(arguments: journalModes)
    func `a limit on file sizes is reported before anything begins`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode, rowCount: 200)
        let before = try Data(contentsOf: URL(filePath: path))
        for option in ["--quiet", "--dry-run"] {
            let output = try rekey(
                option, under: ["sh", "-c", "ulimit -f 64; exec \"$@\"", "sh"])
            #expect(output.exitCode == 17, "\(output.errorText)")
            #expect((output.text + output.errorText).contains("ulimit -f"), "\(option)")
        }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    /// Grows the log by all pages of the table, and returns a `ulimit -f` that a log of all pages
    /// fits, and one of two logs does not.
    private func growLog(_ connection: Connection) throws -> [String] {
        try connection.execute("UPDATE t SET body = randomblob(2000)")
        let byteCount = try Damage.byteCount(path)
        let walByteCount = try Damage.byteCount(path + "-wal")
        try #require(walByteCount > byteCount / 2)
        let limit = byteCount + walByteCount / 2
        return ["sh", "-c", "ulimit -f \(limit / 512); exec \"$@\"", "sh"]
    }

    @Test func `a limit on file sizes counts the log that a read keeps from restarting`() throws {
        try make(rowCount: 200)
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.existing))
        defer { connection.close() }
        let wrapper = try growLog(connection)
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        for option in ["--quiet", "--dry-run"] {
            let output = try rekey(option, under: wrapper)
            #expect(output.exitCode == 17, "\(option): \(output.errorText)")
            #expect((output.text + output.errorText).contains("ulimit -f"), "\(option)")
        }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(opens(1))
    }

    @Test func `a log that nobody reads makes room for the log of a rekey`() throws {
        try make(rowCount: 200)
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.existing))
        let wrapper = try growLog(connection)
        let rehearsal = try rekey("--dry-run", under: wrapper)
        #expect(rehearsal.exitCode == 0, "\(rehearsal.text)")
        let output = try rekey("--quiet", under: wrapper)
        #expect(output.exitCode == 0, "\(output.errorText)")
        connection.close()
        #expect(opens(2) && !opens(1))
    }

    // MARK: Rehearsal

    /// Every file of the folder with its bytes and its times, as `stat` reports them.
    private func traces() throws -> String {
        let script = "cd \"$0\" && stat -c '%n %s %y %z %i' * && cksum *"
        return try Tool.runProgram(["sh", "-c", script, folder.url.path]).text
    }

    private func expectRehearsal(
        _ exitCode: Int32 = 0, from old: UInt8 = 1, to new: UInt8 = 2,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [String: Any] {
        let before = try traces()
        let output = try rekey("--dry-run", "--json", from: old, to: new)
        #expect(try traces() == before, "it touched something", sourceLocation: sourceLocation)
        #expect(output.exitCode == exitCode, "\(output.errorText)", sourceLocation: sourceLocation)
        return output.stdout.isEmpty ? [:] : try said(output)
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `a rehearsal reports the state and touches nothing`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        try connection.execute("CREATE TABLE t(v)")
        let pageCount = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        let said = try expectRehearsal()
        #expect(said["dryRun"] as? Bool == true)
        #expect(said["isChanged"] as? Bool == false)
        #expect(said["profile"] as? String == profile.name)
        #expect(said["journalMode"] as? String == mode.description)
        #expect(said["pageCount"] as? Int == pageCount)
        #expect(said["neededByteCount"] as? Int ?? 0 > pageCount * profile.pageByteCount)
        #expect(said["freeByteCount"] as? Int ?? 0 > 0)
        #expect(said["isWritable"] as? Bool == true)
        #expect((said["obstacles"] as? [String])?.isEmpty == true)
        #expect((said["notes"] as? [String])?.isEmpty == true)
        #expect(try expectRehearsal(12, from: 8, to: 9).isEmpty)
        #expect(try expectRehearsal(1, from: 1, to: 1).isEmpty)
        // The rehearsal proved the keys as the real change does.
        #expect(try rekey().exitCode == 0)
        #expect(try expectRehearsal()["isChanged"] as? Bool == true)
    }

    @Test func `a rehearsal reads the newest key from the WAL`() throws {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let before = try expectRehearsal()
        let notes = try #require(before["notes"] as? [String])
        #expect(notes.contains { $0.contains("keeps the old key") }, "\(notes)")
        #expect(notes.contains { $0.contains("has the store open") }, "\(notes)")
        #expect(try rekey().exitCode == 18)
        let said = try expectRehearsal()
        #expect(said["isChanged"] as? Bool == true)
        #expect(said["isWholeFile"] as? Bool == false)
        peer.goOn()
        #expect(peer.finish() == ["released"])
    }

    @Test(arguments: journalModes)
    func `a rehearsal next to a writer ends as the change would`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        let said = try expectRehearsal(11)
        #expect((said["obstacles"] as? [String])?.isEmpty == false)
        peer.goOn()
        _ = peer.finish()
        #expect((try expectRehearsal()["obstacles"] as? [String])?.isEmpty == true)
    }

    @Test func `a rehearsal does not remove the name that a killed maker left`() throws {
        try make()
        let twin = path + ".new-0123456789abcdef"
        try FileManager.default.linkItem(atPath: path, toPath: twin)
        try Data().write(to: URL(filePath: twin + "-lock"))
        #expect((try expectRehearsal()["obstacles"] as? [String])?.isEmpty == true)
        #expect(FileManager.default.fileExists(atPath: twin))
        #expect(try rekey().exitCode == 0)
        #expect(!FileManager.default.fileExists(atPath: twin))
    }

    // MARK: A store that is not intact

    /// Reasons why both fail, with the same exit code.
    private enum Flaw: CaseIterable {
        case damagedPage, cutShort, surplus, damagedFirstPage, blankFirstPage, text, otherName
    }

    @Test(arguments: journalModes)
    func `a rehearsal of a change that cannot succeed exits as the change does`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let whole = try Data(contentsOf: URL(filePath: path))
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        for flaw in Flaw.allCases {
            // A failed change leaves files next to it that belong to the previous file.
            removeStore(path)
            try whole.write(to: URL(filePath: path))
            switch flaw {
            case .damagedPage: try Damage.flip(path, at: 5 * size + 100)
            case .cutShort: try Damage.truncate(path, to: whole.count - 3 * size)
            case .surplus: try Damage.append(path, byteCount: 100)
            case .damagedFirstPage: try Damage.flip(path, at: 200)
            case .blankFirstPage: try Damage.zero(path, at: 0, count: size)
            case .text:
                try Data(String(repeating: "some text\n", count: 999).utf8)
                    .write(to: URL(filePath: path))
            case .otherName: try FileManager.default.linkItem(atPath: path, toPath: path + ".2")
            }
            let rehearsal = try rekey("--dry-run")
            let change = try rekey()
            #expect(rehearsal.exitCode == change.exitCode, "\(flaw): \(change.errorText)")
            #expect(change.exitCode != 0 && change.exitCode != 12, "\(flaw)")
        }
    }

    @Test func `page damage after a rekey is reported as damage, however often it is run again`()
        throws
    {
        try make(.delete)
        #expect(try rekey().exitCode == 0)
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        try Damage.flip(path, at: 5 * size + 100)
        for option in ["--quiet", "--dry-run"] {
            let output = try rekey(option)
            #expect(output.exitCode == 14, "\(option): \(output.errorText)")
            #expect((output.text + output.errorText).contains("6"), "names the page")
        }
    }

    @Test func `a rehearsal reads the salt from the WAL where the first page is lost`() throws {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        #expect(try rekey().exitCode == 18)
        try Damage.blankFromOutside(path, byteCount: 512)
        let output = try rekey("--dry-run", "--json", from: 2, to: 3)
        #expect(output.exitCode == 0, "\(output.errorText)")
        peer.goOn()
        _ = peer.finish()
    }
}
