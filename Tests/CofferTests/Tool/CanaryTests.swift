import Foundation
import Testing

@testable import Coffer

/// Known secrets go in, and come out nowhere: not in an argument list, the environment of a child
/// process, standard output, standard error, an error, or any file.
@Suite(.againstHanging, .onOwnThreads) struct CanaryTests {
    private static let first = "canary-first-Kj8#ü"
    private static let second = "canary-second-Qm3%é"
    /// No printable character, so that it cannot occur by chance in a text.
    private static let rawKey = Data((0..<32).map { UInt8(0x80 + $0 * 3) })

    private let folder: TemporaryFolder
    /// The secrets themselves are in files here, and nothing else is.
    private let secrets: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        secrets = try TemporaryFolder()
        path = folder.path()
        for (name, text) in [("first", Self.first), ("second", Self.second)] {
            let file = secrets.path(name)
            try Data(text.utf8).write(to: URL(filePath: file))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        }
    }

    /// All forms in which a secret could be given away.
    private func canaries(_ derived: [Data]) -> [Data] {
        let secrets = [Data(Self.first.utf8), Data(Self.second.utf8), Self.rawKey] + derived
        return secrets.flatMap { secret in
            let hex = secret.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            // Without the end, which depends on what follows.
            let base64 = secret.base64EncodedString().prefix(secret.count / 3 * 4)
            return [
                secret, Data(hex.utf8), Data(hex.uppercased().utf8), Data(base64.utf8),
                Data("\(Array(secret))".dropFirst().dropLast().utf8),
            ]
        }
    }

    /// One run of a verb: the verb, its options, and its exit code.
    private struct Run {
        let verb: [String]
        var options: [String] = []
        var exitCode: Int32 = 0
    }

    private var runs: [Run] {
        let first = ["--passphrase-file", secrets.path("first")]
        let second = ["--passphrase-file", secrets.path("second")]
        let csv = folder.path("in.csv")
        func out(_ name: String) -> String { folder.path(name) }
        return [
            Run(verb: ["init", path, "--profile", "sqlcipher3"], options: first),
            Run(verb: ["init", path], options: first, exitCode: 22),
            Run(verb: ["status", path], options: first),
            Run(verb: ["status", path], options: second, exitCode: 12),
            Run(verb: ["import", path, csv, "--table", "note"], options: first),
            Run(verb: ["import", path, csv, "--table", "note"], options: second, exitCode: 12),
            Run(verb: ["sql", path, "SELECT * FROM note"], options: first),
            Run(verb: ["sql", path, "SELECT * FROM nowhere"], options: first, exitCode: 24),
            Run(verb: ["sql", path, "PRAGMA key = 'x'", "--write"], options: first, exitCode: 24),
            Run(verb: ["export", path, "--format", "sql"], options: first),
            Run(
                verb: ["export", path, "--table", "note", "--output", out("o.csv")],
                options: first),
            Run(verb: ["kv", "put", path, "b", "k", "v"], options: first),
            Run(
                verb: ["kv", "put", path, "b", "x", "v", "--expires-after", "1h"], options: first),
            Run(verb: ["kv", "put", path, "b", "x", "v", "--raw"], options: first, exitCode: 2),
            Run(verb: ["kv", "get", path, "b", "k"], options: first),
            Run(verb: ["kv", "get", path, "b", "k", "--raw"], options: first),
            Run(verb: ["kv", "list", path, "b"], options: first),
            Run(verb: ["kv", "count", path, "b"], options: first),
            Run(verb: ["kv", "incr", path, "b", "n"], options: first),
            Run(verb: ["kv", "expire", path, "b", "k", "--after", "1h"], options: first),
            Run(
                verb: ["kv", "expire", path, "b", "none", "--never"], options: first, exitCode: 10),
            Run(
                verb: ["kv", "export", path, "b", "--output", out("b.jsonl")], options: first),
            Run(verb: ["kv", "export", path, "b"], options: second, exitCode: 12),
            Run(verb: ["kv", "import", path, "b", out("b.jsonl")], options: first, exitCode: 22),
            Run(
                verb: ["kv", "import", path, "c", out("b.jsonl"), "--key-type", "text"],
                options: first),
            Run(verb: ["kv", "buckets", path], options: first),
            Run(verb: ["kv", "delete", path, "b", "k"], options: first),
            Run(verb: ["kv", "drop", path, "b"], options: first),
            Run(verb: ["verify", path], options: first),
            Run(verb: ["checkpoint", path], options: first),
            Run(verb: ["compact", path], options: first),
            Run(verb: ["tables", path], options: first),
            Run(verb: ["schema", path], options: first),
            Run(verb: ["schema", path], options: second, exitCode: 12),
            Run(verb: ["journal-mode", path, "delete"], options: first),
            Run(verb: ["status", path, "--test-key"], options: first),
            Run(verb: ["keygen", out("new.key")]),
            Run(verb: ["compact", path], options: second, exitCode: 12),
            Run(
                verb: ["backup", path, out("backup.db")],
                options: first + ["--new-raw-key-fd", "3"]),
            Run(verb: ["upgrade", path, out("upgraded.db")], options: first),
            Run(verb: ["restore", out("upgraded.db"), out("restored.db")], options: first),
            Run(verb: ["restore", out("upgraded.db"), path], options: second, exitCode: 12),
            Run(
                verb: ["salvage", path, out("rest.db")],
                options: first + ["--new-raw-key-fd", "3"]),
            Run(verb: ["salvage", path, out("none.db")], options: second, exitCode: 12),
            Run(verb: ["decrypt", path, out("plain.db"), "--write-plaintext"], options: first),
            Run(verb: ["encrypt", out("plain.db"), out("again.db")], options: second),
            Run(verb: ["replica", "check", out("remote")]),
            Run(
                verb: ["replicate", path, out("remote"), "--once"]
                    + ["--prometheus", out("replica.prom")], options: first),
            Run(verb: ["replicate", path, out("remote"), "--once"], options: second, exitCode: 12),
            Run(verb: ["replicas", out("remote")], options: first),
            Run(verb: ["replicas", out("remote")], options: second, exitCode: 12),
            Run(verb: ["replica", "verify", out("remote")], options: first),
            Run(verb: ["replica", "purge", out("remote")], options: first),
            Run(verb: ["restore", out("remote"), out("replica.db")], options: first),
            Run(verb: ["shell-key", path], options: first, exitCode: 2),
            Run(verb: ["doctor", path]),
            Run(verb: ["rekey", path], options: first + ["--new-passphrase-command", witness]),
            Run(verb: ["rekey", path], options: first + ["--new-raw-key-fd", "3"], exitCode: 12),
            Run(verb: ["status", path], options: second),
        ] + runsOfKeys
    }

    /// Letters go into the folder of secrets, and nowhere else.
    private var runsOfKeys: [Run] {
        let first = ["--passphrase-file", secrets.path("first")]
        let second = ["--passphrase-file", secrets.path("second")]
        let keyed = folder.path("keyed.db")
        let wrap = "tr '\\000-\\377' '\\001-\\377\\000'"
        return [
            Run(
                verb: ["init", keyed, "--keyring", "--recovery-key-out", secrets.path("paper")],
                options: first),
            Run(
                verb: ["key", "add", keyed, "--new-passphrase-file", secrets.path("second")],
                options: first),
            Run(verb: ["key", "make-file", secrets.path("file")]),
            Run(
                verb: ["key", "change", keyed, "3", "--new-key-file", secrets.path("file")],
                options: first),
            Run(
                verb: ["key", "add", keyed, "--recipient", secrets.path("file")], options: first,
                exitCode: 19),
            Run(verb: ["key", "test", keyed], options: second, exitCode: 12),
            Run(verb: ["key", "test", keyed], options: ["--key-file", secrets.path("file")]),
            Run(verb: ["key", "make-identity", secrets.path("identity")]),
            Run(
                verb: ["key", "add", keyed, "--recipient", secrets.path("identity")],
                options: first, exitCode: 19),
            Run(verb: ["key", "add", keyed, "--wrap-command", wrap], options: first),
            Run(verb: ["rotate", keyed], options: first),
            Run(verb: ["rotate", keyed], options: ["--key-file", secrets.path("file")]),
            Run(
                verb: [
                    "rotate", keyed, "--report", folder.path("report"), "--prometheus",
                    folder.path("metrics"),
                ], options: first),
            Run(
                verb: ["revoke", keyed, "7", "--keep", "2=" + secrets.path("second")],
                options: first, exitCode: 10),
            Run(verb: ["key", "rename", keyed, "4", "kms"], options: first),
            Run(verb: ["key", "remove", keyed, "4"], options: first),
            Run(verb: ["key", "list", keyed]),
            Run(verb: ["key", "backup", keyed, folder.path("copy")], options: first),
            Run(
                verb: ["key", "export-root", keyed, "--out", secrets.path("root")], options: first),
            Run(verb: ["key", "restore", folder.path("copy"), keyed], options: first),
            Run(
                verb: [
                    "key", "rebuild", keyed, "--root-backup-file", secrets.path("root"),
                    "--new-passphrase-file", secrets.path("first"),
                ]),
            Run(verb: ["init", folder.path("own.db")], options: first),
            Run(
                verb: [
                    "key", "enable", folder.path("own.db"), "--new-passphrase-file",
                    secrets.path("second"), "--recovery-key-out", secrets.path("own-paper"),
                ], options: first),
        ]
    }

    /// Notes what a child process sees while the tool holds the first secret, then gives the
    /// second.
    private var witness: String {
        """
        cat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline > '\(folder.path("seen"))'; \
        ls -l /proc/self/fd >> '\(folder.path("seen"))'; cat '\(secrets.path("second"))'
        """
    }

    @Test
    func `no secret comes out of any verb`() throws {
        try Data("id,body\n1,one\n2,two\n".utf8).write(to: URL(filePath: folder.path("in.csv")))
        try FileManager.default.createDirectory(
            atPath: folder.path("remote"), withIntermediateDirectories: false)
        var outputs: [(String, Data)] = []
        for run in runs {
            for style in [[], ["--json", "--progress", "json"]] {
                // In the second run the new file exists already, or the key is another one.
                let isAgain = !style.isEmpty
                if isAgain, run.exitCode != 0 || !Self.readsOnly(run.verb) { continue }
                let output = try Tool.run(
                    run.verb + run.options + style, descriptors: [3: Self.rawKey],
                    environment: ["TMPDIR": folder.url.path, "HOME": folder.url.path])
                #expect(output.exitCode == run.exitCode, "\(run.verb): \(output.errorText)")
                outputs.append(("\(run.verb) stdout", output.stdout))
                outputs.append(("\(run.verb) stderr", output.stderr))
            }
        }
        let canaries = canaries(try derivedKeys() + keysOfKeyring())
        for (name, data) in outputs + (try files()) {
            for canary in canaries where data.range(of: canary) != nil {
                Issue.record("\(name) gives a secret away, in the form of \(canary.count) bytes")
            }
        }
        let seen = try Data(contentsOf: URL(filePath: folder.path("seen")))
        #expect(seen.range(of: Data("rekey".utf8)) != nil, "the child saw nothing at all")
    }

    private static func readsOnly(_ verb: [String]) -> Bool {
        ["status", "sql", "export", "verify", "doctor"].contains(verb[0])
            && !verb.contains("--output")
    }

    /// The keys derived from the passphrases are as secret as the passphrases.
    private func derivedKeys() throws -> [Data] {
        let file = try Data(contentsOf: URL(filePath: path))
        return try [Self.first, Self.second].map { text in
            let key = try KeyDerivation.rawKey(
                from: .passphrase(text), salt: Array(file.prefix(16)), profile: .sqlcipher3)
            return key.bytes.withUnsafeBytes { Data($0) }
        }
    }

    /// The secrets of the keyring: letters, the bytes behind them, and the key of the pages.
    private func keysOfKeyring() throws -> [Data] {
        func letters(_ name: String) throws -> Data {
            try Data(contentsOf: URL(filePath: secrets.path(name))).dropLast()
        }
        func bytes(_ kind: KeyLetters, _ letters: Data) throws -> SecretBytes {
            try SecretBytes(letters).withUnsafeBytes { (bytes) throws(StoreError) in
                try kind.secret(bytes)
            }
        }
        let (paper, identity, text) = (
            try letters("paper"), try letters("identity"), try letters("root")
        )
        let root = RootKey(bytes: try bytes(.rootBackup, text))
        let id = [UInt8](
            try Data(contentsOf: URL(filePath: folder.path("keyed.db"))).prefix(16))
        var found = [paper, identity, text, try letters("file")]
        found.append(Data(plainBytes(root.bytes)))
        found.append(Data(plainBytes(root.dataKey(epoch: 1, id: id).bytes)))
        found.append(Data(plainBytes(try bytes(.recoveryKey, paper))))
        found.append(Data(plainBytes(try bytes(.identity, identity))))
        return found
    }

    private func files() throws -> [(String, Data)] {
        let found = FileManager.default.enumerator(at: folder.url, includingPropertiesForKeys: nil)
        return try (found?.allObjects as? [URL] ?? []).compactMap { url in
            guard !url.hasDirectoryPath else { return nil }
            return (url.lastPathComponent, try Data(contentsOf: url))
        }
    }

    @Test func `the canaries would be found`() throws {
        let canaries = canaries([])
        let leaks: [Data] = [
            Data("x\(Self.first)y".utf8), Data("key: \(Array(Self.rawKey))".utf8),
            Data("{\"key\":\"\(Self.rawKey.base64EncodedString())\"}".utf8),
        ]
        for leak in leaks {
            #expect(canaries.contains { leak.range(of: $0) != nil })
        }
    }

    @Test func `every verb is among the runs`() throws {
        let help = try Tool.run(["--experimental-dump-help"])
        let dump = try #require(
            JSONSerialization.jsonObject(with: help.stdout) as? [String: Any])
        let root = try #require(dump["command"] as? [String: Any])
        let verbs = Self.names(below: root)
        #expect(verbs.count > 15)
        for verb in verbs where verb != ["help"] {
            #expect(
                runs.contains { Array($0.verb.prefix(verb.count)) == verb }, "\(verb) is not run")
        }
    }

    private static func names(below command: [String: Any]) -> [[String]] {
        let commands = command["subcommands"] as? [[String: Any]] ?? []
        return commands.flatMap { command -> [[String]] in
            let name = command["commandName"] as? String ?? ""
            let below = names(below: command)
            return below.isEmpty ? [[name]] : below.map { [name] + $0 }.filter { $0.last != "help" }
        }
    }
}
