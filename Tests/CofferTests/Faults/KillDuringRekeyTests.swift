import Foundation
import Testing

@testable import Coffer

/// A process that is killed while it changes the key leaves the old key or the new one, never both
/// and never neither, with every row.
@Suite struct KillDuringRekeyTests {
    private static let killCount = isLongRun ? 500 : 50
    private static let rowCount = 1500

    @Test(.againstHanging, arguments: journalModes)
    func `kill -9 at random moments leaves exactly one key and every row`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        let original = folder.path("original.db")
        let sum = try make(original, mode)
        let duration = try measure(original, folder, mode)
        var newKeyCount = 0
        var interruptedCount = 0
        for round in 0..<Self.killCount {
            let path = try folder.copy(original, as: "round\(round).db")
            let peer = try Peer(["rekey", mode.description, path, "1", "2"])
            try #require(peer.line() == "ready")
            peer.goOn()
            usleep(UInt32.random(in: 0...duration))
            peer.kill()
            if try FileLocation(path).hasPendingChanges { interruptedCount += 1 }
            let keys = try [UInt8(1), 2].shuffled().filter { key in
                try opens(path, key: key, mode, sum: sum)
            }
            try #require(keys.count == 1, "keys that open: \(keys), round \(round)")
            if keys == [2] { newKeyCount += 1 }
            removeStore(path)
        }
        print(
            "killed \(Self.killCount) rekeys in \(mode): \(newKeyCount) under the new key, "
                + "\(interruptedCount) with a journal or log left, 0 lost")
    }

    private func make(_ path: String, _ mode: Configuration.JournalMode) throws -> Int {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<Self.rowCount {
                let filler = [UInt8](repeating: 3, count: 3000)
                try connection.execute("INSERT INTO t(v) VALUES (\(filler))")
            }
        }
        connection.close()
        return Self.rowCount * (Self.rowCount + 1) / 2
    }

    /// Microseconds that an undisturbed rekey takes, process start not counted.
    private func measure(
        _ original: String, _ folder: TemporaryFolder, _ mode: Configuration.JournalMode
    ) throws -> UInt32 {
        let path = try folder.copy(original, as: "measured.db")
        let peer = try Peer(["rekey", mode.description, path, "1", "2"])
        try #require(peer.line() == "ready")
        let start = ContinuousClock.now
        peer.goOn()
        #expect(peer.finish() == ["rekeyed"])
        let taken = ContinuousClock.now - start
        return UInt32(max(1, taken.milliseconds)) * 1000
    }

    private func opens(
        _ path: String, key: UInt8, _ mode: Configuration.JournalMode, sum: Int
    ) throws -> Bool {
        do {
            let connection = try Connection(
                path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(mode))
            let row = try #require(
                try connection.firstRow("SELECT count(*), sum(id), sum(length(v)) FROM t"))
            #expect(
                row.values == [
                    .integer(Int64(Self.rowCount)), .integer(Int64(sum)),
                    .integer(Int64(Self.rowCount * 3000)),
                ])
            #expect(try connection.firstRow("PRAGMA integrity_check")?[0] == .text("ok"))
            return true
        } catch let error as StoreError where error.code == .wrongKey {
            return false
        }
    }
}
