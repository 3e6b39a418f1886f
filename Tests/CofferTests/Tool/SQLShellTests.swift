import Coffer
import Foundation
import Testing

/// `coffer sql` on a pseudo-terminal, with a person who types.
@Suite(.againstHanging, .onOwnThreads) struct SQLShellTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
    }

    /// Types the next text whenever the tool asks for one, or a statement has begun that never
    /// ends. Prints what the terminal showed, then whether it is as it was, then the exit code.
    private static let player = """
        import os, pty, sys, termios, time
        def typing(text):
            return text.encode().decode('unicode_escape').encode(errors='surrogateescape')
        typed = [typing(text) for text in sys.argv[1].split('|')]
        command = sys.argv[2:]
        child, terminal = pty.fork()
        if child == 0:
            os.execv(command[0], command)
        before = termios.tcgetattr(terminal)[:4]
        shown, seen = b'', 0
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            shown += more
            while typed and shown.count(b'> ', seen) > 0:
                seen = shown.index(b'> ', seen) + 2
                time.sleep(0.2)
                os.write(terminal, typed.pop(0))
                if typed and typed[0] == b'wait':
                    typed.pop(0)
                    time.sleep(1)
                    os.write(terminal, b'\\x03')
        try:
            after = termios.tcgetattr(terminal)[:4]
        except termios.error:
            after = before
        _, status = os.waitpid(child, 0)
        sys.stdout.buffer.write(shown)
        print('\\nrestored', after == before)
        print('exit', os.waitstatus_to_exitcode(status))
        """

    /// - Parameter typed: Texts that are typed one after the other, with Python's escapes.
    private func play(
        _ typed: [String], _ options: String..., environment: [String] = []
    ) throws -> String {
        let script = store.folder.path("player.py")
        try Data(Self.player.utf8).write(to: URL(filePath: script))
        let key = store.folder.path("key")
        try Data(Tool.key(1)).write(to: URL(filePath: key))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let output = try Tool.runProgram(
            ["env", "TERM=xterm", "LANG=C.UTF-8"] + environment + [
                "python3", script, typed.joined(separator: "|"), Tool.executable.path, "sql",
                store.path, "--raw-key-file", key,
            ] + options)
        #expect(output.errorText.isEmpty, "\(output.errorText)")
        return output.text
    }

    /// The environment of a tool that edits lines, or of one on a system without libedit.
    private func environment(isEditing: Bool) throws -> [String] {
        guard !isEditing else { return [] }
        // A library that cannot be loaded is one that is not installed.
        try FileManager.default.createDirectory(
            atPath: store.folder.path("none"), withIntermediateDirectories: false)
        try Data("none".utf8).write(
            to: URL(filePath: store.folder.path("none/libedit.so.2")))
        let folders = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""
        return ["LD_LIBRARY_PATH=\(store.folder.path("none")):\(folders)"]
    }

    @Test(arguments: [true, false])
    func `statements are run as they end, and an error ends only its statement`(
        isEditing: Bool
    ) throws {
        let shown = try play(
            [
                "CREATE TABLE t(a);\\n", "INSERT INTO t\\n", "VALUES ('\\xe4;'), (2);\\n",
                "SELECT nix;\\n", "SELECT a FROM t;\\n", ".tables\\n", ".schema t\\n", ".nix\\n",
                "BEGIN;\\n", ".quit\\n",
            ], "--write",
            environment: environment(isEditing: isEditing))
        #expect(shown.contains("changed: 2 rows"), "\(shown)")
        #expect(shown.contains("no such column: nix"))
        #expect(shown.contains("CREATE TABLE t(a);"))
        #expect(shown.contains("there is no command .nix"))
        #expect(shown.contains("BEGIN would control a transaction"))
        #expect(shown.contains("restored True\nexit 0"))
        #expect(try store.rows("SELECT a FROM t") == [["ä;"], [2]])
    }

    /// libedit dropped such bytes, and without it they became U+FFFD. Both stored another text.
    @Test(arguments: [true, false])
    func `a line that is not UTF-8 is refused with its statement`(isEditing: Bool) throws {
        let shown = try play(
            [
                "CREATE TABLE t(a);\\n", "INSERT INTO t VALUES ('M\\udcfcller');\\n",
                "INSERT INTO t\\n", "VALUES ('\\udcc3(');\\n",
                "INSERT INTO t VALUES ('\\udced\\udca0\\udc80');\\n",
                "INSERT INTO t VALUES ('\\udcc0\\udcaf');\\n",
                "INSERT INTO t VALUES ('\\xfc\\U0001f9ea');\\n", ".quit\\n",
            ], "--write", environment: environment(isEditing: isEditing))
        #expect(shown.components(separatedBy: "not UTF-8").count == 5, "\(shown)")
        #expect(shown.contains("restored True\nexit 0"))
        #expect(try store.rows("SELECT a FROM t") == [["ü🧪"]])
    }

    @Test func `nothing changes without --write`() throws {
        let shown = try play(["CREATE TABLE t(a);\\n", "SELECT 1\\n", "\\x04"])
        #expect(shown.contains("read-only"))
        #expect(shown.contains("--write to allow it"))
        #expect(shown.contains("was not run"), "\(shown)")
        #expect(shown.contains("exit 0"))
        #expect(try store.tables() == [])
    }

    @Test func `Ctrl-C ends the line or the statement, and not the session`() throws {
        let endless = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c)"
        let shown = try play([
            "SELECT lost\\x03", "SELECT 41 + 1 AS good;\\n",
            "\(endless) SELECT count(*) FROM c;\\n", "wait", "SELECT 2 + 3 AS again;\\n",
            "\\x04",
        ])
        #expect(!shown.contains("no such column"), "\(shown)")
        #expect(shown.contains("good") && shown.contains("42"))
        #expect(shown.contains("again") && shown.contains("\n5"))
        #expect(shown.contains("restored True\nexit 0"))
    }

    @Test func `what was typed comes back with the arrow key, and is in no file`() throws {
        let shown = try play(
            [
                "CREATE TABLE t(a);\\n", "INSERT INTO t VALUES (1);\\n", "\\x1b[A\\n", "\\x04",
            ], "--write")
        #expect(shown.contains("exit 0"), "\(shown)")
        #expect(try store.rows("SELECT count(*) FROM t") == [[2]])
        let home = FileManager.default.homeDirectoryForCurrentUser
        let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
        #expect(!names.contains { $0.hasPrefix(".coffer") })
    }

    @Test func `--json and --bind are not for typing`() throws {
        #expect(try play([], "--json").contains("there is no SQL"))
        #expect(try play([], "--bind", "1").contains("--bind is for a statement or a script"))
    }
}
