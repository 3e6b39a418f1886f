import Foundation
import Testing

/// The style of the sources as tests, so that no reviewer has to check it.
@Suite struct TidyTests {
    private struct Source {
        let name: String
        let lines: [String]
    }

    private static func sources(below folders: [String]) throws -> [Source] {
        try folders.flatMap { folder -> [Source] in
            let base = Repository.root.appending(path: folder)
            let files = try #require(FileManager.default.enumerator(atPath: base.path))
            return try files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted()
                .map { name in
                    let text = try String(contentsOf: base.appending(path: name), encoding: .utf8)
                    return Source(
                        name: "\(folder)/\(name)", lines: text.components(separatedBy: "\n"))
                }
        }
    }

    private static let all = ["Sources", "Tests", "Examples"]

    @Test func `no line is longer than 100 columns`() throws {
        for source in try Self.sources(below: Self.all) {
            for (number, line) in source.lines.enumerated() where line.count > 100 {
                // A test's name is a sentence, and cannot be broken.
                if line.contains("func `") || line.hasPrefix("        `") { continue }
                Issue.record("\(source.name):\(number + 1) has \(line.count) columns")
            }
        }
    }

    @Test func `no function of the library is longer than 70 lines`() throws {
        for source in try Self.sources(below: ["Sources"]) {
            for (start, length) in Self.functions(source.lines) where length > 70 {
                Issue.record("\(source.name):\(start + 1) is a function of \(length) lines")
            }
        }
    }

    @Test
    func
        `each suite that starts a process or waits for another thread has a time limit and threads of its own`()
        throws
    {
        let starting = [
            "Peer(", "Peer.run(", "Tool.run", "Tool.start(", "ToolStore(", "Process()",
            "SmallDisk.", "LocalServer(",
            "BuiltModules.", "shell.run(", "Hold()", "onThread", "usleep(", "Task.sleep(",
            "waitUntil", "yieldWhile",
        ]
        for source in try Self.sources(below: ["Tests/CofferTests"]) {
            let text = source.lines.joined(separator: "\n")
            // This file lists all of these words.
            guard text.contains("@Suite"), !source.name.hasSuffix("/TidyTests.swift") else {
                continue
            }
            if text.contains("@Suite(.againstHanging, .onOwnThreads")
                || text.contains("@Suite(\n    .againstHanging, .onOwnThreads")
            {
                continue
            }
            for word in starting where text.contains(word) {
                Issue.record("\(source.name) has \(word) and no .againstHanging, .onOwnThreads")
            }
        }
    }

    @Test func `nothing on a user's path traps, and nothing is left to do`() throws {
        let banned = ["try!", "fatalError", "preconditionFailure", "TODO", "FIXME", "XXX", " as!"]
        for source in try Self.sources(below: ["Sources/Coffer"]) {
            for (number, line) in source.lines.enumerated() {
                for word in banned where line.contains(word) {
                    Issue.record("\(source.name):\(number + 1) contains \(word)")
                }
            }
        }
    }

    @Test func `every public declaration has a doc comment`() throws {
        for source in try Self.sources(below: ["Sources/Coffer"]) {
            for (number, line) in source.lines.enumerated() where Self.isPublic(line) {
                var above = number - 1
                while above >= 0, Self.isAttribute(source.lines[above]) { above -= 1 }
                let comment = above >= 0 ? source.lines[above].drop { $0 == " " } : ""
                if !comment.hasPrefix("///") {
                    Issue.record("\(source.name):\(number + 1) has no doc comment: \(line)")
                }
            }
        }
    }

    private static func isPublic(_ line: String) -> Bool {
        let text = line.drop { $0 == " " }
        guard text.hasPrefix("public ") || text.hasPrefix("@inlinable public ") else {
            return false
        }
        return !text.hasPrefix("public extension")
    }

    private static func isAttribute(_ line: String) -> Bool {
        line.drop { $0 == " " }.hasPrefix("@")
    }

    /// Start and length of every function, found by indentation, which the formatter guarantees.
    private static func functions(_ lines: [String]) -> [(start: Int, length: Int)] {
        var found: [(Int, Int)] = []
        for (start, line) in lines.enumerated() {
            let indent = line.prefix { $0 == " " }.count
            let words = line.dropFirst(indent).split(separator: " ")
            guard words.contains("func") || words.contains(where: { $0.hasPrefix("init(") }) else {
                continue
            }
            let close = String(repeating: " ", count: indent) + "}"
            if let end = lines[start...].firstIndex(of: close) {
                found.append((start, end - start + 1))
            }
        }
        return found
    }
}
