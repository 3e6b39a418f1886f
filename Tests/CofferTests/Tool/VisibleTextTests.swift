import Foundation
import Testing

/// Names and data that others may have chosen, on their way to a terminal.
@Suite(.againstHanging, .onOwnThreads) struct VisibleTextTests {
    /// Control characters, format characters and separators; not NUL, which no name has.
    private static let harmful: [Unicode.Scalar] =
        (Array(1...0x1f) + Array(0x7f...0x9f)
        + [0xad, 0x61c, 0x200b, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029]
        + Array(0x202a...0x202e) + Array(0x2066...0x2069) + [0xfeff, 0xfff9, 0xe0001, 0xe0041])
        .compactMap(Unicode.Scalar.init)

    /// All of them in one name, with characters that stay unchanged.
    private static let name =
        harmful.reduce(into: "é中😀 ") { name, scalar in
            name.unicodeScalars.append(scalar)
        } + "n"

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func expectHarmless(
        _ data: Data, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let text = String(decoding: data, as: UTF8.self)
        let raw = text.unicodeScalars.filter { $0 != "\n" && Self.harmful.contains($0) }
        #expect(raw.isEmpty, "\(what): \(raw.map(\.value))", sourceLocation: sourceLocation)
    }

    /// Runs a verb with output for people and for programs. Every word of it must be harmless.
    @discardableResult
    private func run(
        _ arguments: [String], exitCode: Int32 = 0, json: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let isKeyless = arguments[0] == "doctor"
        let output = try Tool.run(
            arguments + (isKeyless ? [] : ["--raw-key-fd", "3"])
                + (json ? ["--json", "--progress", "json"] : ["--progress", "bar"]),
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
        let what = arguments[0] + " \(arguments.dropFirst().first == "put")"
        #expect(
            output.exitCode == exitCode, "\(what): \(output.errorText)",
            sourceLocation: sourceLocation)
        // Removes the tab between key and value.
        let said = output.text.replacing("n\té", with: "n é")
        expectHarmless(Data(said.utf8), what + " stdout", sourceLocation: sourceLocation)
        // The progress bar removes itself by one sequence.
        let errors = output.errorText.replacing("\r\u{1b}[K", with: "")
        expectHarmless(Data(errors.utf8), what + " stderr", sourceLocation: sourceLocation)
        return output
    }

    @Test(arguments: [false, true])
    func `no verb writes a character that a terminal obeys`(json: Bool) throws {
        let name = Self.name
        let path = folder.path(name)
        let copies = ["a", "b", "c", "d", "e"].map { folder.path(name + $0) }
        let quoted = "\"\(name)\""
        try run(["status", path], exitCode: 10, json: json)
        try run(["init", path], json: json)
        try run(["init", path], exitCode: 22, json: json)
        let create = "CREATE TABLE \(quoted)(\(quoted) UNIQUE)"
        try run(["sql", path, create, "--write"], json: json)
        let insert = ["sql", path, "INSERT INTO \(quoted) VALUES (?)", "--write", "--bind", name]
        try run(insert, json: json)
        try run(insert, exitCode: 23, json: json)
        let rows = try run(["sql", path, "SELECT * FROM \(quoted)"], json: json)
        if json {
            let row = try JSONSerialization.jsonObject(with: rows.stdout) as? [String: String]
            #expect(row == [name: name], "escapes of JSON read back as what they stand for")
        }
        try run(["sql", path, "SELECT * FROM \"\(name)no\""], exitCode: 24, json: json)
        try run(["kv", "put", path, name, name, name], json: json)
        try run(["kv", "list", path, name], json: json)
        try run(["kv", "list", path], json: json)
        try run(["kv", "get", path, name, name + "no"], exitCode: 10, json: json)
        try run(["kv", "delete", path, name, name], json: json)
        try run(["status", path], json: json)
        try run(["verify", path], json: json)
        try run(["export", path, "--output", copies[0], "--table", name], json: json)
        try run(["export", path, "--table", name + "no"], exitCode: 10, json: json)
        try run(["backup", path, copies[1]], json: json)
        try run(["backup", path, copies[1]], exitCode: 22, json: json)
        try run(["decrypt", path, copies[2], "--write-plaintext"], json: json)
        try run(["encrypt", copies[2], copies[3]], json: json)
        try run(["upgrade", path, copies[4]], json: json)
        try run(["rekey", path, "--new-raw-key-fd", "4"], json: json)
        try run(["rekey", path, "--new-raw-key-fd", "4"], json: json)
        try run(["verify", path], exitCode: 12, json: json)
        let missing = folder.path(name + "no.csv")
        try run(["import", path, missing, "--table", name], exitCode: 10, json: json)
        try run(["bogus" + name], exitCode: 2, json: json)
        try run(["status", path, "--" + name], exitCode: 2, json: json)
        for file in [path + ".new-0123456789abcdef", path + ".new-0123456789abcdef-lock"] {
            try Data().write(to: URL(filePath: file))
        }
        try run(["doctor", path], json: json)
        try run(["doctor", folder.url.path], json: json)
        try run(["doctor", missing], exitCode: 10, json: json)
    }

    /// Runs the tool on a pseudo-terminal and returns what the terminal shows.
    private func shown(_ arguments: [String]) throws -> Data {
        let script = """
            import os, pty, sys
            child, terminal = pty.fork()
            if child == 0:
                os.dup2(os.open(sys.argv[1], os.O_RDONLY), 9)
                os.execv(sys.argv[2], sys.argv[2:])
            shown = b''
            while True:
                try:
                    more = os.read(terminal, 4096)
                except OSError:
                    break
                if not more:
                    break
                shown += more
            os.waitpid(child, 0)
            sys.stdout.buffer.write(shown)
            """
        let key = folder.path("key")
        try Tool.key(1).write(to: URL(filePath: key))
        return try Tool.runProgram(
            ["python3", "-c", script, key, Tool.executable.path] + arguments
                + ["--raw-key-fd", "9"]
        ).stdout
    }

    @Test
    func `data reaches a pipe unchanged, and a terminal without characters that it would obey`()
        throws
    {
        let path = folder.path()
        try run(["init", path], json: false)
        try run(["kv", "put", path, "b", "k", Self.name], json: false)
        let get = ["kv", "get", path, "b", "k"]
        let piped = try Tool.run(get + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(piped.text == Self.name + "\n")
        let scalars = Self.name.unicodeScalars.map { String($0.value) }.joined(separator: ",")
        for arguments in [
            get, ["export", path], ["sql", path, "SELECT char(\(scalars)) AS a"],
            ["sql", path, "SELECT char(\(scalars)) AS a", "--format", "csv"],
        ] {
            let text = String(decoding: try shown(arguments), as: UTF8.self)
            // SQL has such a text in hexadecimal.
            if arguments[0] != "export" {
                #expect(text.contains("é中😀"), "\(arguments[0]): \(text)")
            }
            // The terminal itself expands a newline; a tab stays a tab.
            let rest = text.replacing("\r\n", with: "").replacing("\t", with: "")
            expectHarmless(Data(rest.utf8), arguments[0])
        }
    }
}
