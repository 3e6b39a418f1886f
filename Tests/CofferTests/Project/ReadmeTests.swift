import Foundation
import Testing

@Suite(.againstHanging) struct ReadmeTests {
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

    @Test func `each symbol in the README's table of parts is one that compiles`() throws {
        let text = try Repository.text("README.md")
        let symbols = try Repository.text("Tests/CofferTests/Project/ReadmeSymbols.swift")
        let table = try #require(text.components(separatedBy: "| Part | There | Not yet |").last)
        let rows = table.split(separator: "\n", omittingEmptySubsequences: false)
            .dropFirst(2).prefix { $0.hasPrefix("|") }
        #expect(rows.count >= 6)
        for row in rows {
            let cells = row.split(separator: "|")
            let named = cells[0...1].joined()
                .split(separator: "`", omittingEmptySubsequences: false)
            for (number, symbol) in named.enumerated() where number % 2 == 1 {
                #expect(symbols.contains("`\(symbol)`"), "nothing compiles \(symbol)")
            }
        }
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
