import Foundation
import Testing

/// Arguments that are not UTF-8, which Swift would repair into the names of other files.
@Suite(.againstHanging, .onOwnThreads) struct FileNameVerbTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Runs `coffer` with an argument that has a byte which never occurs in UTF-8, written as `@`.
    private func runRaw(_ arguments: [String]) throws -> Tool.Output {
        let words = arguments.map { "\"$(printf '%s' '\($0)' | tr '@' '\\377')\"" }
        return try Tool.runProgram(
            ["sh", "-c", "cd '\(folder.url.path)' && exec \"$0\" \(words.joined(separator: " "))"]
                + [Tool.executable.path])
    }

    @Test func `an argument that is not UTF-8 is refused, and no other file made or read`() throws {
        // The second is the name to which `n@.db` would be repaired.
        for name in ["s.db", "n\u{fffd}.db"] {
            let output = try Tool.run(
                ["init", folder.path(name), "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == 0, "\(output.errorText)")
        }
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        for arguments in [
            ["status", "n@.db"], ["init", "m@.db"], ["backup", "s.db", "m@.db"],
            ["export", "s.db", "--output", "m@.sql"], ["export", "s.db", "--output=m@.sql"],
            ["sql", "s.db", "SELECT ?", "--bind", "file:m@"], ["doctor", "n@.db"],
            ["status", "s.db", "--passphrase-file", "m@"], ["kv", "put", "s.db", "b", "@", "v"],
        ] {
            let output = try runRaw(arguments)
            #expect(output.exitCode == 2, "\(arguments): \(output.errorText)")
            #expect(output.errorText.contains("is not UTF-8"), "\(output.errorText)")
            #expect(output.stdout.isEmpty)
        }
        let after = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        #expect(after == before)
    }
}
