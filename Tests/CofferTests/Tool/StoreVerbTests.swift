import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct StoreVerbTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ mode: Configuration.JournalMode = .wal, rowCount: Int = 20) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        try connection.transaction {
            for number in 0..<rowCount {
                try connection.execute("INSERT INTO note VALUES (\(number), zeroblob(2000))")
            }
        }
        connection.close()
    }

    /// Runs a verb on the store with key 1 behind descriptor 3, and key 2 behind 4.
    private func coffer(
        _ verb: String, _ options: String..., key: UInt8? = 1, under wrapper: [String] = []
    ) throws -> Tool.Output {
        let secret = key == nil ? [] : ["--raw-key-fd", "3"]
        return try Tool.run(
            [verb, path] + options + secret,
            descriptors: [3: Tool.key(key ?? 0), 4: Tool.key(2)], under: wrapper)
    }

    private func json(_ data: Data) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    private func opens(_ key: UInt8) -> Bool {
        (try? Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(.existing)))
            != nil
    }

    // MARK: init

    @Test(arguments: supportedProfiles, journalModes)
    func `init makes a store of the requested profile and mode`(
        profile: CipherProfile, mode: Configuration.JournalMode
    ) throws {
        let output = try coffer(
            "init", "--profile", profile.name, "--journal-mode", mode.description, "--json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        let said = try json(output.stdout)
        #expect(said["profile"] as? String == profile.name)
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        #expect(store.profile == profile)
        #expect(store.journalMode == mode)
        try store.close()
    }

    @Test func `init overwrites nothing`() throws {
        try make()
        let before = try Data(contentsOf: URL(filePath: path))
        let output = try coffer("init")
        #expect(output.exitCode == 22)
        #expect(output.errorText.contains("exists already"))
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test func `init says when the folder is missing, and when it needs SQLCipher 4`() throws {
        let output = try Tool.run(
            ["init", folder.path("no/store.db"), "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        #expect(output.exitCode == 10)
        guard !isEngine4 else { return }
        let newer = try coffer("init", "--profile", "sqlcipher4")
        #expect(newer.exitCode == 16)
        #expect(newer.errorText.contains("SQLCipher 4"))
        #expect(!newer.errorText.contains("store.db"), "it does not exist: \(newer.errorText)")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    // MARK: status

    @Test func `status without a secret reports what can be seen, and changes nothing`() throws {
        try make()
        let before = try Data(contentsOf: URL(filePath: path))
        let output = try coffer("status", "--json", key: nil)
        #expect(output.exitCode == 0)
        let said = try json(output.stdout)
        #expect(said["format"] as? String == "encrypted")
        #expect(said["byteCount"] as? Int == before.count)
        #expect(said["content"] == nil)
        #expect((said["engineNotice"] as? String == nil) == isEngine4)
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(files == ["store.db"])
    }

    @Test(arguments: journalModes)
    func `status with the key proves it and counts rows`(mode: Configuration.JournalMode) throws {
        try make(mode)
        let output = try coffer("status", "--json")
        let content = try #require(try json(output.stdout)["content"] as? [String: Any])
        #expect(content["journalMode"] as? String == mode.description)
        let tables = try #require(content["tables"] as? [[String: Any]])
        #expect(tables.count == 1)
        #expect(tables[0]["name"] as? String == "note")
        #expect(tables[0]["rowCount"] as? Int == 20)
        let text = try coffer("status").text
        #expect(text.contains("20 rows"))
    }

    @Test func `status has an exit code for every kind of file that is not a store`() throws {
        #expect(try coffer("status", key: nil).exitCode == 10)
        try Data().write(to: URL(filePath: path))
        #expect(try coffer("status", key: nil).text.contains("empty"))
        #expect(try coffer("status").exitCode == 14)
        try Data(String(repeating: "text ", count: 500).utf8).write(to: URL(filePath: path))
        #expect(try coffer("status").exitCode == 16)
        try FileManager.default.removeItem(atPath: path)
        try RawConnection(path).run("CREATE TABLE t(v)")
        #expect(try coffer("status", key: nil).text.contains("plaintext"))
        #expect(try coffer("status").exitCode == 16)
    }

    // MARK: rekey

    @Test(arguments: journalModes)
    func `rekey changes the key and keeps the journal mode`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let output = try coffer("rekey", "--new-raw-key-fd", "4", "--json", "--progress", "json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try json(output.stdout)["pageCount"] as? Int ?? 0 > 10)
        let first = output.errorText.split(separator: "\n").first ?? ""
        #expect(try json(Data(first.utf8))["progress"] as? String == "rekey")
        #expect(opens(2))
        #expect(!opens(1))
        let after = try coffer("status", "--json", key: 2)
        let content = try #require(try json(after.stdout)["content"] as? [String: Any])
        #expect(content["journalMode"] as? String == mode.description)
    }

    @Test func `rekey with a wrong key, next to a peer or to the same key changes nothing`() throws
    {
        try make()
        #expect(try coffer("rekey", "--new-raw-key-fd", "4", key: 9).exitCode == 12)
        let peer = try Peer(["hold-write", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let busy = try coffer("rekey", "--new-raw-key-fd", "4", "--busy-timeout", "0.2")
        #expect(busy.exitCode == 11)
        peer.goOn()
        _ = peer.finish()
        #expect(try coffer("rekey", "--new-raw-key-fd", "4", key: 2).exitCode == 12)
        #expect(opens(1))
        #expect(!opens(2))
    }

    @Test func `rekey of a damaged store fails, and the old key holds`() throws {
        try make()
        try Damage.flip(path, at: 5 * 4096 + 100)
        let output = try coffer("rekey", "--new-raw-key-fd", "4", "--json")
        #expect(output.exitCode == 14)
        let error = try #require(try json(output.stderr)["error"] as? [String: Any])
        #expect(error["code"] as? String == "damaged")
        #expect(error["pages"] as? [Int] == [6])
        #expect(opens(1))
    }

    // MARK: verify

    @Test func `verify of a good store says so`() throws {
        try make()
        let output = try coffer("verify", "--progress", "json")
        #expect(output.exitCode == 0)
        #expect(output.text.contains("all good"))
        let quiet = try coffer("verify", "--quiet")
        #expect(quiet.stdout.isEmpty)
        #expect(quiet.stderr.isEmpty)
    }

    @Test func `verify of a sample reports how much it checked`() throws {
        try make()
        for sample in ["0", "0/7", "8/7", "1/0", "a/b", "1/", "/7", "-1", "1/2/3"] {
            #expect(try coffer("verify", "--sample", sample).exitCode == 2, "\(sample)")
        }
        #expect(try coffer("verify", "--sample", "1/1").text.contains("nothing wrong"))
        let output = try coffer("verify", "--sample", "3", "--json")
        let said = try json(output.stdout)
        #expect(said["pageCount"] as? Int == 3)
        #expect(said["pageCountTotal"] as? Int ?? 0 > 3)
        #expect(said["isStructureChecked"] as? Bool == false)
        #expect(try coffer("verify", "--sample", "0").exitCode == 2)
    }

    @Test func `verify of a damaged store names the page and exits with 14`() throws {
        try make()
        try Damage.flip(path, at: 5 * 4096 + 100)
        let output = try coffer("verify", "--json")
        #expect(output.exitCode == 14)
        let said = try json(output.stdout)
        #expect(said["isGood"] as? Bool == false)
        let damaged = try #require(said["damagedPages"] as? [[String: Any]])
        #expect(damaged.count == 1)
        #expect(damaged.first?["page"] as? Int == 6)
        #expect(damaged.first?["content"] as? String == "a leaf of table note")
        #expect(try coffer("verify").text.contains("page 6: a leaf of table note"))
    }

    // MARK: shell-key

    @Test(arguments: supportedProfiles)
    func `the key that shell-key reveals opens the store in the shell`(
        profile: CipherProfile
    ) throws {
        _ = try coffer("init", "--profile", profile.name)
        let lines = try coffer("shell-key", "--reveal")
        #expect(lines.exitCode == 0)
        let shells = Shell.all.filter { $0.majorVersion >= 4 || profile != .sqlcipher4 }
        for shell in shells {
            let printed = try shell.run(lines.text + "PRAGMA user_version;\n", on: path)
            #expect(printed.last == "0", "\(printed)")
        }
    }

    @Test func `shell-key reveals nothing without its confirming option`() throws {
        try make()
        let output = try coffer("shell-key")
        #expect(output.exitCode == 2)
        #expect(output.stdout.isEmpty)
        #expect(output.errorText.contains("--reveal"))
    }

    // MARK: doctor

    @Test func `doctor reports who may read the file`() throws {
        try make()
        for (mode, state) in [(0o600, "good"), (0o644, "warning")] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let output = try Tool.run(["doctor", path, "--json"])
            #expect(output.exitCode == 0)
            let checks = try #require(try json(output.stdout)["checks"] as? [[String: Any]])
            let file = checks.first { $0["name"] as? String == "file" }
            #expect(file?["state"] as? String == state)
            let engine = checks.first { $0["name"] as? String == "engine" }
            #expect(engine?["state"] as? String == (isEngine4 ? "good" : "warning"))
            let core = checks.first { $0["name"] as? String == "core dumps" }
            #expect(core?["state"] as? String == "good")
        }
    }

    // MARK: The command line

    @Test(arguments: [
        [], ["no-such-verb"], ["verify"], ["compact", "a", "b"],
        ["status", "x", "--no-such-option"],
        ["status", "x", "--passphrase-fd", "two"], ["status", "x", "--passphrase-fd", "1"],
        ["init", "x", "--profile", "none"], ["verify", "x", "--busy-timeout", "-1"],
    ])
    func `a command line that cannot be understood is exit code 2`(arguments: [String]) throws {
        let output = try Tool.run(arguments)
        // Without a verb the tool prints the overview.
        #expect(output.exitCode == (arguments.isEmpty ? 0 : 2))
        #expect(output.stdout.isEmpty == !arguments.isEmpty)
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `there is a completion script for every shell`(shell: String) throws {
        let output = try Tool.run(["--generate-completion-script", shell])
        #expect(output.exitCode == 0)
        for word in ["rekey", "passphrase-file", "doctor"] { #expect(output.text.contains(word)) }
    }

    @Test func `wrong usage is JSON where JSON is requested`() throws {
        for arguments in [
            ["upgrade", path, "--json"], ["verify", path, "--sample", "0", "--json"],
        ] {
            let output = try Tool.run(arguments)
            #expect(output.exitCode == 2)
            let error = try #require(try json(output.stderr)["error"] as? [String: Any])
            #expect(error["code"] as? String == "usage")
            #expect(output.stdout.isEmpty)
        }
    }

    @Test(arguments: [["--help"], ["--version"], ["--generate-completion-script", "bash"]])
    func `output that cannot be written is not a success`(arguments: [String]) throws {
        let tool = [Tool.executable.path] + arguments
        let full = try Tool.runProgram(["sh", "-c", "\"$@\" > /dev/full", "sh"] + tool)
        #expect(full.exitCode == 17)
        let closed = try Tool.runProgram(["sh", "-c", "\"$@\" >&-", "sh"] + tool)
        #expect(closed.exitCode == 17)
    }

    @Test func `a hint names verbs and options, not functions`() throws {
        try RawConnection(path).run("CREATE TABLE t(v)")
        #expect(try coffer("sql", "SELECT 1").errorText.contains("coffer encrypt"))
        try FileManager.default.removeItem(atPath: path)
        try make()
        let output = try coffer("sql", "PRAGMA rekey = 'x'", "--write")
        #expect(output.errorText.contains("coffer rekey"))
        let peer = try Peer(["hold-write", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let busy = try coffer("sql", "DELETE FROM note", "--write", "--busy-timeout", "0.1")
        peer.goOn()
        _ = peer.finish()
        #expect(busy.exitCode == 11)
        #expect(busy.errorText.contains("--busy-timeout"))
    }

    /// `KillDuringRekeyTests` kills it in the middle of its pages.
    @Test func `an interrupted rekey says so, and one key opens every row`() throws {
        try make()
        let peer = try Peer(["hold-write", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let tool = try Tool.start(
            [
                "rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4", "--progress", "json",
                "--busy-timeout", "100",
            ],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
        // It waits for the peer's lock, and reports progress again and again.
        try waitUntil { tool.errorText.components(separatedBy: "\"done\"").count > 3 }
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130)
        #expect(output.errorText.contains("one of the two keys"))
        #expect(output.stdout.isEmpty)
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(opens(1))
        #expect(!opens(2))
    }
}
