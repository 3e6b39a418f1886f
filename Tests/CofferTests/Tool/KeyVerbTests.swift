import Foundation
import Testing

@testable import Coffer

/// `coffer init --keyring` and `coffer key`: the credentials of a store, from a shell.
@Suite(.againstHanging, .onOwnThreads) struct KeyVerbTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        try write(String(repeating: "07", count: 32) + "\n", "first")
        try write("open sesame\n", "words")
        try write("new words\n", "second")
    }

    private func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: folder.path(name)))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: folder.path(name))
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOf: URL(filePath: folder.path(name)), encoding: .utf8)
    }

    /// A key file, because deriving a passphrase takes a second in a debug build.
    private var first: [String] { ["--key-file", folder.path("first")] }
    private var words: [String] { ["--passphrase-file", folder.path("words")] }
    private var second: [String] { ["--passphrase-file", folder.path("second")] }

    @discardableResult
    private func run(
        _ arguments: [String], exitCode: Int32 = 0, input: Data = Data(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(arguments, input: input)
        #expect(
            output.exitCode == exitCode, "\(output.errorText)", sourceLocation: sourceLocation)
        return output
    }

    private func make(
        _ options: [String] = ["--no-recovery-key"], by secret: [String]? = nil
    ) throws {
        try run(["init", path, "--keyring"] + options + (secret ?? first))
    }

    private func opens(_ secret: [String]) throws -> Bool {
        let code = try Tool.run(["status", path, "--test-key"] + secret).exitCode
        #expect([0, 12].contains(code))
        return code == 0
    }

    private func slots() throws -> [KeySlot] { try Keyring(of: path).slots }

    // MARK: Making

    @Test func `a store with a keyring has the passphrase and a recovery key as slots`() throws {
        try make(["--recovery-key-out", folder.path("paper")], by: words)
        #expect(try slots().map(\.kind) == [.passphrase, .recoveryKey])
        #expect(try opens(words))
        let letters = try Data(contentsOf: URL(filePath: folder.path("paper")))
        let tested = try run(
            ["key", "test", path, "--recovery-key-fd", "0", "--json"], input: letters)
        #expect(tested.text.contains("\"kind\":\"recovery-key\""))
        let permissions = try FileManager.default.attributesOfItem(atPath: folder.path("paper"))
        #expect(permissions[.posixPermissions] as? Int == 0o600)
    }

    @Test func `without a terminal for the recovery key no store is made`() throws {
        try run(["init", path, "--keyring"] + first, exitCode: 19)
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(!FileManager.default.fileExists(atPath: path + ".keyring"))
    }

    @Test(arguments: [
        ["--raw-key-fd", "0", "--keyring"], ["--key-file", "x"], ["--no-recovery-key"],
        ["--keyring", "--unwrap-command", "x"], ["--recovery-key-out", "x"],
        ["--keyring", "--no-recovery-key", "--recovery-key-out", "x"],
    ])
    func `options of a keyring that do not fit are wrong usage`(options: [String]) throws {
        try run(["init", path] + options, exitCode: 2)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `every verb that reads takes a credential of the keyring`() throws {
        try make()
        try run(["sql", path, "CREATE TABLE t(id INTEGER PRIMARY KEY, v)", "--write"] + first)
        try run(["key", "make-file", folder.path("file")])
        let file = ["--key-file", folder.path("file")]
        try run(["key", "add", path, "--new-key-file", folder.path("file")] + first)
        for verb in ["status", "sql", "kv", "export", "shell-key", "verify", "backup", "decrypt"] {
            let copy = folder.path("copy-\(verb)")
            let arguments =
                switch verb {
                case "sql": ["sql", path, "SELECT count(*) FROM t"]
                case "kv": ["kv", "list", path]
                case "shell-key": ["shell-key", path, "--reveal"]
                case "backup": ["backup", path, copy]
                case "decrypt": ["decrypt", path, copy, "--write-plaintext"]
                default: [verb, path]
                }
            try run(arguments + file)
        }
        #expect(try Keyring(of: folder.path("copy-backup")).slots.count == 2)
    }

    // MARK: Slots

    @Test func `a passphrase is added, changed and removed`() throws {
        try make()
        try run(
            ["key", "add", path, "--label", "ops", "--new-passphrase-file", folder.path("second")]
                + first)
        #expect(try slots().map(\.label) == ["first", "ops"])
        #expect(try opens(second))
        try write("third words", "third")
        try run(
            ["key", "change", path, "2", "--new-passphrase-file", folder.path("third")] + first)
        #expect(try !opens(second))
        #expect(try opens(["--passphrase-file", folder.path("third")]))
        let removed = try run(["key", "remove", path, "2"] + first)
        #expect(removed.text.contains("kept a copy of the keyring"))
        #expect(try !opens(["--passphrase-file", folder.path("third")]))
        try run(["key", "remove", path, "1"] + first, exitCode: 13)
        try run(["key", "remove", path, "9"] + first, exitCode: 10)
        #expect(try opens(first))
    }

    @Test func `a store is not made next to a keyring that is there already`() throws {
        try make()
        try FileManager.default.moveItem(atPath: path, toPath: folder.path("moved"))
        let keyring = try Data(contentsOf: URL(filePath: path + ".keyring"))
        for option in [["--keyring", "--no-recovery-key"], []] {
            let output = try run(["init", path] + option + words, exitCode: 22)
            #expect(output.errorText.contains("\(path).keyring exists already"))
        }
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == keyring)
    }

    @Test func `a change without a number replaces no credential but a passphrase`() throws {
        try make(by: words)
        try run(["key", "make-file", folder.path("file")])
        try run(["key", "add", path, "--new-key-file", folder.path("file")] + words)
        let new = ["--new-passphrase-file", folder.path("second")]
        let file = ["--key-file", folder.path("file")]
        let output = try run(["key", "change", path] + new + file, exitCode: 2)
        #expect(output.errorText.contains("the key file of slot 2"))
        #expect(try opens(file))
        // A passphrase that was forgotten.
        try run(["key", "change", path, "1"] + new + file)
        #expect(try opens(second))
        #expect(try !opens(words))
    }

    @Test func `a store that has lost its keyring is told to look for it`() throws {
        try make()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        let output = try run(["status", path, "--test-key"] + words, exitCode: 12)
        #expect(output.errorText.contains("If it had a keyring, put \(path).keyring next to it"))
    }

    @Test func `a copy on standard output is without its keyring, and that is said`() throws {
        try make()
        let output = try run(["backup", path, "-"] + first)
        #expect(output.errorText.contains("coffer key backup \(path) FILE"))
        try write("other\n", "other")
        let other = try run(
            ["backup", path, "-", "--new-passphrase-file", folder.path("other")] + first)
        #expect(!other.errorText.contains("coffer key backup"))
    }

    @Test func `a change without a number changes the slot of the current passphrase`() throws {
        try make(by: words)
        let before = try Data(contentsOf: URL(filePath: path))
        try run(["key", "change", path, "--new-passphrase-file", folder.path("second")] + words)
        #expect(try slots().map(\.id) == [1])
        #expect(try opens(second))
        #expect(try !opens(words))
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        try write("new words\n", "same")
        let same = try run(
            ["key", "change", path, "--new-passphrase-file", folder.path("same")] + second,
            exitCode: 22)
        #expect(same.errorText.contains("slot 1 is for this credential already"))
    }

    @Test func `the command for a passphrase is told the store`() throws {
        try make(by: words)
        let command = "env > '\(folder.path("seen"))'; cat '\(folder.path("words"))'"
        try run(["status", path, "--test-key", "--passphrase-command", command])
        let lines = try text("seen").split(separator: "\n").map(String.init)
        #expect(lines.contains("COFFER_PATH=\(path)"))
        #expect(try lines.contains("COFFER_STORE_ID=\(Keyring(of: path).storeID)"))
        #expect(lines.contains { $0.hasPrefix("HOME=") })
        // The variables of the caller name another store, so the command does not inherit them.
        let new = folder.path("new.db")
        let made = try Tool.runProgram(
            [Tool.executable.path, "init", new, "--passphrase-command", command],
            environment: ["COFFER_STORE_ID": "7", "COFFER_SLOT_ID": "7", "COFFER_PATH": "7"])
        #expect(made.exitCode == 0, "\(made.errorText)")
        let names = try text("seen").split(separator: "\n").filter {
            $0.hasPrefix("COFFER_") && !$0.hasPrefix("COFFER_TEST_")
        }
        #expect(names == ["COFFER_PATH=\(new)"])
        try run(
            ["status", path, "--test-key", "--passphrase-command", "cat \"$COFFER_PATH\""],
            exitCode: 12)
    }

    @Test func `a recipient is added by the public key, and opens by the identity`() throws {
        try make()
        let identity = folder.path("identity")
        try write(try run(["key", "make-identity", identity]).text, "recipient")
        try run(["key", "add", path, "--recipient", folder.path("recipient")] + first)
        #expect(try opens(["--identity-file", identity]))
        let shown = try run(["key", "make-identity", identity, "--show"])
        #expect(try shown.text == text("recipient"))
        let listed = try run(["key", "list", path, "--json"])
        let fingerprint = try #require(
            shown.errorText.firstMatch(of: /^coffer: fingerprint: (\w{16})\n$/))
        #expect(listed.text.contains("\"\(fingerprint.1)\""), "\(listed.text)")
        try run(["key", "make-identity", folder.path("recipient"), "--show"], exitCode: 19)
        #expect(try text("identity").hasPrefix("IDENTITY-"))
        #expect(try text("recipient").hasPrefix("RECIPIENT-"))
    }

    @Test func `a private key in place of the public one is refused`() throws {
        try make()
        let identity = folder.path("identity")
        try run(["key", "make-identity", identity])
        let before = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let output = try run(
            ["key", "add", path, "--recipient", identity] + first, exitCode: 19)
        #expect(output.errorText.contains("RECIPIENT-"))
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == before)
    }

    @Test func `a service wraps and unwraps the secret of an external slot`() throws {
        try make()
        let wrap = "tr '\\000-\\377' '\\001-\\377\\000' | tee '\(folder.path("wrapped"))'"
        try run(["key", "add", path, "--label", "kms", "--wrap-command", wrap] + first)
        let unwrap = "env > '\(folder.path("seen"))'; tr '\\001-\\377\\000' '\\000-\\377'"
        #expect(try opens(["--unwrap-command", unwrap]))
        let wrapped = try Data(contentsOf: URL(filePath: folder.path("wrapped")))
        #expect(wrapped.count == 32)
        #expect(try Keyring(of: path).blob(of: 2) == Array(wrapped))
        let names = try text("seen").split(separator: "\n").map { $0.prefix { $0 != "=" } }
        // The shell adds PWD and the like.
        let given = Set(names).subtracting(["PWD", "SHLVL", "_", "OLDPWD"])
        #expect(given == ["PATH", "COFFER_PATH", "COFFER_STORE_ID", "COFFER_SLOT_ID"])
        #expect(try text("seen").contains("COFFER_SLOT_ID=2"))
    }

    @Test(arguments: [
        ("cat", "as it was"), ("base64 -w0", "as it was"), ("(echo x; base64)", "as it was"),
        ("od -An -v -tx1 | tr -d ' \\n' | tr a-f A-F", "as it was"), ("od -tx1", "as it was"),
        ("base32 | fold -w 7", "as it was"), ("base64 | tr '+/' '-_'", "as it was"),
        ("true", "wrote nothing"),
        ("exit 3", "exit code 3"),
        ("head -c 5000 /dev/zero", "more than"), ("head -c 703 /dev/zero", "702"),
    ])
    func `a wrap command that does not wrap is refused, and nothing is written`(
        command: String, said: String
    ) throws {
        try make()
        let before = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let output = try Tool.run(["key", "add", path, "--wrap-command", command] + first)
        #expect(output.exitCode != 0)
        #expect(output.errorText.contains(said), "\(output.errorText)")
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == before)
    }

    private static let wrap = "tr '\\000-\\377' '\\001-\\377\\000'"
    private static let unwrap = "tr '\\001-\\377\\000' '\\000-\\377'"

    @Test(arguments: ["cat", "true", "exit 3", "head -c 33 /dev/zero"])
    func `a secret that the new command does not unwrap gets no slot`(command: String) throws {
        try make()
        let before = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let proof = ["--wrap-command", Self.wrap, "--new-unwrap-command", command]
        for verb in [["add", path], ["change", path, "1"]] {
            try run(["key"] + verb + proof + first, exitCode: 19)
        }
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == before)
    }

    @Test func `the only certain credential is replaced by a proven one alone`() throws {
        try make()
        let wrap = ["--wrap-command", Self.wrap]
        try run(["key", "change", path, "1"] + wrap + first, exitCode: 13)
        #expect(try opens(first))
        let proof = ["--new-unwrap-command", Self.unwrap]
        let output = try run(["key", "change", path, "1"] + wrap + proof + first)
        #expect(!output.errorText.contains("nothing has unwrapped"))
        #expect(try opens(["--unwrap-command", Self.unwrap]))
        #expect(try !opens(first))
    }

    @Test func `a command that wraps sees no open file of the tool`() throws {
        try make(by: words)
        let seen = folder.path("seen")
        let wrap = "for fd in /proc/self/fd/*; do readlink $fd; done > '\(seen)'; " + Self.wrap
        let output = try Tool.run(
            ["key", "add", path, "--wrap-command", wrap, "--passphrase-fd", "7"],
            descriptors: [7: Data("open sesame".utf8), 8: Data("secret".utf8)])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("nothing has unwrapped"))
        let files = try text("seen").split(separator: "\n")
        #expect(files.count { $0.hasPrefix("pipe:") || $0.hasPrefix(folder.url.path) } <= 3)
        #expect(!files.contains { $0.contains("store.db") })
    }

    @Test(.enabled(if: isLongRun))
    func `a command that closes its output and goes on is killed after 30 seconds`() throws {
        try make()
        let start = ContinuousClock.now
        let wrap = Self.wrap + "; exec >&-; sleep 100"
        let output = try run(["key", "add", path, "--wrap-command", wrap] + first, exitCode: 19)
        #expect(output.errorText.contains("was killed"))
        #expect(start.duration(to: .now) < .seconds(80))
    }

    @Test(arguments: [["add"], ["test"], ["remove", "1"], ["change", "1"], ["export-root"]])
    func `a raw key is not a credential of a keyring, nor is a passphrase without one`(
        verb: [String]
    ) throws {
        try make()
        let verb = ["key", verb[0], path] + verb.dropFirst()
        let raw = try run(verb + ["--raw-key-fd", "0"], exitCode: 19)
        #expect(raw.errorText.contains("not a credential"))
        try FileManager.default.removeItem(atPath: path + ".keyring")
        let lost = try run(verb + words, exitCode: 15)
        #expect(lost.errorText.contains("there is no keyring"))
    }

    @Test func `a variable names no credential that init would not take`() throws {
        try run(["key", "make-file", folder.path("file")])
        for verb in [["init", path], ["init", path, "--json"]] {
            let output = try Tool.run(
                verb, environment: ["COFFER_KEY_FILE": folder.path("file")])
            #expect(output.exitCode == 2)
        }
        #expect(try !Keyring.exists(for: path))
    }

    @Test func `a restored keyring names the slots that come back`() throws {
        try make()
        try run(["key", "make-file", folder.path("file")])
        let new = ["--new-key-file", folder.path("file"), "--label", "leaver"]
        try run(["key", "add", path] + new + first)
        try run(["key", "backup", path, folder.path("copy")] + first)
        try run(["key", "remove", path, "2"] + first)
        let before = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let rehearsed = try run(
            ["key", "restore", folder.path("copy"), path, "--dry-run"] + first)
        let unchanged = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let output = try run(["key", "restore", folder.path("copy"), path] + first)
        #expect(
            output.errorText.contains("slot 2 (leaver), which was removed, opens the store again"))
        #expect(
            rehearsed.errorText.contains(
                "slot 2 (leaver), which was removed, would open the store again"))
        #expect(unchanged == before)
        #expect(output.text.contains("slot 2: key file") || output.text.contains("key-file"))
        let again = try run(["key", "restore", folder.path("copy"), path] + first)
        #expect(!again.errorText.contains("slot 2"))
    }

    @Test(arguments: [("printf abc", 19), ("exit 4", 19), ("head -c 32 /dev/zero", 12)])
    func `an unwrap command with another answer opens nothing`(
        command: String, exitCode: Int
    ) throws {
        try make()
        try run(
            ["key", "add", path, "--wrap-command", "tr '\\000-\\377' '\\001-\\377\\000'"] + first)
        try run(
            ["key", "test", path, "--unwrap-command", command], exitCode: Int32(exitCode))
    }

    @Test func `an unwrap command needs an external slot, and a number if there are several`()
        throws
    {
        try make()
        try run(["key", "test", path, "--unwrap-command", "cat"], exitCode: 19)
        let wrap = "tr '\\000-\\377' '\\001-\\377\\000'"
        for _ in 0..<2 { try run(["key", "add", path, "--wrap-command", wrap] + first) }
        let unwrap = ["--unwrap-command", "tr '\\001-\\377\\000' '\\000-\\377'"]
        let output = try run(["key", "test", path] + unwrap, exitCode: 19)
        #expect(output.errorText.contains("2, 3"))
        #expect(try opens(unwrap + ["--unwrap-slot", "3"]))
    }

    // The test reads standard error to its end. A program that is left would keep it open.
    @Test(arguments: [("kill -TERM $PPID; wait", 130), ("wait", 19)])
    func `an unwrap command ends with the programs that it has started`(
        rest: String, exitCode: Int
    ) throws {
        try make()
        try run(["key", "add", path, "--wrap-command", Self.wrap] + first)
        try run(
            ["key", "test", path, "--unwrap-command", "sleep 1000 & \(rest)"],
            exitCode: Int32(exitCode))
    }

    @Test(arguments: [["--key-file", "first"], ["--passphrase-file", "words"]])
    func `a keyring is not taken for a store`(secret: [String]) throws {
        try make()
        let output = try run(
            ["verify", path + ".keyring", secret[0], folder.path(secret[1])], exitCode: 16)
        #expect(output.errorText.contains("\(path).keyring is a keyring"))
        #expect(!output.errorText.contains("keyring.keyring"))
    }

    @Test func `letters of another kind are refused with the name of their file`() throws {
        try make()
        let (identity, recipient) = (folder.path("identity"), folder.path("recipient"))
        try Data(try run(["key", "make-identity", identity]).text.utf8)
            .write(to: URL(filePath: recipient))
        let output = try run(["key", "add", path, "--recipient", identity] + first, exitCode: 19)
        #expect(output.errorText.contains("\(identity): the public key of a recipient begins"))
        try run(["key", "add", path, "--recipient", recipient] + first)
        try run(["key", "test", path, "--identity-file", recipient], exitCode: 19)
    }

    @Test func `a credential from the same file as the current secret is refused`() throws {
        try make()
        try run(
            ["key", "add", path, "--new-passphrase-file", folder.path("first")] + first,
            exitCode: 19)
    }

    // MARK: Copies

    @Test func `a lost keyring is put back from a copy, and rebuilt from a root backup`() throws {
        try make()
        try run(["sql", path, "CREATE TABLE t(v)", "--write"] + first)
        try run(["key", "backup", path, folder.path("copy")] + first)
        try run(["key", "export-root", path, "--out", folder.path("root")] + first)
        #expect(try text("root").hasPrefix("ROOT-"))
        #expect(try Keyring(of: path).rootBackups.count == 1)
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try run(["key", "list", path], exitCode: 15)
        try run(["status", path, "--key-file", folder.path("copy")], exitCode: 19)
        let swapped = try run(["key", "restore", path, folder.path("copy")] + first, exitCode: 2)
        #expect(swapped.errorText.contains("Name the copy first"))
        let asked = try run(["key", "rebuild", path], exitCode: 19)
        #expect(asked.errorText.contains("--root-backup-file"))

        try run(["key", "restore", folder.path("copy"), path] + second, exitCode: 12)
        try run(["key", "restore", folder.path("copy"), path] + first)
        #expect(try opens(first))

        let letters = try Data(contentsOf: URL(filePath: folder.path("root")))
        let rebuilt = try run(
            [
                "key", "rebuild", path, "--root-backup-fd", "0", "--new-passphrase-file",
                folder.path("second"), "--json",
            ], input: letters)
        #expect(rebuilt.text.contains(".keyring.old-1"))
        #expect(rebuilt.errorText.contains("slot 1 (first) no longer opens the store"))
        #expect(
            try Keyring(of: path).rootMade == Keyring(contentsOf: path + ".keyring.old-1").rootMade)
        #expect(try opens(second))
        #expect(try !opens(first))
    }

    @Test func `a slip in a root backup is found`() throws {
        try make()
        try run(["key", "export-root", path, "--out", folder.path("root")] + first)
        let letters = try text("root")
        let slip = letters.replacing(/\w{4}-\w{4}\n/) { match in
            String(match.output.reversed().drop { $0 == "\n" })
        }
        try #require(slip != letters)
        try run(
            [
                "key", "rebuild", path, "--root-backup-fd", "0", "--new-passphrase-file",
                folder.path("second"),
            ], exitCode: 19, input: Data(slip.utf8))
        #expect(try opens(first))
    }

    private func changeKeyring(
        _ change: (inout KeyringContent, borrowing RootKey) -> Void
    ) throws {
        let keyring = KeyringFile(of: try FileLocation(path))
        let credential = KeyCredential.keyFile([UInt8](repeating: 7, count: 32))
        let unlocked = try #require(try keyring.areas()).unlocked(
            by: credential, memoryMax: KeyringFixture.memoryMax)
        let lock = try KeyringLock(keyring, timeout: .seconds(10))
        try lock.change(under: unlocked.root) { content in change(&content, unlocked.root) }
    }

    @Test func `the ages of the root and of the key are told in days`() throws {
        try make()
        let now = Int64(Date.now.timeIntervalSince1970)
        try changeKeyring { content, _ in
            content.rootMade = now - 86_400 * 100 - 60
            content.epochMade = now - 86_400 - 60
        }
        let output = try run(["status", path])
        #expect(output.text.contains(", 100 days old, never shown"))
        #expect(output.text.contains(", 1 day old\n"))
        let json = try run(["key", "list", path, "--json"]).text
        #expect(json.contains("\"rootAge\":100") && json.contains("\"keyAge\":1"))
        try changeKeyring { content, _ in
            (content.rootMade, content.epochMade) = (.max, .min)
        }
        let strange = try run(["status", path])
        #expect(strange.text.contains(", in the future, never shown"))
    }

    @Test func `an older file than its keyring opens only when that is asked for`() throws {
        try make()
        try changeKeyring { content, root in
            content.epoch = 9
            content.highestEpoch = 9
            content.keyID = root.dataKey(epoch: 9, id: content.id).id().bytes
        }
        let output = try run(["status", path] + first, exitCode: 15)
        #expect(output.errorText.contains("--accept-older-file"), "\(output.errorText)")
        try run(["status", path, "--accept-older-file"] + first)
    }

    @Test func `rekey refuses a store with a keyring, and makes none`() throws {
        try make()
        let new = ["--new-passphrase-file", folder.path("second")]
        let refused = try run(["rekey", path] + new + first, exitCode: 2)
        #expect(refused.errorText.contains("--abandon-keyring"))
        #expect(try opens(first))
        try run(["rekey", path, "--new-keyring"] + first, exitCode: 2)
    }

    @Test func `rekey abandons a keyring, which opens earlier copies and no longer the store`()
        throws
    {
        try make()
        try run(["sql", path, "CREATE TABLE t AS SELECT 7 AS v", "--write"] + first)
        let copy = folder.path("copy.db")
        try run(["backup", path, copy] + first)
        let rekey =
            ["rekey", path, "--abandon-keyring", "--new-passphrase-file", folder.path("second")]
            + first
        #expect(try run(rekey + ["--dry-run"]).text.contains("would change the key"))
        #expect(try opens(first))
        let old = path + ".keyring.old-1"
        #expect(try run(rekey).text.contains(old))
        #expect(try !Keyring.exists(for: path))
        #expect(try run(["sql", path, "SELECT v FROM t"] + second).text.contains("7"))
        try run(["status", path, "--test-key"] + first, exitCode: 15)
        try run(["status", copy, "--test-key"] + first)
        try run(["key", "restore", old, path] + first, exitCode: 15)

        // A run that was killed before it renamed the keyring.
        try FileManager.default.moveItem(atPath: old, toPath: path + ".keyring")
        let file = try run(["key", "make-file", folder.path("stranger")])
        #expect(file.exitCode == 0)
        let stranger =
            ["rekey", path, "--abandon-keyring", "--new-passphrase-file", folder.path("second")]
            + ["--key-file", folder.path("stranger")]
        for verb in [rekey, stranger] {
            #expect(try run(verb + ["--dry-run"]).text.contains("the new one opens it already"))
        }
        #expect(try run(rekey).text.contains("changed before"))
        #expect(try !Keyring.exists(for: path))
        for verb in [rekey, stranger] {
            #expect(try run(verb + ["--dry-run"]).text.contains("the new one opens it already"))
            #expect(try run(verb).text.contains("changed before"))
        }
    }

    @Test func `a keyring whose key the store has is not abandoned by another secret`() throws {
        try make()
        let shown = try run(["shell-key", path, "--reveal"] + first).text
        let digits = try #require(shown.firstMatch(of: #/x'([0-9a-fA-F]{64})/#)).1
        try write(String(digits), "raw")
        let rekey = ["rekey", path, "--abandon-keyring", "--new-raw-key-file", folder.path("raw")]
        let refused = try run(rekey + second, exitCode: 12)
        #expect(refused.errorText.contains("the key that the keyring gives"))
        #expect(try opens(first))
    }

    @Test func `a keyring that cannot be renamed leaves the change of the key unfinished`() throws {
        try make()
        let rekey =
            ["rekey", path, "--abandon-keyring", "--new-passphrase-file", folder.path("second")]
            + first
        for number in 1...10_000 {
            try Data().write(to: URL(filePath: path + ".keyring.old-\(number)"))
        }
        let left = try run(rekey, exitCode: 18)
        #expect(left.errorText.contains("the keyring has its name still"))
        #expect(try Keyring.exists(for: path))
        try FileManager.default.removeItem(atPath: path + ".keyring.old-7")
        #expect(try run(rekey).text.contains(path + ".keyring.old-7"))
        #expect(try !Keyring.exists(for: path))
    }

    @Test func `the last slot that is certain to open the store is not removed`() throws {
        try make()
        try run(["key", "add", path, "--wrap-command", "head -c 5 /dev/urandom"] + first)
        try run(["key", "remove", path, "1"] + first, exitCode: 13)
        #expect(try opens(first))
        try run(["key", "add", path, "--wrap-command", Self.wrap] + first)
        let external = ["--unwrap-command", Self.unwrap, "--unwrap-slot", "3"]
        try run(["key", "remove", path, "1"] + external)
        try run(["key", "remove", path, "3"] + external, exitCode: 13)
        try run(["key", "remove", path, "2"] + external)
    }

    @Test func `the command that unwraps as a proof gets the number of the new slot`() throws {
        try make()
        // Both bind the secret to the number of the slot.
        let unwrap = "test \"$COFFER_SLOT_ID\" = 2 && \(Self.unwrap)"
        let add = [
            "key", "add", path, "--wrap-command", "test \"$COFFER_SLOT_ID\" = 2 && " + Self.wrap,
        ]
        try run(add + ["--new-unwrap-command", unwrap] + first)
        try run(["key", "test", path, "--unwrap-command", unwrap])
    }

    @Test func `a slot gets another name, and keeps its credential`() throws {
        try make()
        try run(["key", "rename", path, "1", "day shift"] + first)
        #expect(try slots().map(\.label) == ["day shift"])
        #expect(try opens(first))
        try run(["key", "rename", path, "9", "x"] + first, exitCode: 10)
        let long = String(repeating: "x", count: 119)
        for options in [["rename", path, "1", long], ["add", path, "--label", "a\nb"]] {
            try run(["key"] + options + first, exitCode: 2)
        }
    }

    @Test func `a copy of a keyring is listed`() throws {
        try make()
        try run(["key", "backup", path, folder.path("copy")] + first)
        let listed = try run(["key", "list", folder.path("copy")]).text
        #expect(listed.contains("key-file, first"))
        #expect(try listed.contains(Keyring(of: path).storeID))
        #expect(listed.hasPrefix("copy of a keyring:"))
        try run(["key", "list", folder.path("first")], exitCode: 15)
        try Data(repeating: 7, count: 32_768).write(to: URL(filePath: folder.path("copy")))
        let damaged = try run(["key", "list", folder.path("copy")], exitCode: 15)
        #expect(damaged.errorText.contains("is not a whole copy of one"))
    }

    @Test func `a copy and a restored store name their keyrings`() throws {
        try make()
        let copy = folder.path("copy.db")
        let copied = try run(["backup", path, copy] + first)
        #expect(copied.text.contains("keyring: \(copy).keyring\n"))
        let restored = try run(["restore", copy, path] + first)
        #expect(restored.text.contains("\(path).keyring, kept: its slots are the store's"))
        let elsewhere = folder.path("elsewhere.db")
        let made = try run(["restore", copy, elsewhere, "--json"] + first)
        #expect(made.text.contains("\"keepsKeyring\":false"))
    }

    @Test func `the keyring of another store is told from a wrong secret`() throws {
        try make()
        let other = folder.path("other.db")
        try run(["init", other, "--keyring", "--no-recovery-key"] + second)
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try FileManager.default.copyItem(atPath: other + ".keyring", toPath: path + ".keyring")
        let output = try run(["status", path, "--test-key"] + first, exitCode: 15)
        #expect(output.errorText.contains("another file"))
        try run(["key", "list", path])
        let status = try run(["status", path])
        #expect(status.errorText.contains("the keyring is that of another store"))
        #expect(try status.text.contains(#require(StoreFileStatus(path: path).storeID)))
        #expect(try status.text.contains(Keyring(of: path).storeID))
    }

    private static let letters: String = {
        let secret = SecretBytes([UInt8](repeating: 0xa5, count: 32))
        return KeyLetters.recoveryKey.withText(of: secret) { String(decoding: $0, as: UTF8.self) }
    }()

    @Test(arguments: [
        ["key", "test", letters], ["--", letters.lowercased() + "\n"],
        ["kv", "get", letters.replacing("-", with: "")],
        ["kv", "get", letters.replacing("-", with: " ")],
        ["key", "test", "--recovery-key-fd=" + letters],
        // A slip, and kinds whose check is another one.
        ["key", "test", "X" + letters.dropFirst()], ["key", "export-root", "ROOT-" + letters],
        ["key", "add", "identity-" + letters], ["revoke", "--keep", "label:ops=" + letters],
    ])
    func `letters of a key among the arguments are refused and not repeated`(
        arguments: [String]
    ) throws {
        let output = try run(arguments, exitCode: 19)
        #expect(output.errorText.contains("argument \(arguments.count) is refused"))
        let said = (output.text + output.errorText).uppercased()
        #expect(!said.contains(Self.letters.prefix(9).suffix(4)))
    }

    @Test func `letters in words are refused, and a sentence of short words is not`() throws {
        let words = Self.letters.split(separator: "-").map(String.init)
        let refused = try run(["key", "test"] + words, exitCode: 19)
        #expect(refused.errorText.contains("argument 3 is refused"))
        try make()
        let sentence = "it was the best of all the days we had in the sun"
        try run(["kv", "put", path, "b", "k", sentence] + first)
    }

    @Test func `doctor looks at the keyring of a store`() throws {
        try make()
        #expect(try run(["doctor", path]).text.contains("1 slot\n"))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: path + ".keyring")
        #expect(try run(["doctor", path]).text.contains("open to other users"))
        let file = try FileHandle(forUpdating: URL(filePath: path + ".keyring"))
        try file.write(contentsOf: Data([0]))
        try file.close()
        #expect(try run(["doctor", path]).text.contains("one of the two copies"))
        #expect(try run(["doctor", folder.url.path]).text.contains("one of the two copies"))
        try Data(repeating: 7, count: 32_768).write(to: URL(filePath: path + ".keyring"))
        let bad = try run(["doctor", path], exitCode: 1).text
        #expect(bad.contains("bad: ") && bad.contains("coffer key restore COPY \(path)"))
    }

    @Test func `doctor tells a lost and a foreign keyring, and which old ones are needed`() throws {
        try make()
        let (keyring, old) = (path + ".keyring", path + ".keyring.old-1")
        try FileManager.default.copyItem(atPath: keyring, toPath: old)
        let delete = "\(old): its slots open the store, or earlier copies of it: delete it"
        #expect(try run(["doctor", path]).text.contains(delete))
        try FileManager.default.removeItem(atPath: keyring)
        for place in [path, folder.url.path] {
            let missing = try run(["doctor", place]).text
            #expect(missing.contains("coffer key restore \(old) \(path)"))
            #expect(!missing.contains("delete it"))
        }
        let other = folder.path("other.db")
        try run(["init", other, "--keyring", "--no-recovery-key"] + first)
        try FileManager.default.copyItem(atPath: other + ".keyring", toPath: keyring)
        for place in [path, folder.url.path] {
            let foreign = try run(["doctor", place], exitCode: 1).text
            #expect(try foreign.contains("another store, \(Keyring(of: other).storeID)"))
            #expect(!foreign.contains("delete it"))
        }
        #expect(try run(["key", "list", path]).errorText.contains("another store"))
        try FileManager.default.moveItem(atPath: keyring, toPath: path + ".keyring.old-2")
        #expect(try run(["doctor", path]).text.contains("old-2: for another store"))
    }

    @Test func `a file that is no copy of a keyring is not called a damaged store`() throws {
        try make()
        let copy = folder.path("copy")
        let store = try run(["key", "restore", path, path] + first, exitCode: 25)
        #expect(store.errorText.contains("Name the keyring next to it, \(path).keyring."))
        try run(["key", "restore", folder.path("first"), path] + first, exitCode: 25)
        try run(["key", "backup", path, copy] + first)
        let refused = try run(["key", "restore", copy, path] + second, exitCode: 12)
        #expect(refused.errorText.contains("no slot of the copy \(copy)"))
        try Data(repeating: 7, count: 32_768).write(to: URL(filePath: copy))
        let damaged = try run(["key", "restore", copy, path] + first, exitCode: 14)
        #expect(damaged.errorText.contains("Name another copy"))
        #expect(
            try run(["status", path + ".keyring"]).text.contains("a keyring, or a copy of one"))
        try run(["key", "backup", path, "-"] + first, exitCode: 2)
        try run(["key", "export-root", path, "--out", folder.path("no/x")] + first, exitCode: 10)
        #expect(try Keyring(of: path).rootBackups.count == 0)
    }

    @Test func `a copy gets a keyring of its own with a new root`() throws {
        try run(["init", path] + words)
        let copy = folder.path("copy.db")
        try run(
            ["backup", path, copy, "--new-keyring", "--new-passphrase-file", folder.path("second")]
                + words)
        #expect(try Keyring(of: copy).slots.map(\.kind) == [.passphrase])
        try run(["status", copy, "--test-key"] + second)
        try run(["status", copy, "--test-key"] + words, exitCode: 12)
    }

    @Test func `a list needs no secret, and a damaged keyring is exit code 14`() throws {
        try make()
        #expect(try run(["key", "list", path]).text.contains("key-file, first"))
        try Data(repeating: 7, count: 32_768).write(to: URL(filePath: path + ".keyring"))
        try run(["key", "list", path], exitCode: 14)
        let damaged = try run(["sql", path, "SELECT 1"] + first, exitCode: 14).errorText
        #expect(damaged.contains("coffer key restore COPY \(path)"))
        #expect(!damaged.contains("coffer salvage"))
        #expect(try run(["status", path]).errorText.contains("keyring cannot be read"))
    }

    /// The SQLCipher of Python, which `Scripts/wheels` puts there.
    private static let python = Repository.root.appending(path: ".build-data/python").path

    @Test(
        .enabled(
            if: Repository.isCI || FileManager.default.fileExists(atPath: python),
            "Scripts/wheels fetches it"))
    func `Python's SQLCipher reads and writes the file by the key that shell-key prints`() throws {
        try make()
        try run(["sql", path, "CREATE TABLE t AS SELECT 1 AS v", "--write"] + first)
        let pragmas = try run(["shell-key", path, "--reveal"] + first).text
        let program = """
            import sys
            from sqlcipher3 import dbapi2
            connection = dbapi2.connect(sys.argv[1])
            for pragma in sys.stdin.read().splitlines(): connection.execute(pragma)
            connection.execute("INSERT INTO t SELECT v + 1 FROM t")
            connection.commit()
            print(connection.execute("SELECT group_concat(v) FROM t").fetchone()[0])
            """
        let output = try Tool.runProgram(
            ["python3", "-c", program, path], input: Data(pragmas.utf8),
            environment: ["PYTHONPATH": Self.python])
        #expect(output.text == "1,2\n", "\(output.errorText)")
        let query = ["sql", path, "SELECT sum(v) AS sum FROM t", "--json"]
        #expect(try run(query + first).text.contains("\"sum\":3"))
        try run(["verify", path] + first)
    }

    @Test func `the stock shell opens the file by the key that shell-key prints`() throws {
        try make()
        try run(["sql", path, "CREATE TABLE t(v)", "--write"] + first)
        let pragmas = try run(["shell-key", path, "--reveal"] + first).text
        let major = try Engine.capabilities.cipherMajorVersion
        for shell in Shell.all where shell.majorVersion == major {
            let script = pragmas + "\nINSERT INTO t VALUES (7);\nSELECT 'got ' || v FROM t;\n"
            #expect(try shell.run(script, on: path).contains("got 7"))
        }
        #expect(try run(["sql", path, "SELECT v FROM t", "--json"] + first).text.contains("7"))
    }
}
