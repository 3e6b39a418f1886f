import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// Every verb in conditions that no verb chooses: each ends with an exit code of the manual, says
/// why on standard error, and never crashes.
@Suite(.againstHanging, .onOwnThreads) struct VerbMatrixTests {
    enum Condition: String, CaseIterable, Sendable {
        case closedOutput, fullOutput, bareSurroundings, unreadableFiles, readOnlyFolder

        /// Root reads and writes everything, so it plays another user.
        private var isOfFiles: Bool { self == .unreadableFiles || self == .readOnlyFolder }

        var wrapper: [String] {
            switch self {
            case .closedOutput: ["sh", "-c", "exec \"$@\" >&-", "sh"]
            case .fullOutput: ["sh", "-c", "exec \"$@\" >/dev/full", "sh"]
            // No input, and no character but ASCII.
            case .bareSurroundings: ["sh", "-c", "LC_ALL=C LANG=C exec \"$@\" <&-", "sh"]
            case .unreadableFiles, .readOnlyFolder: OtherUser.isPlayable ? OtherUser.stranger : []
            }
        }

        func prepare(_ folder: TemporaryFolder) throws {
            guard isOfFiles else { return }
            try OtherUser.giveAway(
                folder, file: self == .unreadableFiles ? 0o000 : 0o644,
                folder: self == .unreadableFiles ? 0o777 : 0o555)
        }

        /// The exit codes with which a verb may end.
        func codes(_ verb: String) -> Set<Int32> {
            // The remote may refuse as well as the store.
            if isOfFiles, verb.hasPrefix("replica") { return [0, 17, 19, 21, 27] }
            return switch self {
            case .bareSurroundings: [0]
            // A verb that has done its work may succeed; one whose result is its output fails.
            case .closedOutput, .fullOutput: [0, 17]
            case .unreadableFiles:
                ["init", "keygen", "doctor", "key make-file", "key make-identity"].contains(verb)
                    ? [0] : [17, 19, 21]
            case .readOnlyFolder: [0, 17, 21]
            }
        }
    }

    /// The arguments of each verb, with words in capitals for paths; see
    /// `TemporaryFolder.paths(for:)`.
    private static let arguments: [String: [String]] = [
        "init": ["NEW"], "status": ["STORE"], "verify": ["STORE"], "salvage": ["STORE", "NEW"],
        "compact": ["STORE"], "checkpoint": ["STORE"], "journal-mode": ["STORE"],
        "rotate": ["KEYED"], "revoke": ["KEYED", "2"], "rekey": ["STORE", "--new-raw-key-fd", "4"],
        "keygen": ["NEW"],
        "shell-key": ["STORE", "--reveal"], "backup": ["STORE", "NEW"],
        "restore": ["STORE", "NEW"],
        "upgrade": ["STORE", "NEW"], "encrypt": ["PLAIN", "NEW"],
        "decrypt": ["STORE", "NEW", "--write-plaintext"], "kv get": ["STORE", "b", "k"],
        "kv put": ["STORE", "b", "k", "v"], "kv delete": ["STORE", "b", "k"],
        "kv list": ["STORE", "b"], "kv count": ["STORE", "b"], "kv incr": ["STORE", "b", "n"],
        "kv expire": ["STORE", "b", "k", "--after", "1h"], "kv buckets": ["STORE"],
        "kv export": ["STORE", "b"], "kv import": ["STORE", "b", "ENTRIES", "--replace"],
        "kv drop": ["STORE", "b"], "sql": ["STORE", "SELECT v FROM t"],
        "tables": ["STORE"], "schema": ["STORE"],
        "import": ["STORE", "CSV", "--format", "csv", "--table", "t"], "export": ["STORE"],
        "replicate": ["STORE", "REMOTE", "--once", "--owner", "me"], "replicas": ["REMOTE"],
        "replica check": ["REMOTE"], "replica verify": ["REMOTE"],
        "replica purge": ["REMOTE"],
        "doctor": ["FOLDER"], "key list": ["KEYED"], "key test": ["KEYED"],
        "key add": ["KEYED", "--new-key-file", "OTHER"],
        "key enable": ["STORE", "--new-key-file", "OTHER", "--no-recovery-key", "--end-others"],
        "key change": ["KEYED", "1", "--new-key-file", "OTHER"],
        "key remove": ["KEYED", "2"], "key rename": ["KEYED", "2", "ops"],
        "key make-file": ["NEW"], "key make-identity": ["NEW"],
        "key backup": ["KEYED", "NEW"], "key restore": ["COPY", "KEYED"],
        "key rebuild": ["KEYED", "--root-backup-file", "ROOT", "--new-key-file", "OTHER"],
        "key export-root": ["KEYED", "--out", "NEW"],
    ]

