import Foundation
import Testing
import Workload

@testable import Coffer
@testable import CofferTool

/// A signal at many moments of each verb that may run long. Whatever the moment, the tool has done
/// its work, or says that it has not, and the same command then does it.
///
/// The long run takes a store of 200 MB, and a signal at each second.
@Suite(.againstHanging, .onOwnThreads) struct SignalMomentsTests {
    private static let rowCount = isLongRun ? 200_000 : 3_000
    /// Signals for each verb, at equal distances, or one for each second.
    private static let signalCountMin = isLongRun ? 8 : 2

    /// Each verb with its arguments, with words in capitals for paths; see
    /// `TemporaryFolder.paths(for:)`.
    static let verbs: [[String]] = [
        ["verify", "STORE"], ["compact", "STORE"], ["rekey", "STORE", "--new-raw-key-fd", "4"],
        ["backup", "STORE", "NEW"], ["restore", "STORE", "OLD"], ["upgrade", "STORE", "NEW"],
        ["salvage", "STORE", "NEW"], ["encrypt", "PLAIN", "NEW"],
        ["decrypt", "STORE", "NEW", "--write-plaintext"],
        ["import", "STORE", "CSV", "--format", "csv", "--table", "made"],
        ["export", "STORE", "--output", "NEW"], ["kv", "export", "STORE", "b", "--output", "NEW"],
        ["kv", "import", "STORE", "b", "ENTRIES", "--replace"],
    ]

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Makes what the verb reads.
    private func makeSources(for words: [String]) throws {
        let count = Self.rowCount
        let rows = """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO t SELECT i, randomblob(900) FROM n
            """
        if words.contains("STORE") {
            let store = try Store(
                path: folder.path("store"), key: .numbered(1), configuration: .testing())
            try store.write { tx in
                try tx.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
                try tx.execute(SQL(text: rows))
                let bucket = Bucket<Int, String>("b")
                for key in 0..<(words.contains("kv") ? count / 10 : 1) {
                    try tx.set("value", for: key, in: bucket)
                }
            }
            try store.close()
        }
        if words.contains("OLD") {
            try Store(path: folder.path("old"), key: .numbered(1), configuration: .testing())
                .close()
        }
        if words.contains("PLAIN") {
            let connection = try RawConnection(folder.path("plain"))
            try #require(
                connection.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v); \(rows)") == 0)
        }
        if words.contains("CSV") {
            let lines = (1...count).map { "\($0),text of the row \($0)\n" }.joined()
            try Data("id,v\n\(lines)".utf8).write(to: folder.url.appending(path: "csv"))
        }
        if words.contains("ENTRIES") {
            let lines = (1...count).map { "{\"key\":\($0),\"value\":\"new\"}\n" }.joined()
            try Data(lines.utf8).write(to: folder.url.appending(path: "entries"))
        }
    }

    private struct Attempt {
        let own: TemporaryFolder
        let tool: [String]
        let descriptors: [Int32: Data]
    }

    /// The verb on a copy of the sources.
    private func attempt(_ words: [String]) throws -> Attempt {
        let own = try TemporaryFolder()
        let names = ["store", "old", "plain", "csv", "entries"]
        for name in names where FileManager.default.fileExists(atPath: folder.path(name)) {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: own.path(name))
        }
        return Attempt(
            own: own, tool: own.paths(for: words) + ["--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
    }

    @Test(.serialized, arguments: verbs)
    func `the same command does its work after a signal at any moment`(words: [String]) throws {
        try makeSources(for: words)
        let whole = try attempt(words)
        let beginning = ContinuousClock.now
        let output = try Tool.run(
            whole.tool, descriptors: whole.descriptors, timeout: .seconds(600))
        try #require(output.exitCode == 0, "\(output.errorText)")
        let duration = beginning.duration(to: .now)
        try expectDone(words, whole, said: output.errorText)

        // By default the number is the same on a slow machine.
        let perSecond = isLongRun ? Int(duration / .seconds(1)) : 0
        let count = max(Self.signalCountMin, perSecond)
        var interruptionCount = 0
        for number in 1...count {
            let attempt = try attempt(words)
            let tool = try Tool.start(
                attempt.tool, descriptors: attempt.descriptors, timeout: .seconds(600))
            let moment = duration * (Double(number) / Double(count + 1))
            usleep(UInt32(moment / .microseconds(1)))
            tool.send([SIGINT, SIGTERM, SIGHUP][number % 3])
            let ended = try tool.finish()
            let said = "\(words), signal \(number) of \(count): \(ended.errorText)"
            // The verb may have ended before the signal came.
            guard ended.exitCode != 0 else {
                try expectDone(words, attempt, said: said)
                continue
            }
            interruptionCount += 1
            #expect(ended.exitCode == 130, "\(said)")
            #expect(ended.errorText.contains("again"), "\(said)")
            // The signal may have come between the last step of the work and the end of the run.
            guard try !isDone(words, attempt, said: ended.errorText) else {
                try expectDone(words, attempt, said: said)
                continue
            }
            let again = try Tool.run(
                attempt.tool, descriptors: attempt.descriptors, timeout: .seconds(600))
            #expect(again.exitCode == 0, "\(said), then \(again.errorText)")
            try expectDone(words, attempt, said: said)
        }
        print("\(words[0]): \(interruptionCount) of \(count) signals interrupted it")
        #expect(!isLongRun || interruptionCount > 0)
    }

    /// Whether an interrupted run has done its work, and says that it may have.
    private func isDone(_ words: [String], _ attempt: Attempt, said: String) throws -> Bool {
        if said.contains("complete or absent") {
            return FileManager.default.fileExists(atPath: attempt.own.path("new"))
        }
        guard words[0] == "import", said.contains("as a whole or not at all") else { return false }
        let store = try Store(
            path: attempt.own.path("store"), key: .numbered(1), mode: .mustExist,
            configuration: .testing())
        defer { try? store.close() }
        return try store.read { tx in
            try tx.firstRow("SELECT 1 FROM sqlite_master WHERE name = 'made'") != nil
        }
    }

    /// Expects all rows under the key that the verb leaves, in each store that it leaves.
    private func expectDone(_ words: [String], _ attempt: Attempt, said: String) throws {
        let isRekeyed = words[0] == "rekey"
        for name in ["store", "new", "old"] {
            let path = attempt.own.path(name)
            let isStore = name != "new" || !["decrypt", "export", "kv"].contains(words[0])
            guard isStore, FileManager.default.fileExists(atPath: path) else { continue }
            let store = try Store(
                path: path, key: .numbered(isRekeyed ? 2 : 1), mode: .mustExist,
                configuration: .testing())
            let rows = try store.read { tx in
                try tx.requireScalar("SELECT count(*) FROM t", as: Int.self)
            }
            #expect(rows == Self.rowCount, "\(name): \(said)")
            if words[0] == "import" {
                let made = try store.read { tx in
                    try tx.requireScalar("SELECT count(*) FROM made", as: Int.self)
                }
                #expect(made == Self.rowCount, "\(said)")
            }
            if words.prefix(2) == ["kv", "import"] {
                let entries = try store.count(in: Bucket<Int, String>("b"))
                #expect(entries == Self.rowCount + 1, "\(said)")
            }
            #expect(try store.verify().isGood, "\(said)")
            try store.close()
        }
        if words.contains("NEW") {
            #expect(FileManager.default.fileExists(atPath: attempt.own.path("new")), "\(said)")
        }
        // An interrupted run removes the files that it had begun.
        let files = try FileManager.default.contentsOfDirectory(atPath: attempt.own.url.path)
        #expect(!files.contains { $0.contains(".new-") || $0.contains(".part") }, "\(files)")
    }
}
