import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// A storage service that answers a create of an existing object with success, and overwrites the
/// object: `rclone serve s3`.
@Suite(
    .againstHanging, .onOwnThreads,
    .enabled(if: Repository.isCI || LyingServer.canRun, "Scripts/wheels fetches rclone"))
struct LyingServerTests {
    private let folder: TemporaryFolder
    private let server: LyingServer

    init() throws {
        folder = try TemporaryFolder()
        server = try LyingServer(folder.path("served"))
    }

    private func remote() throws -> S3Remote {
        let credentials = folder.path("credentials")
        try Data(
            """
            [default]
            aws_access_key_id = \(LyingServer.name)
            aws_secret_access_key = \(LyingServer.secret)

            """.utf8
        ).write(to: URL(filePath: credentials))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: credentials)
        return try S3Remote(server.url, credentials: .file(credentials))
    }

    @Test func `a service that overwrites is refused before anything of a store is sent`()
        async throws
    {
        let remote = try remote()
        // The lie.
        let name = "test/\(UInt64.random(in: 0 ... .max))"
        #expect(try await remote.create(name, [1]).value == .created)
        #expect(try await remote.create(name, [2]).value == .created)
        #expect(try await remote.read(name).value == [2])
        try await remote.delete(name)

        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        let error = await #expect(throws: StoreError.self) {
            try await store.replicate(to: remote, .testing)
        }
        #expect(error?.code == .remoteUnfit)
        try await store.close()
        #expect(try await remote.names(withPrefix: "", after: "") == [])
    }
}

/// rclone as a service at 127.0.0.1, with the objects in a folder.
private struct LyingServer {
    private let server: LocalServer

    static let (name, secret) = ("access", "only-for-this-test")
    private static let program =
        Repository.root.appending(path: ".build-data/rclone/bin/rclone").path
    static let canRun = FileManager.default.isExecutableFile(atPath: program)

    init(_ folder: String) throws {
        try FileManager.default.createDirectory(
            atPath: folder + "/bucket", withIntermediateDirectories: true)
        server = try LocalServer(
            Self.program,
            [
                "serve", "s3", folder, "--addr", "127.0.0.1:0", "--config", "/dev/null",
                "--auth-key", "\(Self.name),\(Self.secret)",
            ], on: .error, /\[(http:[^ ]*)\/\]\n/)
    }

    var url: String { server.place + "/bucket/replica" }
}
