import Coffer
import Foundation
import Testing

/// The common behaviour of all verbs.
@Suite(.againstHanging) struct ToolTests {
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

    @Test func `a command line without a meaning ends with exit code 2`() throws {
        let output = try Tool.run(["no-such-verb"])
        #expect(output.exitCode == 2)
        #expect(output.stdout.isEmpty)
        #expect(!output.stderr.isEmpty)
    }
}
