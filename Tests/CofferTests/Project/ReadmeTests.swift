import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct ReadmeTests {
    @Test func `the README's program is the one that the tests compile`() throws {
        let program = try Repository.text("Tests/ReadmeProgram/Notes.swift")
        #expect(try Repository.text("README.md").contains("```swift\n\(program)```\n"))
    }

    @Test func `the README's program runs, twice`() throws {
        let folder = try TemporaryFolder()
        #expect(try run(in: folder) == "[\"Buy milk\"]\n")
        #expect(try run(in: folder) == "[\"Buy milk\", \"Buy milk\"]\n")
        let bytes = try Data(contentsOf: folder.url.appending(path: "notes.db"))
        #expect(bytes.range(of: Data("milk".utf8)) == nil)
    }

    private func run(in folder: TemporaryFolder) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent().appending(path: "ReadmeProgram")
        process.currentDirectoryURL = folder.url
        process.standardOutput = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: printed, as: UTF8.self)
    }
}
