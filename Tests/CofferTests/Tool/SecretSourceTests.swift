import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct SecretSourceTests {
    private static let secret = "correct horse"
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        let store = try Store(
            path: path, key: .passphrase(Self.secret),
            configuration: .testing(profile: .sqlcipher3))
        try store.close()
    }

    /// A file with a secret, readable by its owner only.
    private func file(_ text: String, _ name: String = "secret") throws -> String {
        let file = folder.path(name)
        try Data(text.utf8).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        return file
    }

    private func status(
        _ options: [String], input: String = "", descriptors: [Int32: Data] = [:]
    ) throws -> Tool.Output {
        try Tool.run(
            ["status", path, "--json"] + options, input: Data(input.utf8), descriptors: descriptors)
    }

    // MARK: What opens

    @Test(arguments: ["", "\n", "\r\n"])
    func `every source gives the passphrase, without one trailing newline`(end: String) throws {
        let text = Self.secret + end
        let fromFile = try status(["--passphrase-file", try file(text)])
        let fromInput = try status(["--passphrase-stdin"], input: text)
        let fromDescriptor = try status(
            ["--passphrase-fd", "7"], descriptors: [7: Data(text.utf8)])
        let quoted = text.replacingOccurrences(of: "\r\n", with: "\\r\\n")
            .replacingOccurrences(of: "\n", with: "\\n")
        let fromCommand = try status(["--passphrase-command", "printf '\(quoted)'"])
        for output in [fromFile, fromInput, fromDescriptor, fromCommand] {
            #expect(output.exitCode == 0, "\(output.errorText)")
            #expect(output.text.contains(#""profile":"sqlcipher3""#))
            #expect(output.errorText.isEmpty, "\(output.errorText)")
        }
    }

    @Test func `a second newline and a space belong to the passphrase`() throws {
        for text in [Self.secret + "\n\n", Self.secret + " ", " " + Self.secret] {
            let output = try status(["--passphrase-stdin"], input: text)
            #expect(output.exitCode == 12)
            #expect(output.stdout.isEmpty)
        }
    }

    @Test func `a raw key comes as bytes or digits, with its salt or without`() throws {
        let path = folder.path("raw.db")
        let key = [UInt8](0..<32)
        let salt = [UInt8](100..<116)
        let store = try Store(path: path, key: .raw(key + salt))
        try store.close()
        let digits = (key + salt).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let forms: [Data] = [
            Data(key), Data(key + salt), Data(digits.utf8), Data(digits.uppercased().utf8),
            Data((digits + "\n").utf8), Data(digits.prefix(64).utf8), Data(key + salt + [10]),
        ]
        for form in forms {
            let output = try Tool.run(
                ["status", path, "--raw-key-fd", "3"], descriptors: [3: form])
            #expect(output.exitCode == 0, "\(form.count) bytes: \(output.errorText)")
        }
    }

    // MARK: What is refused

    @Test func `a source that gives no secret is exit code 19 and says why`() throws {
        let cases: [(options: [String], word: String)] = [
            (["--passphrase-file", folder.path("missing")], "cannot be opened"),
            (["--passphrase-file", try file("", "empty")], "empty"),
            (["--passphrase-file", try file("\n", "newline")], "empty"),
            (["--passphrase-file", folder.url.path], "cannot be read"),
            (["--passphrase-stdin"], "empty"),
            (["--passphrase-fd", "9"], "is not open"),
            (["--passphrase-command", "false"], "exit code 1"),
            (["--passphrase-command", "echo secret; exit 3"], "exit code 3"),
            (["--passphrase-command", "true"], "empty"),
            (["--passphrase-command", "yes"], "longer"),
            (["--raw-key-fd", "9"], "is not open"),
        ]
        for (options, word) in cases {
            let output = try status(options)
            #expect(output.exitCode == 19, "\(options)")
            #expect(output.errorText.contains(word), "\(options): \(output.errorText)")
            #expect(output.stdout.isEmpty)
        }
    }

    @Test(arguments: [0, 1, 31, 34, 47, 50, 63, 65, 97])
    func `a raw key of another length is refused with its length`(count: Int) throws {
        let output = try status(
            ["--raw-key-fd", "3"], descriptors: [3: Data(repeating: 0x61, count: count)])
        #expect(output.exitCode == 19)
        #expect(output.errorText.contains("\(count) bytes"))
        #expect(!output.errorText.contains("aaaa"))
    }

    @Test func `two sources at once are wrong usage`() throws {
        let output = try status(["--passphrase-stdin", "--passphrase-file", "x"])
        #expect(output.exitCode == 2)
        #expect(output.errorText.contains("one source"))
    }

    @Test(arguments: [
        "--passphrase", "--password", "--key", "--raw-key", "--hexkey", "--new-passphrase",
        "--new-key", "--PASSPHRASE",
    ])
    func `a secret in the arguments is refused and not repeated`(option: String) throws {
        for arguments in [[option, "hunter2hunter2"], ["\(option)=hunter2hunter2"]] {
            let output = try Tool.run(["status", path] + arguments)
            #expect(output.exitCode == 19)
            #expect(output.errorText.contains("seen by every user"))
            #expect(!output.errorText.contains("hunter2"))
            #expect(output.stdout.isEmpty)
        }
    }

    @Test func `a descriptor that the caller has not opened is refused at once`() throws {
        for number in 3...24 {
            let output = try Tool.run(
                ["status", path, "--test-key", "--passphrase-fd", "\(number)"])
            #expect(output.exitCode == 19, "\(number): \(output.errorText)")
            #expect(output.errorText.contains("descriptor \(number) is not open"))
        }
    }

    @Test func `one source for the old and the new secret is refused`() throws {
        let secret = try file(Self.secret)
        let link = folder.path("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: secret)
        let cases: [[String]] = [
            ["--passphrase-file", secret, "--new-passphrase-file", secret],
            ["--passphrase-file", secret, "--new-passphrase-file", link],
            ["--passphrase-stdin", "--new-passphrase-stdin"],
            ["--passphrase-stdin", "--new-passphrase-fd", "0"],
            ["--passphrase-stdin", "--new-passphrase-file", "/dev/stdin"],
            ["--passphrase-fd", "3", "--new-passphrase-fd", "3"],
            ["--passphrase-fd", "3", "--new-raw-key-fd", "3"],
            ["--passphrase-command", "echo a", "--new-passphrase-command", "echo a"],
        ]
        for options in cases {
            let output = try Tool.run(["rekey", path] + options, input: Data(Self.secret.utf8))
            #expect(output.exitCode == 19, "\(options)")
            #expect(output.errorText.contains("both come from"), "\(output.errorText)")
        }
        #expect(try status(["--passphrase-file", secret]).exitCode == 0)
    }

    @Test func `without a terminal there is no prompt`() throws {
        // A process in a new session has no controlling terminal.
        let output = try Tool.run(["verify", path], under: ["setsid", "-w"])
        #expect(output.exitCode == 19)
        #expect(output.errorText.contains("--passphrase-file"))
    }

    @Test func `a passphrase file that others can read is warned about`() throws {
        let secret = try file(Self.secret)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: secret)
        let output = try status(["--passphrase-file", secret])
        #expect(output.exitCode == 0)
        #expect(output.errorText.contains("chmod 600"))
    }
}
