import Foundation
import Testing

@testable import Coffer

/// The permissions of files that the tool makes.
@Suite(.againstHanging, .onOwnThreads) struct PermissionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: ["000", "022", "277"])
    func `init and decrypt make files that only their owner may use, whatever the umask`(
        umask: String
    ) throws {
        let wrapper = ["sh", "-c", "umask \(umask) && exec \"$@\"", "sh"]
        for mode in journalModes {
            let path = folder.path("\(mode).db")
            let made = try Tool.run(
                ["init", path, "--journal-mode", mode.description, "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(1)], under: wrapper)
            #expect(made.exitCode == 0, "\(made.errorText)")
            #expect(try permissions(path) == 0o600)
            let plain = folder.path("\(mode)-plain.db")
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            let copied = try Tool.run(
                ["decrypt", path, plain, "--write-plaintext", "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(1)], under: wrapper)
            #expect(copied.exitCode == 0, "\(copied.errorText)")
            #expect(try permissions(plain) == 0o600)
        }
    }

    // MARK: Refusals

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason), arguments: journalModes)
    func `a change in a folder without write permission has exit code 21`(
        mode: Configuration.JournalMode
    ) throws {
        let path = folder.path()
        try ReadingVerbs.make(path, mode)
        try OtherUser.giveAway(folder, file: 0o666, folder: 0o755)
        let output = try Tool.run(
            ["sql", path, "DELETE FROM t", "--write", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], under: OtherUser.stranger)
        #expect(output.exitCode == 21, "\(output.errorText)")
        #expect(output.errorText.contains("folder"), "\(output.errorText)")
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason), arguments: journalModes)
    func `a refused change leaves nothing that would lock the owner out`(
        mode: Configuration.JournalMode
    ) throws {
        let path = folder.path()
        try ReadingVerbs.make(path, mode)
        for (user, file) in [(OtherUser.stranger, 0o644), (OtherUser.themselves, 0o444)] {
            try OtherUser.giveAway(folder, file: file, folder: 0o777)
            let before = try folder.content()
            for arguments in [
                ["rekey", path, "--new-raw-key-fd", "4"],
                ["sql", path, "DELETE FROM t", "--write"],
            ] {
                let output = try Tool.run(
                    arguments + ["--raw-key-fd", "3"],
                    descriptors: [3: Tool.key(1), 4: Tool.key(2)], under: user)
                #expect(output.exitCode == 21, "\(output.errorText)")
                #expect(try folder.content() == before)
            }
        }
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `a file without read permission, or an unusable one next to it, is named`() throws {
        let path = folder.path()
        try ReadingVerbs.make(path, .wal)
        try OtherUser.giveAway(folder, file: 0o600, folder: 0o777)
        for arguments in [["status", path], ["verify", path, "--raw-key-fd", "3"]] {
            let output = try Tool.run(
                arguments, descriptors: [3: Tool.key(1)], under: OtherUser.stranger)
            #expect(output.exitCode == 17)
            #expect(output.errorText.contains("may not read"), "\(output.errorText)")
            #expect(output.errorText.contains("belongs to \(OtherUser.owner), mode 600"))
        }
        try Data().write(to: URL(filePath: path + "-shm"))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: path + "-shm")
        let output = try Tool.run(
            ["sql", path, "DELETE FROM t", "--write", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], under: OtherUser.themselves)
        #expect(output.exitCode == 21, "\(output.errorText)")
        #expect(output.errorText.contains("-shm (it belongs to root, mode 644)"))
    }

    private func permissions(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
}
