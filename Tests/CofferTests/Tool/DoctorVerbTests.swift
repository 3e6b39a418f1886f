import Foundation
import Testing

@testable import Coffer

/// `coffer doctor` on a folder with folders in it.
@Suite(.againstHanging, .onOwnThreads) struct DoctorVerbTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ name: String, permissions: Int = 0o600) throws {
        let path = folder.path(name)
        try FileManager.default.createDirectory(
            atPath: URL(filePath: path).deletingLastPathComponent().path,
            withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try Connection(path: path, key: .numbered(1), configuration: .testing(.delete)).close()
        try FileManager.default.setAttributes(
            [.posixPermissions: permissions], ofItemAtPath: path)
    }

    /// Name, state and path of each check about a file or folder below the folder.
    private func findings(_ options: String..., exitCode: Int32 = 0) throws -> [String] {
        let output = try Tool.run(["doctor", folder.url.path, "--json"] + options)
        #expect(output.exitCode == exitCode, "\(output.errorText)")
        let report = try #require(
            JSONSerialization.jsonObject(with: output.stdout) as? [String: Any])
        let checks = try #require(report["checks"] as? [[String: Any]])
        return checks.compactMap { check in
            guard let path = check["path"] as? String else { return nil }
            let name = path.replacing(folder.url.path + "/", with: "")
            return "\(check["name"] ?? "") \(check["state"] ?? "") \(name)"
        }
    }

    @Test func `a tree of good stores has no findings, and the stores are counted`() throws {
        for name in ["a.db", "one/b.sqlite", "one/two/c.db"] { try make(name) }
        // A picture, a link in a circle and a file of another name are not stores.
        try Data((0..<4096).map { _ in UInt8.random(in: 0...255) })
            .write(to: URL(filePath: folder.path("one/picture.png")))
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("one/up"), withDestinationPath: folder.url.path)
        try Data().write(to: URL(filePath: folder.path("empty.txt")))
        #expect(try findings() == [])
        let text = try Tool.run(["doctor", folder.url.path]).text
        #expect(text.contains("3 looked at"))
    }

    @Test func `every finding about a file is found in the whole tree, and names the file`() throws
    {
        try make("good.db")
        try make("open/shared.db", permissions: 0o644)
        try make("kept.db.old-1")
        let plain = folder.path("open/plain.data")
        try #require(try RawConnection(plain).run("CREATE TABLE t(v)") == 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: plain)
        try Data([1]).write(to: URL(filePath: folder.path("open/lost.db-wal")))
        try FileManager.default.linkItem(
            atPath: folder.path("good.db"), toPath: folder.path("open/again.db"))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o777], ofItemAtPath: folder.path("open"))
        try Data([1]).write(
            to: URL(filePath: folder.path("open/x.db.new-0123456789abcdef")))
        // Not of the form of an unfinished file.
        for name in ["open/customers.new-2026.db", "open/x.new-0123456789abcdef.db"] {
            try #require(try RawConnection(folder.path(name)).run("CREATE TABLE t(v)") == 0)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600], ofItemAtPath: folder.path(name))
        }
        try Data([1]).write(
            to: URL(filePath: folder.path("open/x.db.new-0123456789abcdef-journal")))
        try Data([1]).write(to: URL(filePath: folder.path("open/y.new-2026.db-wal")))
        #expect(
            try Set(findings()) == [
                "format warning open/customers.new-2026.db",
                "format warning open/x.new-0123456789abcdef.db",
                "journal warning open/y.new-2026.db-wal",
                "names warning good.db", "names warning open/again.db",
                "file warning open/shared.db", "old store warning kept.db.old-1",
                "format warning open/plain.data", "journal warning open/lost.db-wal",
                "folder warning open", "unfinished warning open/x.db.new-0123456789abcdef",
            ])
    }

    @Test func `what is left of a store that was emptied or cut off is named`() throws {
        try make("cut.db")
        let cut = try FileHandle(forWritingTo: URL(filePath: folder.path("cut.db")))
        try cut.truncate(atOffset: 300)
        try cut.close()
        let empty = URL(filePath: folder.path("empty.sqlite"))
        try Data().write(to: empty)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: empty.path)
        #expect(
            try Set(findings()) == ["format warning cut.db", "format warning empty.sqlite"])
        let text = try Tool.run(["doctor", empty.path]).text
        #expect(text.contains("coffer restore BACKUP"), "\(text)")
        #expect(try Tool.run(["doctor", folder.url.path]).text.contains("0 looked at"))
    }

    @Test func `a keyring without its store, and a damaged one, are named`() throws {
        for name in ["good.db", "alone.db", "damaged.db", "open.db"] {
            try Store(
                path: folder.path(name),
                key: .keyring(.keyFile([UInt8](repeating: 1, count: 32))),
                configuration: .testing(.delete)
            ).close()
        }
        try FileManager.default.removeItem(atPath: folder.path("alone.db"))
        let damaged = URL(filePath: folder.path("damaged.db.keyring"))
        try Data(repeating: 7, count: 32_768).write(to: damaged)
        for (name, mode) in [("damaged.db", 0o600), ("open.db", 0o644)] {
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: folder.path(name + ".keyring"))
        }
        // Of another program.
        try Data([1]).write(to: URL(filePath: folder.path("login.keyring")))
        try FileManager.default.copyItem(
            atPath: folder.path("good.db.keyring"),
            toPath: folder.path("good.db.keyring.old-1"))
        #expect(
            try Set(findings(exitCode: 1)) == [
                "keyring warning alone.db.keyring", "keyring bad damaged.db.keyring",
                "keyring warning open.db.keyring", "old keyring warning good.db.keyring.old-1",
            ])
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `files and folders that cannot be read are named`() throws {
        try make("one/good.db")
        try make("closed/hidden.db")
        try make("secret.db")
        try OtherUser.giveAway(folder, file: 0o755, folder: 0o755)
        for name in ["closed", "secret.db"] {
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o000], ofItemAtPath: folder.path(name))
        }
        let output = try Tool.run(["doctor", folder.url.path], under: OtherUser.stranger)
        #expect(output.exitCode == 0, "\(output.errorText)")
        let lines = output.text.split(separator: "\n")
        for name in ["closed", "secret.db"] {
            let isNamed = lines.contains {
                $0.contains("warning: \(folder.path(name)): ") && $0.contains("looked at")
            }
            #expect(isNamed, "\(output.text)")
        }
    }

    @Test func `a name that is not UTF-8 is shown, and the file is not looked at`() throws {
        try make("good.db")
        var name = Array((folder.url.path + "/b").utf8CString.dropLast())
        name += [CChar(bitPattern: 0xe9)] + Array(".db".utf8CString)
        let descriptor = open(name, O_CREAT | O_WRONLY, 0o600)
        // A file system may refuse such names.
        guard descriptor >= 0 else { return }
        close(descriptor)
        defer { unlink(name) }
        let output = try Tool.run(["doctor", folder.url.path])
        #expect(output.exitCode == 0)
        #expect(output.text.contains(#"b\xe9.db in it is not UTF-8"#), "\(output.text)")
        #expect(try findings() == ["name warning \(folder.url.path)"])
    }
}
