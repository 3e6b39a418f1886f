import Foundation
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Replicas of transactions and files that are larger than all that a replica may keep in memory.
@Suite(.againstHanging, .onOwnThreads) struct LargeReplicaTests {
    /// 60 MB with a WAL by default, 200 in a long run.
    @Test(arguments: isLongRun ? journalModes : [.wal])
    func `a large transaction is sent and restored in little memory`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        let remote = folder.url.appending(path: "remote")
        try FileManager.default.createDirectory(at: remote, withIntermediateDirectories: false)
        let rowCount = tryCount(60, long: 200)
        let lines = try Peer.run([
            "replicate-large", mode.description, folder.path(), remote.path, "\(rowCount)",
        ])
        let words = lines.first?.split(separator: " ").map(String.init) ?? []
        try #require(words.count == 6, "\(lines)")
        let (sent, restored) = (Int(words[1]) ?? .max, Int(words[3]) ?? .max)
        // The cache of the check counts too.
        #expect(sent < 90 && restored < tryCount(120, long: 190), "\(lines) MB")
        #expect(words[5] == "\(rowCount)")
    }

    /// SQLite never writes the page at 1 GiB. It takes minutes without optimisation.
    @Test(.enabled(if: isLongRun, "it writes more than a GiB"))
    func `a file above 1 GiB is sent and restored, with the page of SQLite's locks`()
        async throws
    {
        let fixture = try ReplicaFixture()
        let store = try fixture.makeStore()
        // Beyond the first GiB.
        for part in 0..<11 {
            try fixture.insert(part * 100..<part * 100 + 100, 1_000_000, in: store)
        }
        let remote = LaterFolder(
            folder: try FolderRemote(fixture.folder.url.path), fixture: fixture)
        let replica = try await store.replicate(to: remote, fixture.options)
        let first = try await replica.caughtUp()
        try fixture.insert(2000..<2002, in: store)
        #expect(try await fixture.nextDay(replica))
        try await store.write { tx in try tx.execute("DELETE FROM t WHERE v BETWEEN 10 AND 19") }
        try await replica.close()
        try await store.close()
        let copy = fixture.folder.path("copy.db")
        for (moment, rowCount) in [(ReplicaMoment.position(first), 1100), (.newest, 1092)] {
            try await Store.restore(
                from: remote, to: copy, key: .numbered(1), at: moment, configuration: .testing())
            #expect(try Damage.byteCount(copy) > 1 << 30)
            let restored = try fixture.open("copy.db")
            let report = try await restored.verify()
            #expect(report.isGood)
            #expect(try fixture.numbers(in: restored).count == rowCount)
            try await restored.close()
            removeStore(copy)
        }
    }
}

/// A folder whose clock is that of a fixture.
private struct LaterFolder: Remote {
    let folder: FolderRemote
    let fixture: ReplicaFixture

    var place: String { folder.place }

    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation> {
        RemoteAnswer(try await folder.create(name, bytes).value, time: fixture.date)
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        RemoteAnswer(try await folder.read(name, range).value, time: fixture.date)
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await folder.names(withPrefix: prefix, after: name)
    }

    func delete(_ name: String) async throws { try await folder.delete(name) }
}
