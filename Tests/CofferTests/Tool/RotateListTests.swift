import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// `coffer rotate` with several stores.
@Suite(.againstHanging, .onOwnThreads) struct RotateListTests {
    private let folder: TemporaryFolder
    private let secret: [String]
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        secret = ["--key-file", folder.path("file")]
        try Data(Self.file).write(to: URL(filePath: folder.path("file")))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: folder.path("file"))
    }

    private func path(_ name: String) -> String { folder.path(name) }

    private func open(_ name: String) throws -> Store {
        try Store(
            path: path(name), key: .keyring(.keyFile(Self.file)), configuration: .testing())
    }

    /// Makes stores that the key file opens.
    private func make(_ names: String...) throws {
        for name in names {
            let store = try open(name)
            try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
            try store.close()
        }
    }

    /// Adds a slot for the passphrase in the file `words`.
    private func addPassphrase(to names: String...) throws {
        try Data("words".utf8).write(to: URL(filePath: path("words")))
        for name in names {
            let store = try open(name)
            try store.keys.add(.passphrase("words"), label: "words")
            try store.close()
        }
    }

    private func epoch(_ name: String) throws -> Int { try Keyring(of: path(name)).epoch }

    private func rotate(
        _ names: [String], _ options: [String] = [], secret: [String]? = nil, input: Data = Data(),
        exitCode: Int32 = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(
            ["rotate"] + names.map(path) + (secret ?? self.secret) + options, input: input)
        #expect(
            output.exitCode == exitCode, "\(output.text)\(output.errorText)",
            sourceLocation: sourceLocation)
        return output
    }

    private struct Line: Decodable, Equatable {
        let event: String
        let path: String
        var oldEpoch: Int?
        var epoch: Int?
        var exitCode: Int?
        var message: String?
    }

    private struct Result: Decodable {
        let counts: [String: Int]
        let stores: [Line]
    }

    private func lines(of report: String = "report") throws -> [Line] {
        try Data(contentsOf: URL(filePath: path(report))).split(separator: 10)
            .map { try JSONDecoder().decode(Line.self, from: $0) }
    }

    private func events(_ name: String) throws -> [String] {
        try lines().filter { $0.path == path(name) }.map(\.event)
    }

    private func result(_ output: Tool.Output) throws -> Result {
        try JSONDecoder().decode(Result.self, from: output.stdout)
    }

    @Test(arguments: [1, 3])
    func `each store gets a new key, and two lines in the report`(jobs: Int) throws {
        try make("a", "b", "c", "d")
        let output = try rotate(
            ["a", "b", "c", "d", "a"], ["--jobs", "\(jobs)", "--report", path("report")])
        #expect(output.text.contains("stores:        4\n"), "\(output.text)")
        #expect(output.text.contains("rotated:       4\n"), "\(output.text)")
        for name in ["a", "b", "c", "d"] {
            #expect(try events(name) == ["started", "rotated"])
            let line = try #require(try lines().last { $0.path == path(name) })
            #expect(try line.oldEpoch == 1 && line.epoch == epoch(name) && line.exitCode == 0)
            let store = try open(name)
            #expect(try store.verify().isGood)
            try store.close()
        }
    }

    @Test func `a store that fails leaves the others alone, and its path can be given again`()
        throws
    {
        try make("a", "c")
        try Connection(path: path("plain"), key: .numbered(1), configuration: .testing()).close()
        let output = try rotate(
            ["a", "plain", "missing", "c"],
            ["--failed-out", path("failed"), "--report", path("report")], exitCode: 3)
        #expect(output.text.contains("failed:        \(path("missing")): there is no file"))
        #expect(output.text.contains("failed:        \(path("plain")): there is no keyring"))
        #expect(output.text.contains("rotated:       2\n"), "\(output.text)")
        #expect(try events("plain") == ["failed"] && events("a") == ["started", "rotated"])
        let failed = try String(contentsOfFile: path("failed"), encoding: .utf8)
        #expect(failed == path("plain") + "\n" + path("missing") + "\n")
        let again = try result(
            rotate([], ["--list", path("failed"), "--json"], exitCode: 3))
        #expect(again.stores.map(\.path) == [path("plain"), path("missing")])
        #expect(again.stores.map(\.exitCode) == [15, 10])
        // Both are told where the report is not read.
        let quiet = try rotate(["a", "missing"], ["--quiet"], exitCode: 3)
        #expect(quiet.stdout.isEmpty)
        #expect(quiet.errorText.contains("missing: there is no file"), "\(quiet.errorText)")
        #expect(quiet.errorText.contains("1 of 2 stores were not rotated"), "\(quiet.errorText)")
        _ = try rotate(["a"], ["--failed-out", path("failed")], exitCode: 22)
    }

    @Test func `a list has a path in each line`() throws {
        try make("a", "b ü")
        let text = "\n\(path("a"))\n\(path("b ü"))\n\n\(path("a"))"
        let fromInput = try result(rotate([], ["--list", "-", "--json"], input: Data(text.utf8)))
        #expect(fromInput.stores.map(\.event) == ["rotated", "rotated"])
        try Data([0x2f, 0xff, 10]).write(to: URL(filePath: path("list")))
        #expect(
            try rotate([], ["--list", path("list")], exitCode: 25).errorText.contains("not UTF-8"))
        _ = try rotate([], ["--list", path("none")], exitCode: 10)
        _ = try rotate([], ["--list", "-"], secret: ["--passphrase-stdin"], exitCode: 2)
        try Data().write(to: URL(filePath: path("list")))
        #expect(try result(rotate([], ["--list", path("list"), "--json"])).stores.isEmpty)
    }

    @Test func `a young key is left alone, and no secret is read`() throws {
        try make("a", "b")
        let output = try result(
            rotate(["a", "b"], ["--older-than", "1d", "--json"], secret: []))
        #expect(output.counts == ["current": 2])
        #expect(try epoch("a") == 1)
        let single = try rotate(["a"], ["--older-than", "1d"], secret: [])
        #expect(single.text.contains("not due"), "\(single.text)")
        let rotated = try rotate(["a"], ["--older-than", "0s", "--from-epoch", "1"])
        #expect(rotated.text.contains("after 1"), "\(rotated.text)")
        // The same command again.
        let again = try rotate(["a"], ["--older-than", "0s", "--from-epoch", "1", "--json"])
        #expect(again.text.contains(#""state":"current""#), "\(again.text)")
    }

    @Test func `a key is due by its age, by that of the root, and if its date is wrong`() throws {
        var content = try KeyringFixture.area().content
        try #require(!content.hasFormerRoot)
        (content.epochMade, content.rootMade) = (1_000_000, 500_000)
        func isDue(
            _ olderThan: String?, root: String? = nil, epoch: Int? = nil, at: Double
        )
            throws -> Bool
        {
            var due = DueOptions.always
            due.olderThan = try olderThan.map { try TimeSpan($0) }
            due.rootOlderThan = try root.map { try TimeSpan($0) }
            due.fromEpoch = epoch
            return due.isDue(
                Keyring(content, isWhole: true), now: Date(timeIntervalSince1970: at))
        }
        #expect(try isDue(nil, at: 0))
        #expect(try !isDue("1d", at: 1_086_399) && isDue("1d", at: 1_086_400))
        #expect(try !isDue("1d", at: 1_000_000 - 86_400) && isDue("1d", at: 1_000_000 - 86_401))
        #expect(try isDue("30d", root: "5d", at: 1_000_000))
        #expect(try !isDue("30d", root: "7d", at: 1_000_000))
        let epoch = Int(content.epoch)
        #expect(try isDue(nil, epoch: epoch, at: 0) && !isDue(nil, epoch: epoch + 1, at: 0))
    }

    @Test func `what a killed run has done is found, and reported once`() throws {
        try make("done", "begun")
        let report = ["--report", path("report")]
        _ = try rotate(["done"], report)
        let epoch = try epoch("done")
        // As if the run had been killed before it wrote the second line.
        let started = try String(contentsOfFile: path("report"), encoding: .utf8)
            .split(separator: "\n")[0]
        let begun = started.replacing(path("done"), with: path("begun"))
        // The last line is torn.
        try Data("\(started)\n\(begun)\n{\"event\":\"rot".utf8)
            .write(to: URL(filePath: path("report")))
        let output = try result(
            rotate(["done", "begun"], report + ["--older-than", "1d", "--json"]))
        #expect(output.stores.map(\.event) == ["foundRotated", "current"])
        #expect(output.stores[0].oldEpoch == 1 && output.stores[0].epoch == epoch)
        #expect(try self.epoch("done") == epoch && self.epoch("begun") == 1)
        let text = try String(contentsOfFile: path("report"), encoding: .utf8)
        #expect(text.contains("{\"event\":\"rot\n{"))
        // Both have come to their end.
        let next = try result(
            rotate(["done", "begun"], report + ["--older-than", "1d", "--json"]))
        #expect(next.counts == ["current": 2])
    }

    @Test func `a store that another run rotates meanwhile is rotated once`() throws {
        try make("a")
        let command =
            "'\(Tool.executable.path)' rotate '\(path("a"))' --key-file "
            + "'\(path("file"))' >/dev/null 2>&1; cat '\(path("words"))'"
        try addPassphrase(to: "a")
        let output = try result(
            rotate(["a"], ["--jobs", "1", "--json"], secret: ["--passphrase-command", command]))
        #expect(output.stores.map(\.event) == ["foundRotated"])
        #expect(output.stores[0].oldEpoch == 1)
    }

    @Test(arguments: ["secret", "secret\n", "\u{301} e"])
    func `a passphrase from standard input opens each store`(passphrase: String) throws {
        for name in ["a", "b"] {
            try Store(
                path: path(name), key: .keyring(.passphrase(passphrase)),
                configuration: .testing()
            ).close()
        }
        _ = try rotate(
            ["a", "b"], secret: ["--passphrase-stdin"], input: Data((passphrase + "\n").utf8))
        #expect(try epoch("a") > 1 && epoch("b") > 1)
        let wrong = try rotate(
            ["a", "b", "c"], ["--stop-after-failures", "1", "--json"],
            secret: ["--passphrase-stdin"], input: Data("wrong".utf8), exitCode: 3)
        // That there is no such file needs no run.
        #expect(try result(wrong).counts == ["failed": 2, "notStarted": 1])
        #expect(try result(wrong).stores[0].exitCode == 12)
    }

    @Test func `a run that dies is a failure of its store alone`() throws {
        try make("a", "b")
        let command =
            "test \"$COFFER_PATH\" = '\(path("a"))' && kill -KILL $PPID; cat "
            + "'\(path("words"))'"
        try addPassphrase(to: "b")
        let output = try rotate(
            ["a", "b"], ["--json"], secret: ["--passphrase-command", command], exitCode: 3)
        let stores = try result(output).stores
        #expect(stores.map(\.event) == ["failed", "rotated"])
        #expect(stores[0].message == "its run was ended by signal 9")
        #expect(try epoch("a") == 1)
    }

    @Test func `two runs do not write to one report`() throws {
        try make("a")
        let held = Foundation.open(path("report"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(held) }
        try #require(flock(held, LOCK_EX | LOCK_NB) == 0)
        let output = try rotate(["a"], ["--report", path("report")], exitCode: 11)
        #expect(output.errorText.contains("another run"), "\(output.errorText)")
        #expect(try epoch("a") == 1)
        _ = try rotate(["a"], ["--report", path("none/report")], exitCode: 17)
        // It has no end.
        _ = try rotate(["a"], ["--report", "/dev/zero"], exitCode: 17)
        #expect(try epoch("a") == 1)
    }

    @Test func `a collector gets counts, pauses and dates`() throws {
        try make("a")
        _ = try rotate(["a", "b\"\\"], ["--prometheus", path("m.prom")], exitCode: 3)
        let text = try String(contentsOfFile: path("m.prom"), encoding: .utf8)
        #expect(text.contains("coffer_rotation_stores{state=\"rotated\"} 1\n"), "\(text)")
        #expect(text.contains("coffer_rotation_stores{state=\"failed\"} 1\n"))
        let made = try Keyring(of: path("a")).keyMade.timeIntervalSince1970
        #expect(text.contains("{path=\"\(path("a"))\"} \(made)\n"))
        for line in text.split(separator: "\n") where !line.hasPrefix("# ") {
            #expect(line.contains(#/^coffer_[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.]+$/#), "\(line)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: path("m.prom"))
        #expect((mode[.posixPermissions] as? Int).map { $0 & 0o444 } == 0o444)
    }

    @Test func `a look changes nothing, and tells what would be done`() throws {
        try make("a", "b")
        let before = try ["a", "b"].map { try Data(contentsOf: URL(filePath: path($0))) }
        let output = try rotate(["a", "b", "c"], ["--dry-run"], secret: [], exitCode: 3)
        #expect(output.text.contains("would rotate: \(path("a")): the key is 0 days old"))
        #expect(output.text.contains("writes wait for less than 0.1 s"), "\(output.text)")
        let young = try result(
            rotate(["a"], ["--dry-run", "--older-than", "1h", "--json"], secret: []))
        #expect(young.counts == ["current": 1])
        #expect(try before == ["a", "b"].map { try Data(contentsOf: URL(filePath: path($0))) })
        for options in [
            ["--dry-run", "--report", path("r")], ["--jobs", "0"], ["--stop-after-failures", "0"],
            ["--root-older-than", "1d"], ["--older-than", "1"], ["--older-than", "1w"],
            ["--report", "-"], ["--from-epoch", "1", "--jobs", "2"],
        ] {
            _ = try rotate(["a"], options, exitCode: 2)
        }
        _ = try rotate([], exitCode: 2)
    }

    @Test func `a new root drops a slot of each store`() throws {
        try make("a", "b")
        for name in ["a", "b"] {
            let store = try open(name)
            try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
            try store.close()
        }
        let roots = try ["a", "b"].map { try Keyring(of: path($0)).rootID }
        let young = ["--root", "--drop", "2", "--root-older-than", "1d", "--json"]
        #expect(try result(rotate(["a", "b"], young, secret: [])).counts == ["current": 2])
        // No run has a terminal to ask.
        let unnamed = try result(rotate(["a", "b"], ["--root", "--json"], exitCode: 3))
        #expect(unnamed.stores.map(\.exitCode) == [19, 19])
        _ = try rotate(["a", "b"], ["--root", "--drop", "2"])
        for (name, root) in zip(["a", "b"], roots) {
            let keyring = try Keyring(of: path(name))
            #expect(keyring.slots.map(\.id) == [1] && keyring.rootID != root)
        }
    }

    @Test func `an interrupted list ends its runs, and says what was not begun`() throws {
        try make("a", "b", "c")
        try addPassphrase(to: "a", "b")
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        // The run for the second store waits for its passphrase.
        let command =
            "test \"$COFFER_PATH\" = '\(path("b"))' && cat '\(path("pipe"))'; "
            + "cat '\(path("words"))'"
        let tool = try Tool.start(
            ["rotate"] + ["a", "b", "c"].map(path)
                + ["--passphrase-command", command, "--report", path("report"), "--json"])
        try waitUntil { (try? events("b")) == ["started"] }
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(try result(output).stores.map(\.event) == ["rotated", "interrupted", "notStarted"])
        #expect(output.errorText.contains("2 of 3 stores were not rotated"))
        #expect(try events("b") == ["started", "interrupted"])
        #expect(try events("c") == ["notStarted"])
        #expect(try epoch("b") == 1)
    }
}
