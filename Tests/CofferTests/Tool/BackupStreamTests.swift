import Foundation
import Testing

@testable import Coffer

/// `coffer backup STORE -`
@Suite(.againstHanging, .onOwnThreads) struct BackupStreamTests {
    private let folder: TemporaryFolder
    private let path: String
    /// The `TMPDIR` of the tool.
    private let temporary: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        temporary = folder.path("temporary")
        try FileManager.default.createDirectory(
            atPath: temporary, withIntermediateDirectories: false)
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        try connection.transaction {
            for number in 0..<100 {
                try connection.execute("INSERT INTO note VALUES (\(number), randomblob(2000))")
            }
        }
        connection.close()
    }

    private func run(_ program: [String]) throws -> Tool.Output {
        let output = try Tool.runProgram(
            program, input: Tool.key(1), environment: ["TMPDIR": temporary])
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: temporary) == [],
            "nothing is left of the copy")
        return output
    }

    private func backup(_ options: String...) throws -> Tool.Output {
        try run([Tool.executable.path, "backup", path, "-", "--raw-key-fd", "0"] + options)
    }

    private func rows(_ path: String) throws -> [[Value]] {
        let store = try Store(path: path, key: .numbered(1), mode: .mustExist)
        let rows = try store.read { tx in
            try tx.rows("SELECT * FROM note ORDER BY id").map(\.values)
        }
        #expect(try store.verify().isGood)
        try store.close()
        return rows
    }

    @Test func `standard output gets an equal store, and only that`() throws {
        let output = try backup()
        #expect(output.exitCode == 0)
        #expect(output.errorText.contains("1 table and 100 rows"), "\(output.errorText)")
        let copy = folder.path("copy.db")
        try output.stdout.write(to: URL(filePath: copy))
        #expect(try rows(copy) == rows(path))
        let json = try backup("--json")
        #expect(json.stdout.count == output.stdout.count)
        #expect(json.errorText.hasPrefix("{\"notes\":["), "\(json.errorText)")
        #expect(try backup("--quiet").stderr.isEmpty)
    }

    @Test func `a reader that ends early, and a full disk, are exit code 17`() throws {
        for end in ["| head -c 100 > /dev/null", "> /dev/full"] {
            let output = try run([
                "bash", "-c", "set -o pipefail; \"$0\" \"$@\" \(end)", Tool.executable.path,
                "backup", path, "-", "--raw-key-fd", "0",
            ])
            #expect(output.exitCode == 17, "\(end): \(output.errorText)")
            #expect(output.errorText.contains("not a whole copy"))
        }
    }

    @Test func `a terminal gets no store, and a TMPDIR that is missing is named`() throws {
        let shown = try Tool.runProgram([
            "python3", "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)",
            Tool.executable.path, "backup", path, "-", "--raw-key-fd", "0",
        ])
        #expect(shown.exitCode == 2)
        #expect(shown.text.contains("standard output is a terminal"))
        let output = try Tool.runProgram(
            [Tool.executable.path, "backup", path, "-", "--raw-key-fd", "0"], input: Tool.key(1),
            environment: ["TMPDIR": folder.path("nix")])
        #expect(output.exitCode == 17)
        #expect(output.errorText.contains("nix") && output.errorText.contains("TMPDIR"))
    }

    @Test func `Ctrl-C ends a backup whose reader has stopped reading`() throws {
        let script = """
            import select, signal, subprocess, sys
            key = open(0, 'rb').read()
            tool = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            tool.stdin.write(key)
            tool.stdin.close()
            select.select([tool.stdout], [], [])
            tool.send_signal(signal.SIGINT)
            sys.exit(tool.wait(60))
            """
        let output = try run([
            "python3", "-c", script, Tool.executable.path, "backup", path, "-", "--raw-key-fd", "0",
        ])
        #expect(output.exitCode == 130, "\(output.errorText)")
    }

    @Test func `nothing is made before the secret is read`() throws {
        let seen = folder.path("seen")
        let key = folder.path("key")
        try Data(Tool.key(1)).write(to: URL(filePath: key))
        let output = try run([
            Tool.executable.path, "backup", path, "-", "--raw-key-command",
            "ls -A '\(temporary)' > '\(seen)'; cat '\(key)'",
        ])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try String(contentsOfFile: seen, encoding: .utf8).isEmpty)
    }

    @Test func `Ctrl-C at any moment leaves no folder`() throws {
        let script = """
            import os, random, signal, subprocess, sys, time
            key = open(0, 'rb').read()
            chance = random.Random(int(sys.argv[1]))
            for _ in range(25):
                tool = subprocess.Popen(
                    sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
                tool.stdin.write(key)
                tool.stdin.close()
                time.sleep(chance.uniform(0, 0.3))
                tool.send_signal(signal.SIGINT)
                code = tool.wait(60)
                left = os.listdir(os.environ['TMPDIR'])
                if code not in (0, 130, -signal.SIGINT) or left:
                    sys.exit('exit code %d, left: %s' % (code, left))
            """
        let seed = testSeed()
        let output = try run([
            "python3", "-c", script, "\(seed)", Tool.executable.path, "backup", path, "-",
            "--raw-key-fd", "0",
        ])
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test(arguments: ["upgrade", "encrypt", "decrypt", "salvage"])
    func `another verb does not make a file that is named -`(verb: String) throws {
        let confirmation = verb == "decrypt" ? ["--write-plaintext"] : []
        let output = try Tool.run([verb, path, "-"] + confirmation)
        #expect(output.exitCode == 2)
        #expect(output.errorText.contains("./-"))
    }
}
