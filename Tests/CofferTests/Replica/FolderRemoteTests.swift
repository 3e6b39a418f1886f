import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct FolderRemoteTests {
    private let folder: TemporaryFolder
    private let remote: FolderRemote

    init() throws {
        folder = try TemporaryFolder()
        remote = try FolderRemote(folder.url.path)
    }

    @Test func `an object is created once, and reads as it was written`() async throws {
        #expect(try await remote.read("log/1/2").value == nil)
        let created = try await remote.create("log/1/2", Array(1...9))
        #expect(created.value == .created)
        #expect(abs(try #require(created.time).timeIntervalSinceNow) < 60)
        #expect(try await remote.create("log/1/2", [4]).value == .exists)
        #expect(try await remote.read("log/1/2").value == Array(1...9))
        #expect(try await remote.read("log/1/2", 3..<5).value == [4, 5])
        #expect(try await remote.read("log/1/2", 7..<50).value == [8, 9])
        #expect(try await remote.read("log/1/2", 70..<80).value == [])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("log/1/2"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `names are sorted, and unfinished files are not among them`() async throws {
        for name in ["log/2/b", "log/1/a", "store", "log/1/b"] {
            _ = try await remote.create(name, [1])
        }
        try Data().write(to: folder.url.appending(path: "log/1/.new-77"))
        #expect(
            try await remote.names(withPrefix: "log/", after: "") == [
                "log/1/a", "log/1/b", "log/2/b",
            ])
        #expect(try await remote.names(withPrefix: "log/1", after: "log/1/a") == ["log/1/b"])
        #expect(try await remote.names(withPrefix: "none/", after: "") == [])
        try await remote.delete("log/1/b")
        try await remote.delete("log/1/b")
        #expect(try await remote.names(withPrefix: "log/1", after: "") == ["log/1/a"])
    }

    @Test(arguments: [
        "", "/a", "a/", "a//b", "../a", "a/../b", ".new-1", "A", "a b", "ä",
        String(repeating: "a", count: 201),
    ])
    func `a name that could be another file is refused`(name: String) async throws {
        let error = await #expect(throws: StoreError.self) { try await remote.create(name, [1]) }
        #expect(error?.code == .misuse)
    }

    @Test func `a folder that is missing is not made, and one that vanishes is an error`()
        async throws
    {
        let missing = #expect(throws: StoreError.self) {
            try FolderRemote(folder.path("missing"))
        }
        #expect(missing?.code == .notFound)
        #expect(missing?.hint?.contains("mount") == true)
        try Data().write(to: folder.url.appending(path: "file"))
        #expect(throws: StoreError.self) { try FolderRemote(folder.path("file")) }
        let lower = folder.url.appending(path: "lower")
        try FileManager.default.createDirectory(at: lower, withIntermediateDirectories: false)
        let other = try FolderRemote(lower.path)
        try FileManager.default.removeItem(at: lower)
        await #expect(throws: StoreError.self) { try await other.create("log/1", [1]) }
        await #expect(throws: StoreError.self) { try await other.read("log/1") }
        #expect(!FileManager.default.fileExists(atPath: lower.path))
    }

    @Test func `a link in the place of an object is not followed`() async throws {
        let secret = folder.url.appending(path: "secret")
        try Data([1, 2, 3]).write(to: secret)
        try FileManager.default.createSymbolicLink(
            at: folder.url.appending(path: "store"), withDestinationURL: secret)
        await #expect(throws: StoreError.self) { try await remote.read("store") }
        #expect(try await remote.create("store", [9]).value == .exists)
        #expect(try Data(contentsOf: secret) == Data([1, 2, 3]))
    }

    @Test func `another folder at the path is not taken for the remote`() async throws {
        // As an empty mount point looks while its disk is away.
        let mount = folder.url.appending(path: "mount")
        try FileManager.default.createDirectory(at: mount, withIntermediateDirectories: false)
        let other = try FolderRemote(mount.path)
        _ = try await other.create("log/1", [1])
        let away = folder.url.appending(path: "away")
        try FileManager.default.moveItem(at: mount, to: away)
        try FileManager.default.createDirectory(at: mount, withIntermediateDirectories: false)
        await expect(.remoteUnavailable) { _ = try await other.create("log/2", [1]) }
        await expect(.remoteUnavailable) { _ = try await other.read("log/1") }
        await expect(.remoteUnavailable) { _ = try await other.names(withPrefix: "", after: "") }
        await expect(.remoteUnavailable) { try await other.delete("log/1") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: mount.path) == [])
        try FileManager.default.removeItem(at: mount)
        try FileManager.default.moveItem(at: away, to: mount)
        #expect(try await other.create("log/2", [2]).value == .created)
        #expect(try await other.read("log/1").value == [1])
    }

    @Test func `an object that a backup has linked is not taken for a new one`() async throws {
        _ = try await remote.create("log/1", [1])
        // Every file has a second name, also the unfinished ones.
        try FileManager.default.linkItem(
            atPath: folder.path("log/1"), toPath: folder.path("log/linked"))
        #expect(try await remote.create("log/1", [2]).value == .exists)
        #expect(try await remote.read("log/1").value == [1])
    }

    @Test func `the proof of a remote leaves no folder behind`() async throws {
        try await RemoteProof(remote).run()
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path("proof")) == [])
    }

    @Test func `an object that somebody else has deleted, with its folder, is deleted`()
        async throws
    {
        let remote = try FolderRemote(folder.url.path)
        for _ in 0..<2 {
            _ = try await remote.create("snap/a/b/c", [1])
            try await remote.delete("snap/a/b/c")
            #expect(try await remote.names(withPrefix: "", after: "").isEmpty)
            #expect(!FileManager.default.fileExists(atPath: folder.path("snap/a")))
            try await remote.delete("snap/a/b/c")
        }
    }
}