    /// Verbs that take no secret.
    private static let secretless: Set<String> = [
        "keygen", "doctor", "key list", "key make-file", "key make-identity", "key rebuild",
        "replica check",
    ]

    private static let files = [
        "store", "plain", "csv", "entries", "keyed", "keyed.keyring", "file", "other", "copy",
        "root", "remote",
    ]

    /// The verbs of the tool's own description, so that none is forgotten.
    private static func verbs() throws -> [String] {
        func leaves(_ command: [String: Any], _ before: [String]) -> [String] {
            let below = command["subcommands"] as? [[String: Any]] ?? []
            guard !below.isEmpty else { return [before.joined(separator: " ")] }
            return below.flatMap { leaves($0, before + [$0["commandName"] as? String ?? ""]) }
        }
        let help = try Tool.run(["--experimental-dump-help"])
        let dump = try #require(JSONSerialization.jsonObject(with: help.stdout) as? [String: Any])
        let root = try #require(dump["command"] as? [String: Any])
        return leaves(root, []).filter { !$0.hasSuffix("help") }
    }

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A folder with a store, a plaintext database, a file of CSV and one of entries.
    private func make() throws {
        try ReadingVerbs.make(folder.path("store"), .delete)
        let store = try Store(
            path: folder.path("store"), key: .numbered(1), configuration: .testing(.delete))
        try store.set("v", for: "k", in: Bucket<String, String>("b"))
        try store.close()
        try FileManager.default.createDirectory(
            atPath: folder.path("remote"), withIntermediateDirectories: false)
        let sent = try Tool.run(
            ["replicate", folder.path("store"), folder.path("remote"), "--once"]
                + ["--owner", "me", "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        try #require(sent.exitCode == 0, "\(sent.errorText)")
        try #require(try RawConnection(folder.path("plain")).run("CREATE TABLE t(v)") == 0)
        try Data("id,v\n7,x\n".utf8).write(to: folder.url.appending(path: "csv"))
        try Data("{\"key\":\"k\",\"value\":1}\n".utf8)
            .write(to: folder.url.appending(path: "entries"))
        for (name, byte) in [("file", 1), ("other", 2)] as [(String, UInt8)] {
            try Data(repeating: byte, count: 32).write(to: folder.url.appending(path: name))
        }
        let keyed = try Store(
            path: folder.path("keyed"), key: .keyring(.keyFile([UInt8](repeating: 1, count: 32))),
            configuration: .testing(.delete))
        try keyed.keys.add(.keyFile([UInt8](repeating: 3, count: 32)), label: "")
        try keyed.keys.backUp(to: folder.path("copy"))
        try keyed.keys.withRootBackup { letters in
            try Data(letters).write(to: folder.url.appending(path: "root"))
        }
        try keyed.close()
    }

    @Test(arguments: Condition.allCases)
    func `each verb ends with an exit code of the manual, and says why`(
        condition: Condition
    ) throws {
        let verbs = try Self.verbs()
        #expect(verbs.count > 25 && Set(verbs) == Set(Self.arguments.keys))
        try make()
        for verb in verbs {
            let own = try TemporaryFolder()
            let named = own.paths(for: Self.arguments[verb] ?? [])
            for name in Self.files {
                try FileManager.default.copyItem(atPath: folder.path(name), toPath: own.path(name))
            }
            try condition.prepare(own)
            let secret =
                Self.secretless.contains(verb)
                ? []
                : Self.arguments[verb]?.contains("KEYED") == true
                    ? ["--key-file", own.path("file")] : ["--raw-key-fd", "3"]
            let output = try Tool.run(
                verb.split(separator: " ").map(String.init) + named + secret,
                descriptors: [3: Tool.key(1), 4: Tool.key(2)], under: condition.wrapper)
            let said = output.errorText
            #expect(condition.codes(verb).contains(output.exitCode), "\(verb): \(said)")
            #expect(ExitStatus(rawValue: output.exitCode) != nil, "\(verb)")
            // A warning about the permissions of a secret's file may come before it.
            let isSaid = said.split(separator: "\n").contains { $0.hasPrefix("coffer: error: ") }
            #expect(output.exitCode == 0 || isSaid, "\(verb): \(said)")
            let isCrash = said.contains("Fatal error") || said.contains(" Crash")
            #expect(!isCrash, "\(verb): \(said)")
        }
    }
}
