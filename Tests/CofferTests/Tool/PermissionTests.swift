import Foundation
import Testing

@testable import Coffer

/// Who may read and write the files that the tool makes.
@Suite(.againstHanging) struct PermissionTests {
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

    private func permissions(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
}
