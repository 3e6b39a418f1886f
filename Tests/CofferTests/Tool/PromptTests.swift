import Coffer
import Foundation
import Testing

/// The tool on a terminal: a child process with a pseudo-terminal acts as the person.
@Suite(.againstHanging, .onOwnThreads) struct PromptTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Answers each prompt (a line that ends in `: `) with the next line; `^C` is Ctrl-C. Prints
    /// what the terminal showed, then whether it echoes again, then the exit code.
    private static let player = """
        import os, pty, select, sys, termios, time
        answers = sys.argv[1].split('|') if sys.argv[1] else []
        child, terminal = pty.fork()
        if child == 0:
            os.execv(sys.argv[2], sys.argv[2:])
        shown = b''
        asked = 0
        deadline = time.monotonic() + 60
        between = False
        while True:
            waits = asked > 0 and len(answers) > 0
            ready, _, _ = select.select([terminal], [], [], 0.001 if waits else 60)
            try:
                if waits and termios.tcgetattr(terminal)[3] & termios.ECHO:
                    between = True
            except termios.error:
                pass
            if not ready:
                if time.monotonic() > deadline:
                    os.kill(child, 9)
                continue
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            shown += more
            if shown.endswith(b': ') and shown.count(b': ') > asked and answers:
                asked = shown.count(b': ')
                answer = answers.pop(0)
                while termios.tcgetattr(terminal)[3] & termios.ECHO:
                    pass
                os.write(terminal, b'\\x03' if answer == '^C' else answer.encode() + b'\\n')
        try:
            echoes = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
        except termios.error:
            echoes = 'unknown'
        _, status = os.waitpid(child, 0)
        sys.stdout.write(shown.decode())
        print('\\nechoes', echoes)
        print('between', between)
        print('exit', os.waitstatus_to_exitcode(status))
        """

    private func play(
        _ arguments: [String], answers: String, noColor: Bool = false, type: String? = "xterm"
    ) throws -> String {
        let script = folder.path("player.py")
        try Data(Self.player.utf8).write(to: URL(filePath: script))
        let output = try Tool.runProgram(
            ["env", noColor ? "NO_COLOR=1" : "-uNO_COLOR"]
                + [type.map { "TERM=\($0)" } ?? "-uTERM"]
                + ["python3", script, answers, Tool.executable.path] + arguments)
        #expect(output.errorText.isEmpty)
        return output.text
    }

    @Test func `an unwrap command has no terminal`() throws {
        let key = folder.path("key")
        try #require(try Tool.run(["key", "make-file", key]).exitCode == 0)
        let first = ["--key-file", key]
        try #require(
            try Tool.run(["init", path, "--keyring", "--no-recovery-key"] + first).exitCode == 0)
        let add = ["key", "add", path, "--wrap-command", "tr '\\000-\\377' '\\001-\\377\\000'"]
        try #require(try Tool.run(add + first).exitCode == 0)
        let shown = try play(
            ["key", "test", path, "--unwrap-command", "(exec 3< /dev/tty) && exit 3; exit 4"],
            answers: "")
        #expect(shown.contains("failed with exit code 4"), "\(shown)")
    }

    @Test func `a new passphrase is asked for twice, and nothing typed is shown`() throws {
        let shown = try play(
            ["init", path, "--profile", "sqlcipher3"], answers: "open sesame|open sesame")
        #expect(shown.contains("New passphrase for"))
        #expect(shown.contains("once more"))
        #expect(shown.contains("exit 0"))
        #expect(!shown.contains("sesame"))
        let store = try Store(path: path, key: .passphrase("open sesame"), mode: .mustExist)
        try store.close()
    }

    @Test func `two different new passphrases make no store`() throws {
        let shown = try play(["init", path], answers: "open sesame|open sesamy")
        #expect(shown.contains("differ"))
        #expect(shown.contains("exit 19"))
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `the current and the new passphrase are requested separately`() throws {
        let store = try Store(
            path: path, key: .passphrase("one"), configuration: .testing(profile: .sqlcipher3))
        try store.close()
        let shown = try play(["rekey", path], answers: "one|two|two")
        #expect(shown.contains("exit 0"), "\(shown)")
        #expect(shown.contains("between False"), "what is typed ahead was shown")
        #expect(!shown.contains("echoes False"))
        let again = try Store(path: path, key: .passphrase("two"), mode: .mustExist)
        try again.close()
    }

    @Test func `a command that fetches the secret can ask the terminal`() throws {
        let store = try Store(
            path: path, key: .passphrase("one"), configuration: .testing(profile: .sqlcipher3))
        try store.close()
        let asking = "stty -echo; printf 'Word: ' >&2; read word; stty echo; printf %s \"$word\""
        let shown = try play(["status", path, "--passphrase-command", asking], answers: "one")
        #expect(shown.contains("exit 0"), "\(shown)")
    }

    @Test func `an empty answer is refused`() throws {
        let shown = try play(["init", path], answers: "|")
        #expect(shown.contains("empty"))
        #expect(shown.contains("exit 19"))
    }

    @Test func `Ctrl-C at the prompt ends with 130 and the terminal echoes again`() throws {
        let shown = try play(["init", path], answers: "^C")
        #expect(shown.contains("exit 130"), "\(shown)")
        #expect(!shown.contains("echoes False"))
    }

    @Test func `Ctrl-C before the change of a key says that nothing was changed`() throws {
        let store = try Store(
            path: path, key: .passphrase("one"), configuration: .testing(profile: .sqlcipher3))
        try store.close()
        let shown = try play(["rekey", path], answers: "one|^C")
        #expect(shown.contains("interrupted; nothing was changed"), "\(shown)")
        #expect(shown.contains("exit 130"))
        #expect(!shown.contains("echoes False"))
        let again = try Store(path: path, key: .passphrase("one"), mode: .mustExist)
        try again.close()
    }

    // MARK: What a terminal shows

    @Test func `a terminal gets colours and a bar, and a pipe neither`() throws {
        let store = try Store(
            path: path, key: .passphrase("one"), configuration: .testing(profile: .sqlcipher3))
        try store.write { tx in
            try tx.execute("CREATE TABLE t AS SELECT zeroblob(900000) AS v")
        }
        try store.close()
        let verified = try play(["verify", path], answers: "one")
        #expect(verified.contains("verify: [#"))
        #expect(verified.contains("\u{1b}[K"))
        let wrong = try play(["verify", path], answers: "two")
        #expect(wrong.contains("\u{1b}[1;31merror:\u{1b}[0m"))
        #expect(wrong.contains("exit 12"))
        let plain = try play(["verify", path, "--progress", "none"], answers: "one")
        #expect(!plain.contains("\u{1b}"))
        let piped = try Tool.run(["verify", path, "--passphrase-stdin"], input: Data("two".utf8))
        #expect(piped.errorText.contains("error:"))
        #expect(!piped.errorText.contains("\u{1b}"))
    }

    @Test(arguments: ["dumb", "", nil])
    func `a terminal that erases no line gets no bar, no colours and no carriage returns`(
        type: String?
    ) throws {
        let store = try Store(
            path: path, key: .passphrase("one"), configuration: .testing(profile: .sqlcipher3))
        try store.write { tx in
            try tx.execute("CREATE TABLE t AS SELECT zeroblob(900000) AS v")
        }
        try store.close()
        for (answer, end) in [("one", "exit 0"), ("two", "exit 12"), ("^C", "exit 130")] {
            let shown = try play(["verify", path], answers: answer, type: type)
            #expect(shown.contains(end), "\(shown)")
            #expect(!shown.contains("\u{1b}"), "\(shown)")
            let unpaired = shown.replacing("\r\n", with: "")
            #expect(!unpaired.unicodeScalars.contains("\r"), "\(shown.debugDescription)")
        }
    }

    @Test func `the locale C alters no output`() throws {
        let path = folder.path("größe.db")
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE \"größe\"(\"maß\")")
        try connection.execute("INSERT INTO \"größe\" VALUES ('Å – 🧪')")
        connection.close()
        for arguments in [
            ["sql", path, "SELECT * FROM größe"], ["status", path, "--json"], ["verify", path],
            ["sql", path, "SELECT ü"], ["import", path, "größe.csv", "--table", "größe"],
        ] {
            let outputs = try ["C", "C.UTF-8"].map { locale in
                try Tool.run(
                    arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1)],
                    environment: ["LC_ALL": locale])
            }
            #expect(outputs[0].exitCode == outputs[1].exitCode)
            #expect(outputs[0].text == outputs[1].text)
            #expect(outputs[0].errorText == outputs[1].errorText)
            #expect(!outputs[0].stdout.isEmpty || !outputs[0].stderr.isEmpty)
        }
    }

    @Test func `NO_COLOR is obeyed`() throws {
        let shown = try play(["status", folder.path("none")], answers: "", noColor: true)
        #expect(shown.contains("coffer: error: there is no file"))
        #expect(shown.contains("exit 10"))
    }
}
