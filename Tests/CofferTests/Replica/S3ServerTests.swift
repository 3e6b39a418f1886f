import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferReplica

/// A remote on a real service: the one that `COFFER_TEST_S3` names. `Scripts/servers start` starts
/// one.
@Suite(
    .againstHanging, .onOwnThreads,
    .enabled(
        if: S3Server.url != nil || Repository.isCI,
        "COFFER_TEST_S3 names no service: see Scripts/servers"))
struct S3ServerTests {
    /// Names of this test only.
    private let folder = "test/\(UInt64.random(in: 0 ... .max))"

    private func remote(_ transport: (any HTTPTransport)? = nil) throws -> S3Remote {
        try S3Remote(
            try #require(S3Server.url), credentials: .file(try #require(S3Server.credentials)),
            transport: transport)
    }

    @Test func `the service creates each name once`() async throws {
        try await RemoteProof(remote()).run()
    }

    @Test func `an object of the largest size comes back, whole and in parts`() async throws {
        let remote = try remote()
        let name = "\(folder)/large"
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<S3Remote.objectByteCountMax / 8).flatMap { _ in
            withUnsafeBytes(of: generator.next()) { Array($0) }
        }
        let made = try await remote.create(name, bytes)
        #expect(made.value == .created)
        #expect(abs(try #require(made.time).timeIntervalSinceNow) < 60)
        #expect(try await remote.read(name).value == bytes)
        let middle = bytes.count / 2..<bytes.count / 2 + 100_000
        #expect(try await remote.read(name, middle).value == Array(bytes[middle]))
        let end = bytes.count - 5..<bytes.count + 5
        #expect(try await remote.read(name, end).value == Array(bytes.suffix(5)))
        #expect(try await remote.read(name, bytes.count..<bytes.count + 1).value == [])
        #expect(try await remote.read(name, 7..<7).value == [])
        try await remote.delete(name)
        #expect(try await remote.read(name).value == nil)
        try await remote.delete(name)
    }

    @Test func `an object without bytes is one`() async throws {
        let remote = try remote()
        let name = "\(folder)/empty"
        #expect(try await remote.create(name, []).value == .created)
        #expect(try await remote.create(name, [1]).value == .exists)
        #expect(try await remote.read(name).value == [])
        #expect(try await remote.read(name, 0..<4).value == [])
        try await remote.delete(name)
    }

    @Test func `names are listed a thousand at a time`() async throws {
        let remote = try remote()
        let names = (0..<1003).map { "\(folder)/list/\(10_000 + $0)" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for part in 0..<8 {
                group.addTask {
                    for index in stride(from: part, to: names.count, by: 8) {
                        _ = try await remote.create(names[index], [1])
                    }
                }
            }
            try await group.waitForAll()
        }
        let prefix = "\(folder)/list/"
        let first = try await remote.names(withPrefix: prefix, after: "")
        #expect(first == Array(names.prefix(1000)))
        #expect(
            try await remote.names(withPrefix: prefix, after: first.last ?? "")
                == Array(names.suffix(3)))
        #expect(try await remote.names(withPrefix: "\(folder)/none", after: "") == [])
        for name in names { try await remote.delete(name) }
    }

    @Test func `a body that changes on its way is not taken`() async throws {
        let name = "\(folder)/changed"
        let changing = ChangingTransport()
        await expect(.remoteUnavailable) {
            try await remote(changing).create(name, Array("the body".utf8))
        }
        #expect(try await remote().read(name).value == nil)
    }

    @Test func `a store that was replicated to it comes back, and a second owner is refused`()
        async throws
    {
        let files = try TemporaryFolder()
        let url = try #require(S3Server.url) + "/\(folder)"
        let remote = try S3Remote(url, credentials: .file(try #require(S3Server.credentials)))
        let store = try await Store(
            path: files.path(), key: .numbered(1), configuration: .testing())
        try await store.write { tx in try tx.execute("CREATE TABLE t(v, filler)") }
        let replica = try await store.replicate(to: remote)
        for value in 1...3 {
            // More than one record of 8 MiB.
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (\(value), zeroblob(5000000))")
            }
            try await replica.caughtUp()
        }
        var other = ReplicaOptions()
        other.owner = "another"
        await expect(.ownedElsewhere) { _ = try await store.replicate(to: remote, other) }
        try await replica.close()
        try await store.close()
        let report = try await Store.restore(
            from: remote, to: files.path("copy"), key: .numbered(1), configuration: .testing())
        #expect(report.copy.rowCount == 3)
        #expect(
            try Dump.store(files.path("copy"), key: 1) == Dump.store(files.path(), key: 1))
    }

    @Test func `a wrong secret, a wrong key and an absent bucket are told apart`() async throws {
        let url = try #require(S3Server.url)
        let file = try #require(S3Server.credentials)
        let id = try CredentialFile.keys(file, profile: "default").accessKeyID
        for id in [id, "AKINOBODY"] {
            let denied = try S3Remote(
                url, credentials: .keys(accessKeyID: id, secretAccessKey: "wrong"))
            await expect(.remoteDenied) { try await denied.create("\(folder)/a", [1]) }
            await expect(.remoteDenied) { try await denied.read("\(folder)/a") }
        }
        let origin = try S3Location(url).origin
        let absent = try S3Remote("\(origin)/no-such-bucket-here", credentials: .file(file))
        await expect(.notFound) { try await absent.create("a", [1]) }
        await expect(.notFound) { try await absent.read("a") }
        await expect(.notFound) { try await absent.names(withPrefix: "", after: "") }
    }
}

/// The service that the environment names.
enum S3Server {
    static let url = ProcessInfo.processInfo.environment["COFFER_TEST_S3"]
    static let credentials = ProcessInfo.processInfo.environment["COFFER_TEST_S3_CREDENTIALS"]
}

/// Changes one bit of each body, after it was signed.
private struct ChangingTransport: HTTPTransport {
    private let transport = CurlTransport()

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        var body = request.body
        if !body.isEmpty { body[0] ^= 1 }
        return try await transport.send(
            HTTPRequest(
                method: request.method, url: request.url, headers: request.headers, body: body,
                timeout: request.timeout, byteCountMax: request.byteCountMax))
    }
}
