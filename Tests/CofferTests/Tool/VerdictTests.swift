import Foundation
import Testing

@testable import Coffer

/// What the tool says where an operator would otherwise look in the wrong place.
@Suite(.againstHanging, .onOwnThreads) struct VerdictTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make() throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        for number in 0..<50 {
            try connection.execute("INSERT INTO note VALUES (\(number), randomblob(2000))")
        }
        connection.close()
    }

    private func coffer(_ arguments: String...) throws -> Tool.Output {
        try Tool.run(arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
    }

    @Test func `a folder where nothing can be created is named, and so is the file of the user`()
        throws
    {
        try make()
        // Not even root can create a file there.
        let place = "/sys/coffer.db"
        for arguments in [["init", place], ["backup", path, place], ["salvage", path, place]] {
            let output = try Tool.run(
                arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == 21, "\(output.errorText)")
            #expect(output.errorText.contains("cannot create \(place): "), "\(output.errorText)")
            #expect(output.errorText.contains("folder"))
        }
    }

    @Test func `a check of the structure that damage ended does not count as made`() throws {
        try make()
        try Damage.flip(path, at: 4096 + 100)
        let output = try coffer("verify", path)
        #expect(output.exitCode == 14)
        #expect(output.text.contains("DAMAGED"))
        if output.text.contains("did not finish") {
            #expect(output.text.contains("structure: not checked"), "\(output.text)")
        }
        let quiet = try coffer("verify", path, "--quiet")
        #expect(quiet.exitCode == 14)
        #expect(quiet.stdout.isEmpty)
        #expect(quiet.errorText.contains("is damaged: restore a backup with coffer restore"))
        let json = try coffer("verify", path, "--quiet", "--json")
        #expect(json.stderr.isEmpty && json.exitCode == 14)
    }

    @Test func `a variable that names the key does not make a plaintext file an error`() throws {
        try #require(try RawConnection(path).run("CREATE TABLE t(v)") == 0)
        let key = folder.path("key")
        try Data(Tool.key(1)).write(to: URL(filePath: key))
        let output = try Tool.run(["status", path], environment: ["COFFER_RAW_KEY_FILE": key])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.text.contains("plaintext"))
        #expect(try Tool.run(["status", path, "--raw-key-file", key]).exitCode == 16)
    }

    @Test func `help for a verb that does not exist names the nearest one`() throws {
        let output = try Tool.run(["help", "verfy"])
        #expect(output.exitCode == 2)
        #expect(output.errorText.contains("verify"))
        #expect(try Tool.run(["help", "verify"]).exitCode == 0)
        #expect(try Tool.run(["help"]).exitCode == 0)
    }

    @Test func `doctor --clean says that a folder is missing, or is not one`() throws {
        #expect(try Tool.run(["doctor", folder.path("nix"), "--clean"]).exitCode == 10)
        try make()
        #expect(try Tool.run(["doctor", path, "--clean"]).exitCode == 2)
    }

    /// Whether this process may take `/proc` away from another.
    private static let canHideProc =
        (try? Tool.runProgram(["unshare", "--mount", "umount", "-l", "/proc"]))?.exitCode == 0

    @Test(.enabled(if: canHideProc, "unmounts /proc, which takes root"))
    func `without its arguments the tool does not claim success`() throws {
        let output = try Tool.run(
            ["verify", path],
            under: ["unshare", "--mount", "sh", "-c", "umount -l /proc; exec \"$0\" \"$@\""])
        #expect(output.exitCode == 1)
        #expect(output.stdout.isEmpty)
        #expect(output.errorText.contains("/proc"))
    }

    @Test func `no line of the help's examples is wrapped on a terminal`() throws {
        let root = try Tool.run(["--help"]).text
        let verbs = root.matches(of: #/\n  ([a-z]+(?:-[a-z]+)*) +[A-Z]/#).map {
            String($0.output.1)
        }
        #expect(verbs.count > 15)
        for verb in verbs + [""] {
            let help = try Tool.run((verb.isEmpty ? [] : [verb]) + ["--help"]).text
            var isExample = false
            for line in help.components(separatedBy: "\n") {
                if line == "EXAMPLES" {
                    isExample = true
                } else if line.isEmpty {
                    isExample = false
                } else if isExample {
                    #expect(line.hasPrefix("  "), "\(verb): \(line)")
                }
            }
        }
    }
}
