import Foundation
import Testing

/// The articles and the comments of public symbols make a site without a warning.
@Suite(.againstHanging, .onOwnThreads) struct DocumentationTests {
    @Test func `every link of the documentation leads somewhere`() throws {
        let script = Repository.root.appending(path: "Scripts/docs").path
        let build = Tool.executable.deletingLastPathComponent().path
        let output = try Tool.runProgram([script, "--check", build])
        #expect(output.exitCode == 0, "\(output.text)\(output.errorText)")
    }
}
