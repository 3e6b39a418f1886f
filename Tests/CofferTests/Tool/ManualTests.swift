import Foundation
import Testing

@testable import CofferTool

/// The pages of `Documentation/manual` are written by hand around parts that `make manual` takes
/// from the help. They are committed, so that they can be read and packaged without building
/// anything.
@Suite(.againstHanging, .onOwnThreads) struct ManualTests {
    private func check(_ script: String, _ tool: String) throws -> Tool.Output {
        let path = Repository.root.appending(path: "Scripts/\(script)").path
        return try Tool.runProgram(["python3", path, "--check", tool])
    }

    /// A program that is `coffer`, except for what the lines of a script make of it.
    private func altered(_ lines: String, in folder: TemporaryFolder) throws -> String {
        let path = folder.path("coffer")
        try Data("#!/bin/sh\n\(lines)\n".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        return path
    }

    @Test func `each verb has a page, and each page is what the help gives`() throws {
        let output = try check("manual", Tool.executable.path)
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test(arguments: [
        ("dry-run", "dry-walk", "coffer-rekey.1: differs from the help"),
        ("Seconds to wait", "Minutes to wait", "coffer.1: differs from the help"),
        ("doctor", "nurse", "coffer-nurse.1: the page is missing"),
        ("doctor", "nurse", "coffer-doctor.1: the tool has no such verb"),
        ("2 wrong usage", "3 wrong usage", "EXIT STATUS has 2, which is no exit code"),
    ])
    func `another option, meaning, verb or exit code of the help is noticed`(
        word: String, other: String, said: String
    ) throws {
        let folder = try TemporaryFolder()
        let tool = try altered(
            "\"\(Tool.executable.path)\" \"$@\" | sed 's/\(word)/\(other)/g'", in: folder)
        let output = try check("manual", tool)
        #expect(output.exitCode == 1)
        #expect(output.errorText.contains(said), "\(output.errorText)")
    }

    @Test func `coffer(1) explains each exit code by its name and meaning`() throws {
        let section = try Self.section("EXIT STATUS")
        for status in ExitStatus.allCases {
            let meaning = status.meaning.replacing("--", with: "\\-\\-")
            let entry = ".It \(status.rawValue) Pq \(status)\n\(meaning)"
            let isThere = section.lowercased().contains(entry.lowercased())
            #expect(isThere, "coffer.1 lacks: \(entry)")
        }
        let entries = section.components(separatedBy: "\n.It ").count - 1
        #expect(entries == ExitStatus.allCases.count)
    }

    @Test func `coffer(1) names each environment variable that the tool reads`() throws {
        let manual = try Self.section("ENVIRONMENT")
        let read = try Self.variables()
        #expect(read.isSuperset(of: ["NO_COLOR", "TERM", "COFFER_NEW_RAW_KEY_FILE"]))
        for name in read {
            let isNamed = manual.contains("Ev \(name)\n") || manual.contains("Ev \(name) ,")
            #expect(isNamed, "coffer.1 lacks \(name)")
        }
    }

    @Test func `the README's session is what the tool does`() throws {
        let output = try check("session", Tool.executable.path)
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test func `another line of the session is noticed`() throws {
        let folder = try TemporaryFolder()
        let tool = try altered(
            "\"\(Tool.executable.path)\" \"$@\"; [ \"$1\" != verify ] || echo 'a new line: 1'",
            in: folder)
        let output = try check("session", tool)
        #expect(output.exitCode == 1)
        #expect(output.errorText.contains("+a new line: 1"), "\(output.errorText)")
    }

    private static func section(_ title: String) throws -> String {
        let manual = try Repository.text("Documentation/manual/coffer.1")
        let parts = manual.components(separatedBy: "\n.Sh ")
        return try #require(parts.first { $0.hasPrefix("\(title)\n") })
    }

    /// The variables that the sources read. A file that reads the environment in a way that this
    /// does not know is an issue.
    private static func variables() throws -> Set<String> {
        var names: Set<String> = []
        for folder in ["Sources/Coffer", "Sources/CofferTool"] {
            let base = Repository.root.appending(path: folder)
            let files = try #require(FileManager.default.enumerator(atPath: base.path))
            for case let name as String in files where name.hasSuffix(".swift") {
                let text = try String(contentsOf: base.appending(path: name), encoding: .utf8)
                guard text.contains(#/getenv|\.environment\b|\benviron\b/#) else { continue }
                let found = text.matches(of: #/getenv\("(\w+)"\)|environment\["(\w+)"\]/#)
                    .compactMap { ($0.1 ?? $0.2).map(String.init) }
                if name.hasSuffix("SecretVariables.swift") {
                    for word in text.matches(of: #/(current\()?"([A-Z][A-Z_]*[A-Z])"/#) {
                        names.insert("COFFER_\(word.2)")
                        if word.1 == nil { names.insert("COFFER_NEW_\(word.2)") }
                    }
                } else if found.isEmpty {
                    Issue.record("\(name) reads the environment in a new way")
                }
                names.formUnion(found)
            }
        }
        return names
    }
}
