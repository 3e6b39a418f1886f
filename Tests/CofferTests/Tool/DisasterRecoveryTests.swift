import Foundation
import Testing

@testable import Coffer

/// The runbook of replicas, run as it is written.
@Suite(.againstHanging, .onOwnThreads) struct DisasterRecoveryTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A command of the runbook, and the lines that it prints there.
    private struct Step {
        let command: String
        var lines: [String] = []
    }

    private func steps() throws -> [Step] {
        let text = try Repository.text(
            "Sources/CofferReplica/CofferReplica.docc/DisasterRecovery.md")
        var steps: [Step] = []
        var isInConsole = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isInConsole = line == "```console"
            } else if isInConsole, line.hasPrefix("$ ") {
                steps.append(Step(command: String(line.dropFirst(2))))
            } else if isInConsole, !steps.isEmpty {
                steps[steps.count - 1].lines.append(String(line))
            }
        }
        return steps
    }

    /// Runs a command line in the folder, with the tool as `coffer`.
    private func run(_ command: String) throws -> [String] {
        let script =
            "cd '\(folder.url.path)' && coffer() { \"$0\" \"$@\"; } && \(command) 2>&1"
        let output = try Tool.run([], under: ["/bin/bash", "-c", script])
        return output.text.replacing(folder.url.path + "/", with: "")
            .split(separator: "\n").map(String.init)
    }

    /// Positions and times differ in each run.
    private static var changing: Regex<Substring> {
        /[0-9a-f]+\/[0-9a-f]+-[0-9a-f]{16}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/
    }

    @Test func `each command of the runbook prints what stands there`() throws {
        for name in ["backups/notes", "other/notes", "third/notes"] {
            try FileManager.default.createDirectory(
                at: folder.url.appending(path: name), withIntermediateDirectories: true)
        }
        _ = try run("umask 077; echo correct horse > secret")
        _ = try run("coffer init notes.db --passphrase-file secret")
        for statement in [
            "CREATE TABLE note(id INTEGER PRIMARY KEY, text)",
            "INSERT INTO note(text) VALUES ('one'), ('two')",
        ] {
            _ = try run("coffer sql notes.db \"\(statement)\" --write --passphrase-file secret")
        }
        let steps = try steps()
        #expect(steps.count > 15)
        // Positions and times of this run, by those that the runbook prints instead.
        var own: [String: String] = [:]
        for step in steps {
            let command = step.command.replacing(Self.changing) { own[String($0.output)] ?? "?" }
            let printed = try run(command)
            #expect(printed.map(masked) == step.lines.map(masked), "\(command)")
            for (here, there) in zip(printed, step.lines) {
                for (here, there) in zip(
                    here.matches(of: Self.changing), there.matches(of: Self.changing))
                {
                    own[String(there.output)] = String(here.output)
                }
            }
        }
    }

    /// A new store has the profile of its engine.
    private func masked(_ line: String) -> String {
        line.hasPrefix("profile:") ? "profile: …" : line.replacing(Self.changing, with: "…")
    }
}
