import Coffer
import Foundation
import Testing

/// Raw keys from files and commands, and sources that the environment names.
@Suite(.againstHanging, .onOwnThreads) struct SecretVariableTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
    }

    private func keyFile(_ number: UInt8 = 1) throws -> String {
        let path = store.folder.path("key\(number)")
        try Tool.key(number).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return path
    }

    private func status(
        _ options: String..., environment: [String: String] = [:]
    ) throws -> Tool.Output {
        try Tool.run(["status", store.path, "--test-key"] + options, environment: environment)
    }

    @Test func `a raw key comes from a file and from a command`() throws {
        let (file, other) = (try keyFile(), try keyFile(2))
        let read = try status("--raw-key-file", file)
        #expect(read.exitCode == 0 && read.stderr.isEmpty, "\(read.errorText)")
        #expect(try status("--raw-key-command", "cat '\(file)'").exitCode == 0)
        #expect(try status("--raw-key-file", other).exitCode == 12)
        #expect(try status("--raw-key-file", file, "--raw-key-command", "true").exitCode == 2)
        let dead = try status("--raw-key-command", "kill -9 $$")
        #expect(dead.exitCode == 19)
        #expect(dead.errorText.contains("the raw key command died by signal 9"))
        #expect(try status("--raw-key-command", "printf short").exitCode == 19)
    }

    @Test func `a variable names the source, and an option counts instead`() throws {
        let (file, other) = (try keyFile(), try keyFile(2))
        #expect(try status(environment: ["COFFER_RAW_KEY_FILE": file]).exitCode == 0)
        #expect(try status(environment: ["COFFER_RAW_KEY_COMMAND": "cat '\(file)'"]).exitCode == 0)
        let environment = ["COFFER_RAW_KEY_FILE": other]
        #expect(try status(environment: environment).exitCode == 12)
        #expect(try status("--raw-key-file", file, environment: environment).exitCode == 0)
        let both = try status(
            environment: ["COFFER_RAW_KEY_FILE": file, "COFFER_PASSPHRASE_FILE": file])
        #expect(
            both.exitCode == 2
                && both.errorText.contains("COFFER_PASSPHRASE_FILE and COFFER_RAW_KEY_FILE name"),
            "\(both.errorText)")
    }

    @Test(arguments: ["COFFER_PASSPHRASE", "COFFER_PASSWORD", "COFFER_KEY", "COFFER_RAW_KEY"])
    func `a variable that holds a secret is refused, and not repeated`(name: String) throws {
        let output = try status(environment: [name: "hunter2-canary"])
        #expect(output.exitCode == 19)
        #expect(output.errorText.contains("\(name) is refused"))
        #expect(!output.errorText.contains("canary"))
    }

    @Test func `a command for the secret takes no row of an import from standard input`() throws {
        let (file, command) = (try keyFile(), "cat > /dev/null; cat '")
        let output = try Tool.run(
            ["import", store.path, "-", "--format", "csv", "--table", "t"],
            input: Data("a\n1\n2\n".utf8),
            environment: ["COFFER_RAW_KEY_COMMAND": command + file + "'"])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try store.rows("SELECT * FROM t") == [[1], [2]])
    }

    @Test func `an option names the new key although variables name several`() throws {
        let environment = [
            "COFFER_NEW_PASSPHRASE_FILE": "a", "COFFER_NEW_RAW_KEY_FILE": "b",
            "COFFER_RAW_KEY_FILE": try keyFile(),
        ]
        let output = try Tool.run(
            ["rekey", store.path, "--new-raw-key-file", try keyFile(2)], environment: environment)
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test func `a new key by a variable is for rekey, and leaves copies alone`() throws {
        let environment = [
            "COFFER_RAW_KEY_FILE": try keyFile(), "COFFER_NEW_RAW_KEY_FILE": try keyFile(2),
        ]
        let copy = store.folder.path("copy.db")
        let backup = try Tool.run(["backup", store.path, copy], environment: environment)
        #expect(backup.exitCode == 0, "\(backup.errorText)")
        try Connection(path: copy, key: .numbered(1), mode: .mustExist).close()
        let rekey = try Tool.run(["rekey", store.path], environment: environment)
        #expect(rekey.exitCode == 0, "\(rekey.errorText)")
        try Connection(path: store.path, key: .numbered(2), mode: .mustExist).close()
    }

    // MARK: keygen

    @Test func `keygen makes a key that opens a store, readable for its owner only`() throws {
        let path = store.folder.path("new.key")
        #expect(try Tool.run(["keygen", path]).exitCode == 0)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.wholeMatch(of: #/[0-9a-f]{64}\n/#) != nil)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o600)
        let new = store.folder.path("new.db")
        #expect(try Tool.run(["init", new, "--raw-key-file", path]).exitCode == 0)
        #expect(try Tool.run(["tables", new, "--raw-key-file", path]).exitCode == 0)
        // Never a second one under the same name, and never the same one.
        #expect(try Tool.run(["keygen", path]).exitCode == 22)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        let other = store.folder.path("other.key")
        #expect(try Tool.run(["keygen", other]).exitCode == 0)
        #expect(try String(contentsOfFile: other, encoding: .utf8) != text)
    }
}
