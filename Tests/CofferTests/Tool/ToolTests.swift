import Coffer
import Foundation
import Testing

/// The common behaviour of all verbs.
@Suite(.againstHanging, .onOwnThreads) struct ToolTests {
    @Test func `a store made by the tool opens in the library with the same raw key`() throws {
        let folder = try TemporaryFolder()
        let made = try Tool.run(
            ["init", folder.path(), "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(made.exitCode == 0, "\(made.errorText)")
        #expect(made.text.contains("journal mode"))
        let connection = try Connection(path: folder.path(), key: .numbered(1))
        connection.close()
        let wrong = try Tool.run(
            ["status", folder.path(), "--raw-key-fd", "3"], descriptors: [3: Tool.key(2)])
        #expect(wrong.exitCode == 12)
        #expect(wrong.stdout.isEmpty)
    }

    @Test(arguments: ["0", "1", "-5", "39", "many"])
    func `a terminal without room still gets help`(columns: String) throws {
        let output = try Tool.run(["verify", "--help"], environment: ["COLUMNS": columns])
        #expect(output.exitCode == 0)
        #expect(output.text.contains("USAGE"))
    }

    @Test(arguments: 6...18)
    func `with few open files it works or says so`(count: Int) throws {
        let folder = try TemporaryFolder()
        try Store(path: folder.path(), key: .numbered(1)).close()
        for limit in ["-n", "-Sn"] {
            let output = try Tool.run(
                ["verify", folder.path(), "-q", "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(1)],
                under: ["sh", "-c", "ulimit \(limit) \(count); exec \"$@\"", "sh"])
            if limit == "-Sn" { #expect(output.exitCode == 0, "\(output.errorText)") }
            guard output.exitCode != 0 else { continue }
            #expect(output.exitCode == 17, "\(count): \(output.errorText)")
            #expect(output.errorText.contains("ulimit -n"), "\(count): \(output.errorText)")
        }
    }

    @Test func `a command line without a meaning ends with exit code 2`() throws {
        let output = try Tool.run(["no-such-verb"])
        #expect(output.exitCode == 2)
        #expect(output.stdout.isEmpty)
        #expect(!output.stderr.isEmpty)
    }
}
