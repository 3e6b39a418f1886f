import Foundation
import Testing
import Workload

@testable import Coffer

/// `coffer rotate` over a list of stores, killed again and again.
@Suite(.againstHanging, .onOwnThreads) struct KillDuringRotateListTests {
    private let folder: TemporaryFolder
    private let report: String
    private let list: String
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        report = folder.path("report")
        list = folder.path("list")
        try Data(Self.file).write(to: URL(filePath: folder.path("file")))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: folder.path("file"))
    }

    private struct Line: Decodable {
        let event: String
        let path: String
        let oldEpoch: Int?
        let epoch: Int?
    }

    @Test func `each store of a list has one new key, and one line that claims it`() throws {
        let count = tryCount(16, long: 3000)
        var generator = SeededGenerator(for: "a list that is killed")
        let paths = (0..<count).map { folder.path("\($0).db") }
        for path in paths { try make(path) }
        try Data(paths.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: list))
        let words =
            ["rotate", "--list", list, "--older-than", "90d", "--jobs", "2", "--report", report]
            + ["--key-file", folder.path("file"), "--quiet"]
        for part in 1...3 {
            // Each run has a line for a store that is not due, and two for the others.
            let lineCount =
                try lines().count + Int.random(in: 0..<count * part / 2, using: &generator)
            let tool = try Tool.start(words, timeout: .seconds(3600))
            try waitUntil { (try? lines().count >= lineCount) == true }
            tool.send(SIGKILL)
            #expect(try tool.finish().exitCode == 128 + SIGKILL)
        }
        // A run that outlived its list may hold a store for a moment.
        let last = try Tool.run(words + ["--busy-timeout", "600"], timeout: .seconds(3600))
        #expect(last.exitCode == 0, "\(last.errorText)")
        let changes = Dictionary(
            grouping: try lines().filter { ["rotated", "foundRotated"].contains($0.event) },
            by: \.path)
        var tally = Tally()
        for path in paths {
            tally.add(try problems(of: path, changes[path] ?? []), path)
        }
        try tally.expectNothingLost("stores of a killed list")
    }

    /// Makes a store whose key is a hundred days old.
    private func make(_ path: String) throws {
        var configuration = Configuration.testing()
        configuration.currentDate = { Date.now - 100 * 86_400 }
        let store = try Store(
            path: path, key: .keyring(.keyFile(Self.file)), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (randomblob(9000))")
        }
        try store.close()
    }

    /// The whole lines of the report.
    private func lines() throws -> [Line] {
        guard let text = FileManager.default.contents(atPath: report) else { return [] }
        return text.split(separator: UInt8(ascii: "\n")).compactMap {
            try? JSONDecoder().decode(Line.self, from: $0)
        }
    }

    private func problems(of path: String, _ changes: [Line]) throws -> [String] {
        var problems: [String] = []
        let keyring = try Keyring(of: path)
        if changes.count != 1 { problems.append("\(changes.count) lines claim a change") }
        if let change = changes.first, change.oldEpoch != 1 || change.epoch != keyring.epoch {
            problems.append("the line has \(change), and the keyring epoch \(keyring.epoch)")
        }
        let store = try Store(
            path: path, key: .keyring(.keyFile(Self.file)), mode: .mustExist,
            configuration: .testing())
        if try store.read({ tx in try tx.rows("SELECT v FROM t").count }) != 1 {
            problems.append("its row is gone")
        }
        if try !store.verify().isGood { problems.append("it is damaged") }
        let isWhole = try store.opensWithoutWAL()
        try store.close()
        if !isWhole { problems.append("its main file has another key") }
        if try opens(path, underEpoch: 1) { problems.append("it opens with the old key") }
        if try !opens(path, underEpoch: keyring.epoch) {
            problems.append("it does not open with the new key")
        }
        return problems
    }

    private func opens(_ path: String, underEpoch epoch: Int) throws -> Bool {
        let keyring = KeyringFile(of: try FileLocation(path))
        let unlocked = try #require(try keyring.areas()).unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        let key = unlocked.root.dataKey(
            epoch: UInt32(epoch), id: unlocked.area.content.id
        ).storeKey()
        do {
            try Connection(
                path: path, key: key, mode: .mustExist, configuration: .testing()
            ).close()
            return true
        } catch let error as StoreError where error.code == .wrongKey {
            return false
        }
    }
}
