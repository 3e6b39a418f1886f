import Foundation
import Testing

@testable import CofferTool

/// What signals do to the tool, whenever they come.
@Suite(.againstHanging, .onOwnThreads) struct SignalTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
    }

    /// Sends the signal from the command that fetches the secret, and then waits for input that
    /// never comes.
    private static func command(_ signal: String) -> String { "kill -\(signal) $PPID; exec cat" }

    @Test(arguments: ["INT", "TERM", "HUP", "QUIT"])
    func `a signal before the secret is read ends with 130, and JSON says what to do`(
        signal: String
    ) throws {
        for json in [[], ["--json"]] {
            let tool = try Tool.start(
                ["compact", store.path, "--passphrase-command", Self.command(signal)] + json)
            let output = try tool.finish()
            try tool.closeInput()
            #expect(output.exitCode == 130, "\(output.errorText)")
            #expect(output.stdout.isEmpty)
            #expect(
                output.errorText.contains("interrupted; \(Interruption.nothingChanged)"),
                "\(output.errorText)")
            guard !json.isEmpty else { continue }
            let object = try JSONSerialization.jsonObject(with: output.stderr) as? [String: Any]
            let error = try #require(object?["error"] as? [String: Any])
            #expect(error["code"] as? String == "interrupted")
            #expect(error["exitCode"] as? Int == 130)
        }
    }

    @Test(arguments: ["status", "backup"])
    func `a signal to the tool alone ends the command that fetches the secret`(
        verb: String
    ) throws {
        let file = store.folder.path("ended")
        let waiting =
            "sleep 600 & trap 'kill $!; echo ended > \"\(file)\"; exit 1' TERM; "
            + "kill -TERM $PPID; wait"
        let copy = verb == "backup" ? [store.folder.path("copy")] : []
        let output = try Tool.run([verb, store.path] + copy + ["--passphrase-command", waiting])
        #expect(output.exitCode == 130, "\(output.errorText)")
        // The suite's time limit ends a wait for a command that lives on.
        while !FileManager.default.fileExists(atPath: file) { usleep(1000) }
    }

    @Test(arguments: ["INT", "HUP", "QUIT"])
    func `a command that a terminal's signal ends takes the tool with it`(signal: String) throws {
        let output = try Tool.run(
            ["status", store.path, "--passphrase-command", "ulimit -c 0; kill -\(signal) $$"])
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(!output.errorText.contains("died by"), "\(output.errorText)")
    }

    @Test func `nohup keeps the end of a terminal from ending the run`() throws {
        let output = try Tool.run(
            ["status", store.path, "--raw-key-command", "kill -HUP $PPID; cat"],
            input: Tool.key(1), under: ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test func `an interruption that cleaned up names the next step`() throws {
        let tool = try Tool.start(
            ["import", store.path, "-", "--format", "csv", "--table", "n", "--raw-key-fd", "3"]
                + ["--progress", "json"], descriptors: [3: Tool.key(1)])
        try tool.write(Data(("a\n" + String(repeating: "1\n", count: 600_000)).utf8))
        try tool.waitForError("\"done\"")
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 130)
        #expect(
            output.errorText.contains("hint: Nothing was changed: run the same command again."),
            "\(output.errorText)")
        #expect(try store.tables().isEmpty)
    }

    @Test(arguments: [
        ["init", "a.db"], ["keygen", "a.key"], ["backup", "a.db", "b.db"], ["backup", "a.db", "-"],
        ["restore", "b.db", "a.db"], ["upgrade", "a.db", "b.db"], ["encrypt", "a.db", "b.db"],
        ["decrypt", "a.db", "b.db", "--write-plaintext"], ["salvage", "a.db", "b.db"],
        ["export", "a.db", "--output", "x.sql"], ["compact", "a.db"], ["checkpoint", "a.db"],
        ["journal-mode", "a.db", "wal"], ["rekey", "a.db"], ["import", "a.db", "x.sql"],
        ["sql", "a.db", "DELETE FROM t", "--write"], ["kv", "put", "a.db", "b", "k", "v"],
        ["kv", "delete", "a.db", "b", "k"], ["kv", "expire", "a.db", "b", "k", "--never"],
        ["kv", "export", "a.db", "b", "--output", "x.jsonl"],
        ["kv", "import", "a.db", "b", "x.jsonl"],
        ["key", "add", "a.db"], ["key", "change", "a.db"], ["key", "remove", "a.db", "2"],
        ["key", "rename", "a.db", "2", "ops"],
        ["key", "make-file", "a.key"], ["key", "make-identity", "a.id"],
        ["key", "backup", "a.db", "x"], ["key", "restore", "x", "a.db"],
        ["key", "rebuild", "a.db"], ["key", "enable", "a.db"], ["rotate", "a.db"],
        ["rotate", "a.db", "--root"], ["rotate", "a.db", "b.db"],
        ["revoke", "a.db", "2"],
        ["key", "export-root", "a.db", "--out", "x"],
    ])
    func `each verb that changes something says what its interruption leaves, and what to do`(
        arguments: [String]
    ) throws {
        let verb = try #require(try CofferTool.parseAsRoot(arguments) as? any ChangingVerb)
        #expect(verb.isChanging)
        let text = verb.interruption
        #expect(text.contains("run the same command again") || text.contains("run it again"))
        // The secret may have come from anywhere.
        #expect(!text.contains("--prompt"))
    }
}
