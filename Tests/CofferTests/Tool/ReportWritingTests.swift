import Foundation
import Testing

@testable import Coffer

/// A change is done even if nobody learns of it: a report that cannot be written is a warning.
@Suite(.againstHanging, .onOwnThreads) struct ReportWritingTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        try connection.execute("INSERT INTO note VALUES (1, 'one'), (2, 'two')")
        // The peer reads this table.
        try connection.execute("CREATE TABLE t(v)")
        connection.close()
        try Data("id,body\n3,three\n".utf8).write(to: URL(filePath: folder.path("in.csv")))
        try FileManager.default.createDirectory(
            atPath: folder.path("remote"), withIntermediateDirectories: false)
        for (name, byte) in [("second", 2), ("third", 3)] as [(String, UInt8)] {
            try Data(repeating: byte, count: 32).write(to: folder.url.appending(path: name))
        }
    }

    /// Kinds of standard output that accept nothing.
    enum Sink: String, CaseIterable, Sendable {
        case full, closedPipe, closed

        func wrapper(_ folder: TemporaryFolder) -> [String] {
            switch self {
            case .full: ["sh", "-c", "exec \"$@\" > /dev/full", "sh"]
            case .closed: ["sh", "-c", "exec \"$@\" >&-", "sh"]
            case .closedPipe:
                [
                    "sh", "-c",
                    "mkfifo \"$0\"; exec 8<>\"$0\" 9>\"$0\" 8<&-; rm \"$0\"; exec \"$@\" >&9 9>&-",
                    folder.path("pipe"),
                ]
            }
        }
    }

    private func run(
        _ sink: Sink, _ arguments: [String], key: UInt8 = 1
    ) throws -> Tool.Output {
        try Tool.run(
            arguments, descriptors: [3: Tool.key(key), 4: Tool.key(2)],
            under: sink.wrapper(folder))
    }

    /// The number of a table's rows, counted by the library.
    private func count(
        _ table: String, where condition: String = "1", key: UInt8 = 1
    ) throws -> Int {
        let connection = try Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        var sql: SQL = "SELECT * FROM \(identifier: table)"
        sql.append(SQL(text: " WHERE " + condition))
        return try connection.rows(sql).count
    }

    private func isThere(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: folder.path(name))
    }

    /// Every verb that changes something, and a check that it did.
    private var deeds: [(verb: [String], options: [String], isDone: () throws -> Bool)] {
        let key = ["--raw-key-fd", "3"]
        func out(_ name: String) -> String { folder.path(name) }
        return [
            (["init"], [out("new.db")] + key, { isThere("new.db") }),
            (
                ["import"], [path, out("in.csv"), "--table", "note"] + key,
                { try count("note") == 3 }
            ),
            (
                ["sql"], [path, "DELETE FROM note WHERE id = 3", "--write"] + key,
                { try count("note") == 2 }
            ),
            (
                ["kv", "put"], [path, "b", "k", "v"] + key,
                { try count("bucket:b") == 1 }
            ),
            (
                ["kv", "incr"], [path, "b", "n"] + key,
                { try count("bucket:b") == 2 }
            ),
            (
                ["kv", "expire"], [path, "b", "n", "--after", "1h"] + key,
                { try count("bucket:b", where: "expires > 0") == 1 }
            ),
            (
                ["kv", "export"], [path, "b", "--output", out("b.jsonl")] + key,
                { isThere("b.jsonl") }
            ),
            (
                ["kv", "import"], [path, "c", out("b.jsonl"), "--key-type", "text"] + key,
                { try count("bucket:c") == 2 }
            ),
            (["kv", "drop"], [path, "c"] + key, { try count("coffer:buckets") == 1 }),
            (
                ["kv", "delete"], [path, "b", "k"] + key,
                { try count("bucket:b") == 1 }
            ),
            (
                ["kv", "drop"], [path, "b"] + key,
                { try count("coffer:buckets") == 0 }
            ),
            (["backup"], [path, out("backup.db")] + key, { isThere("backup.db") }),
            (
                ["replicate"], [path, out("remote"), "--once"] + key,
                { isThere("remote/log/0000000000000001/0000000000000001") }
            ),
            (["replica", "purge"], [out("remote")] + key, { isThere("remote/store") }),
            (["upgrade"], [path, out("upgraded.db")] + key, { isThere("upgraded.db") }),
            (
                ["decrypt"], [path, out("plain.db"), "--write-plaintext"] + key,
                { isThere("plain.db") }
            ),
            (["encrypt"], [out("plain.db"), out("again.db")] + key, { isThere("again.db") }),
            (["checkpoint"], [path] + key, { try count("note") == 2 }),
            (["journal-mode"], [path, "delete"] + key, { try count("note") == 2 }),
            (["keygen"], [out("new.key")], { isThere("new.key") }),
            (["compact"], [path] + key, { try count("note") == 2 }),
            (["salvage"], [path, out("rest.db")] + key, { isThere("rest.db") }),
            (
                ["restore"], [out("backup.db"), out("restored.db")] + key,
                { isThere("restored.db") }
            ),
            (["export"], [path, "--output", out("o.sql")] + key, { isThere("o.sql") }),
            (
                ["rekey"], [path, "--new-raw-key-fd", "4"] + key,
                { try count("note", key: 2) == 2 }
            ),
        ] + deedsOfKeys
    }

    private var deedsOfKeys: [(verb: [String], options: [String], isDone: () throws -> Bool)] {
        func out(_ name: String) -> String { folder.path(name) }
        func slots() throws -> Int { try Keyring(of: out("keyed.db")).slots.count }
        let keyed = out("keyed.db")
        let file = ["--key-file", out("file")]
        return [
            (["key", "make-file"], [out("file")], { isThere("file") }),
            (["key", "make-identity"], [out("identity")], { isThere("identity") }),
            (
                ["init"], [keyed, "--keyring", "--no-recovery-key"] + file,
                { try slots() == 1 }
            ),
            (
                ["key", "add"], [keyed, "--new-key-file", out("second")] + file,
                { try slots() == 2 }
            ),
            (
                ["key", "change"], [keyed, "2", "--new-key-file", out("third")] + file,
                { try slots() == 2 }
            ),
            (["rotate"], [keyed] + file, { try Keyring(of: keyed).epoch > 1 }),
            (
                ["key", "add"], [keyed, "--new-key-file", out("second")] + file,
                { try slots() == 3 }
            ),
            (
                ["revoke"], [keyed, "3"] + file + ["--keep", "2=" + out("third")],
                { try slots() == 2 && !Keyring(of: keyed).isReplacingRoot }
            ),
            (["key", "rename"], [keyed, "2", "ops"] + file, { try slots() == 2 }),
            (["key", "backup"], [keyed, out("copy")] + file, { isThere("copy") }),
            (["key", "remove"], [keyed, "2"] + file, { try slots() == 1 }),
            (["key", "export-root"], [keyed, "--out", out("root")] + file, { isThere("root") }),
            (["key", "restore"], [out("copy"), keyed] + file, { try slots() == 2 }),
            (
                ["key", "rebuild"],
                [keyed, "--root-backup-file", out("root"), "--new-key-file", out("second")],
                { try slots() == 1 }
            ),
            (
                ["key", "enable"],
                [out("again.db"), "--no-recovery-key", "--end-others"]
                    + ["--new-key-file", out("file"), "--raw-key-fd", "3"],
                { try Keyring(of: out("again.db")).slots.count == 1 }
            ),
        ]
    }

    @Test(arguments: Sink.allCases)
    func `a report that cannot be written does not turn a success into a failure`(
        sink: Sink
    ) throws {
        for (verb, options, isDone) in deeds {
            let output = try run(sink, verb + options)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
            #expect(output.errorText.contains("its report is lost"), "\(verb)")
            #expect(try isDone(), "\(verb)")
        }
    }

    @Test func `every verb that changes something is among them`() throws {
        let help = try Tool.run(["--experimental-dump-help"])
        let dump = try #require(JSONSerialization.jsonObject(with: help.stdout) as? [String: Any])
        let root = try #require(dump["command"] as? [String: Any])
        let others = [
            "status", "verify", "tables", "schema", "shell-key", "doctor", "help", "get", "list",
            "count", "buckets", "test", "replicas", "check",
        ]
        let tried = deeds.compactMap(\.verb.last) + others
        #expect(Self.names(below: root).count > 15)
        for name in Self.names(below: root) { #expect(tried.contains(name), "\(name)") }
    }

    private static func names(below command: [String: Any]) -> [String] {
        let below = command["subcommands"] as? [[String: Any]] ?? []
        guard !below.isEmpty else { return [command["commandName"] as? String ?? ""] }
        return below.flatMap(names)
    }

    @Test func `an unfinished change of the key is 18 even if it cannot be reported`() throws {
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let output = try run(.full, ["rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4"])
        #expect(output.exitCode == 18)
        #expect(output.errorText.contains("its report is lost"))
        peer.goOn()
        _ = peer.finish()
    }

    @Test func `data that cannot be written is still a failure`() throws {
        let key = ["--raw-key-fd", "3"]
        #expect(try run(.full, ["kv", "put", path, "b", "k", "v"] + key).exitCode == 0)
        for verb in [
            ["sql", path, "SELECT * FROM note"], ["export", path], ["kv", "get", path, "b", "k"],
            ["kv", "list", path], ["kv", "export", path, "b"], ["verify", path], ["status", path],
        ] {
            #expect(try run(.full, verb + key).exitCode == 17, "\(verb)")
        }
        // A statement that returns rows gives data even with --write, and changes nothing.
        let pragma = ["sql", path, "SELECT 1", "--write"]
        #expect(try run(.closedPipe, pragma + key).exitCode == 17)
    }

    @Test func `a closed standard error does not end a change half-way`() throws {
        let pipe = folder.path("pipe")
        let script =
            "mkfifo \"$0\"; exec 8<>\"$0\" 9>\"$0\" 8<&-; rm \"$0\"; exec \"$@\" >&9 2>&9 9>&-"
        let output = try Tool.run(
            [
                "rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4", "--progress", "json",
            ], descriptors: [3: Tool.key(1), 4: Tool.key(2)], under: ["sh", "-c", script, pipe])
        #expect(output.exitCode == 0)
        #expect(try count("note", key: 2) == 2)
    }
}
