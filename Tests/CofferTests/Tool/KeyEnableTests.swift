import Foundation
import Testing

@testable import Coffer

/// `coffer key enable`
@Suite(.againstHanging, .onOwnThreads) struct KeyEnableTests {
    private let folder: TemporaryFolder
    private let path: String
    private let words: [String]

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        words = ["--passphrase-file", folder.path("old"), "--new-passphrase-file"]
        for name in ["old", "new"] {
            try Data("\(name)\n".utf8).write(to: URL(filePath: folder.path(name)))
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600], ofItemAtPath: folder.path(name))
        }
        let store = try Store(path: path, key: .passphrase("old"), configuration: .testing())
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (1)")
        }
        try store.close()
    }

    private func enable(
        _ options: [String], exitCode: Int32 = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(
            ["key", "enable", path] + words + [folder.path("new")] + options)
        #expect(
            output.exitCode == exitCode, "\(output.text)\(output.errorText)",
            sourceLocation: sourceLocation)
        return output
    }

    private func rowCount(_ secret: String...) throws -> String {
        try Tool.run(["sql", path, "SELECT count(*) FROM t", "--format", "csv"] + secret).text
    }

    @Test func `a store gets a keyring and a recovery key, and the command can be repeated`()
        throws
    {
        let letters = folder.path("letters")
        let output = try enable(["--label", "me", "--recovery-key-out", letters])
        #expect(output.text.contains("the keyring opens it"), "\(output.text)")
        #expect(output.text.contains("slot 1:") && output.text.contains("slot 2:"))
        #expect(output.errorText.contains("make a new backup"), "\(output.errorText)")
        #expect(try rowCount("--passphrase-file", folder.path("new")).contains("1"))
        let paper = try Tool.run(
            ["sql", path, "SELECT count(*) FROM t", "--recovery-key-fd", "3"],
            descriptors: [3: Data(contentsOf: URL(filePath: letters))])
        #expect(paper.exitCode == 0 && paper.text.contains("1"), "\(paper.errorText)")
        #expect(try rowCount("--passphrase-file", folder.path("old")).isEmpty)
        let again = try enable(["--recovery-key-out", folder.path("more")])
        #expect(again.errorText.contains("made no recovery key"), "\(again.errorText)")
        #expect(again.text.contains("opened it before"), "\(again.text)")
    }

    @Test func `it says how to go on beside other programs`() throws {
        let path = folder.path("raw.db")
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        _ = peer.line()
        func enable(_ options: String...) throws -> Tool.Output {
            try Tool.run(
                ["key", "enable", path, "--raw-key-fd", "3", "--no-recovery-key"]
                    + ["--new-passphrase-file", folder.path("new")] + options,
                descriptors: [3: Tool.key(1)])
        }
        let refused = try enable()
        #expect(refused.exitCode == 11 && refused.errorText.contains("--end-others"))
        let done = try enable("--end-others")
        #expect(done.exitCode == 18 && done.errorText.contains("coffer checkpoint"))
        _ = peer.finish()
        let moved = try Tool.run(["checkpoint", path, "--passphrase-file", folder.path("new")])
        #expect(moved.exitCode == 0, "\(moved.errorText)")
        let status = try Tool.run(
            ["status", path, "--test-key", "--passphrase-file", folder.path("new"), "--json"])
        #expect(status.text.contains(#""opensWithoutWAL":true"#), "\(status.text)")
    }

    @Test func `a run that was interrupted is named, and the same command finishes`() throws {
        try KeyringFixture.leaveUnusedKeyring(at: path)
        let status = try Tool.run(["status", path])
        #expect(status.text.contains("coffer key enable again"), "\(status.text)")
        let doctor = try Tool.run(["doctor", path])
        #expect(doctor.text.contains("coffer key enable again"), "\(doctor.text)")
        // The passphrase of before opens it until then.
        #expect(try rowCount("--passphrase-file", folder.path("old")).contains("1"))
        let refused = try Tool.run(
            ["sql", path, "SELECT 1", "--passphrase-file", folder.path("new")])
        #expect(refused.errorText.contains("coffer key enable has begun and not ended"))
        let used = try enable(["--recovery-key-out", folder.path("old")], exitCode: 22)
        #expect(used.errorText.contains("opens nothing: remove it"), "\(used.errorText)")
        _ = try enable(["--no-recovery-key"])
        #expect(try rowCount("--passphrase-file", folder.path("new")).contains("1"))
    }

    @Test func `it refuses what is no key of the store, and what is no credential`() throws {
        let file = ["--new-key-file", folder.path("old"), "--no-recovery-key"]
        for options in [
            ["--key-file", folder.path("old")] + file,
            words + [folder.path("old"), "--no-recovery-key"],
            words + [folder.path("new"), "--no-recovery-key", "--recovery-key-out", "x"],
            words + [folder.path("new"), "--recovery-key-out", path + ".keyring"],
        ] {
            let output = try Tool.run(["key", "enable", path] + options)
            #expect([2, 19].contains(output.exitCode), "\(output.errorText)")
        }
        #expect(try !Keyring.exists(for: path))
        // Nobody can be asked for the letters.
        #expect(try enable([], exitCode: 19).errorText.contains("--recovery-key-out"))
        #expect(try !Keyring.exists(for: path))
        #expect(try rowCount("--passphrase-file", folder.path("old")).contains("1"))
    }
}
