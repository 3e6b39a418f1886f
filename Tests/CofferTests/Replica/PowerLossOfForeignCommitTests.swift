import CFileRecorder
import Foundation
import Testing
import Workload

@testable import Coffer

/// Power losses of a machine on which one process writes, with the engine alone, and another one
/// replicates: 60 by default, 3 000 in a long run.
@Suite(.againstHanging, .onOwnThreads, .enabled(if: recorder_is_available()))
struct PowerLossOfForeignCommitTests {
    private static let rowCount = 5

    @Test(arguments: journalModes)
    func `a power loss takes back no commit of a foreign program that the remote has`(
        mode: Configuration.JournalMode
    ) throws {
        try run(mode, seed: testSeed()).expectNothingLost("power losses of a foreign commit")
    }

    @Test func `the harness fails on a disk that does not sync`() throws {
        #expect(try run(.wal, seed: testSeed(), ignoresSyncs: true).lostCount > 0)
    }

    /// Loses power just after the remote has got a commit.
    private func run(
        _ mode: Configuration.JournalMode, seed: UInt64, ignoresSyncs: Bool = false
    ) throws -> Tally {
        let disk = try record(mode, ignoresSyncs)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for _ in 0..<tryCount(6, long: 300) {
            for number in 1...Self.rowCount {
                guard let mark = disk.number(ofMark: "sent \(number)") else {
                    throw WorkloadError("row \(number) was not sent")
                }
                var generator: SeededGenerator? = SeededGenerator(seed: random.next())
                let folder = try TemporaryFolder()
                try disk.write(to: folder.url, after: mark, lossBy: &generator)
                let found = Result { try rowCount(in: folder, mode) }
                let isThere = (try? found.get()).map { $0 >= number } ?? false
                tally.add(isThere ? [] : ["\(found) rows of \(number)"], "\(mode), seed \(seed)")
            }
        }
        return tally
    }

    /// As a program gets it unasked: with a WAL, the commit is not synced.
    private func record(
        _ mode: Configuration.JournalMode, _ ignoresSyncs: Bool
    ) throws -> RecordedDisk {
        let (folder, other) = (try TemporaryFolder(), try TemporaryFolder())
        try makeStore(folder.path(), mode)
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: folder.path())))
        let said = try Peer.run([
            "replicate-foreign", mode.description, mode == .wal ? "NORMAL" : "FULL", folder.path(),
            other.path("record"), try remote(in: other), "\(Self.rowCount)",
        ])
        guard said == ["done"] else { throw WorkloadError("it said \(said)") }
        var disk = try RecordedDisk(
            ["store.db": bytes], record: other.path("record"), of: folder.url)
        disk.ignoresSyncs = ignoresSyncs
        return disk
    }

    private func remote(in folder: TemporaryFolder) throws -> String {
        let remote = folder.url.appending(path: "remote")
        try FileManager.default.createDirectory(at: remote, withIntermediateDirectories: false)
        return remote.path
    }

    private func makeStore(_ path: String, _ mode: Configuration.JournalMode) throws {
        let store = try Store(path: path, key: KeyringVerb.key(0), configuration: .testing(mode))
        try store.write { tx in try tx.execute("CREATE TABLE t(v, filler)") }
        try store.close()
    }

    private func rowCount(
        in folder: TemporaryFolder, _ mode: Configuration.JournalMode
    ) throws -> Int {
        let store = try Store(
            path: folder.path(), key: KeyringVerb.key(0), mode: .mustExist,
            configuration: .testing(mode))
        defer { try? store.close() }
        return try store.read { tx in
            guard try tx.integrityProblems().isEmpty else { return -1 }
            return try tx.requireScalar("SELECT count(*) FROM t", as: Int.self)
        }
    }
}
