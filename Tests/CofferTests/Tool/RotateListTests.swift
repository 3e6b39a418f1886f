import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// `coffer rotate` with several stores.
@Suite(.againstHanging, .onOwnThreads) struct RotateListTests {
    private let stores: RotatedStores

    init() throws { stores = try RotatedStores() }

    @Test(arguments: [1, 3])
    func `each store gets a new key, and two lines in the report`(jobs: Int) throws {
        try stores.make("a", "b", "c", "d")
        let output = try stores.rotate(
            ["a", "b", "c", "d", "a"], ["--jobs", "\(jobs)", "--report", stores.path("report")])
        #expect(output.text.contains("stores:        4\n"), "\(output.text)")
        #expect(output.text.contains("rotated:       4\n"), "\(output.text)")
        for name in ["a", "b", "c", "d"] {
            #expect(try stores.events(name) == ["started", "rotated"])
            let line = try #require(try stores.lines().last { $0.path == stores.path(name) })
            #expect(
                try line.oldEpoch == 1 && line.epoch == stores.epoch(name) && line.exitCode == 0)
            let store = try stores.open(name)
            #expect(try store.verify().isGood)
            try store.close()
        }
    }

    @Test func `a store that fails leaves the others alone, and its path can be given again`()
        throws
    {
        try stores.make("a", "c")
        try Connection(path: stores.path("plain"), key: .numbered(1), configuration: .testing())
            .close()
        let output = try stores.rotate(
            ["a", "plain", "missing", "c"],
            ["--failed-out", stores.path("failed"), "--report", stores.path("report")], exitCode: 3)
        #expect(
            output.text.contains("failed:        there is no file at \(stores.path("missing"))\n"))
        #expect(
            output.text.contains("failed:        there is no keyring at \(stores.path("plain"))"))
        #expect(output.text.contains("rotated:       2\n"), "\(output.text)")
        #expect(
            try stores.events("plain") == ["failed"]
                && stores.events("a") == ["started", "rotated"])
        let failed = try String(contentsOfFile: stores.path("failed"), encoding: .utf8)
        #expect(failed == stores.path("plain") + "\n" + stores.path("missing") + "\n")
        let again = try stores.result(
            stores.rotate([], ["--list", stores.path("failed"), "--json"], exitCode: 3))
        #expect(again.stores.map(\.path) == [stores.path("plain"), stores.path("missing")])
        #expect(again.stores.map(\.exitCode) == [15, 10])
        // Both are told where the report is not read.
        let quiet = try stores.rotate(["a", "missing"], ["--quiet"], exitCode: 3)
        #expect(quiet.stdout.isEmpty)
        #expect(quiet.errorText.contains("there is no file at"), "\(quiet.errorText)")
        #expect(quiet.errorText.contains("1 of 2 stores were not rotated"), "\(quiet.errorText)")
        _ = try stores.rotate(["a"], ["--failed-out", stores.path("failed")], exitCode: 22)
    }

    @Test func `a list has a path in each line`() throws {
        try stores.make("a", "b ü")
        let text = "\n\(stores.path("a"))\n\(stores.path("b ü"))\n\n\(stores.path("a"))"
        let fromInput = try stores.result(
            stores.rotate([], ["--list", "-", "--json"], input: Data(text.utf8)))
        #expect(fromInput.stores.map(\.event) == ["rotated", "rotated"])
        try Data([0x2f, 0xff, 10]).write(to: URL(filePath: stores.path("list")))
        #expect(
            try stores.rotate([], ["--list", stores.path("list")], exitCode: 25).errorText.contains(
                "not UTF-8"))
        _ = try stores.rotate([], ["--list", stores.path("none")], exitCode: 10)
        _ = try stores.rotate([], ["--list", "-"], secret: ["--passphrase-stdin"], exitCode: 2)
        let ended = try stores.rotate(
            [], ["--list", "-"],
            input: Data("\(stores.path("a"))\0\(stores.path("b ü"))\0".utf8), exitCode: 25)
        #expect(ended.errorText.contains("-print0"), "\(ended.errorText)")
        for end in ["\r\n", "\r\n\(stores.path("b ü"))"] {
            let windows = try stores.rotate(
                [], ["--list", "-"], input: Data((stores.path("a") + end).utf8), exitCode: 25)
            #expect(windows.errorText.contains("end as on Windows"), "\(windows.errorText)")
        }
        try stores.write("", to: "list")
        let empty = try stores.rotate([], ["--list", stores.path("list")], exitCode: 25)
        #expect(empty.errorText.contains("the list names no store"), "\(empty.errorText)")
    }

    @Test func `a young key is left alone, and no secret is read`() throws {
        try stores.make("a", "b")
        let output = try stores.result(
            stores.rotate(["a", "b"], ["--older-than", "1d", "--json"], secret: []))
        #expect(output.counts == ["current": 2])
        #expect(try stores.epoch("a") == 1)
        let single = try stores.rotate(["a"], ["--older-than", "1d"], secret: [])
        #expect(single.text.contains("not due"), "\(single.text)")
        let rotated = try stores.rotate(["a"], ["--older-than", "0s", "--from-epoch", "1"])
        #expect(rotated.text.contains("after 1"), "\(rotated.text)")
        // The same command again.
        let again = try stores.rotate(["a"], ["--older-than", "0s", "--from-epoch", "1", "--json"])
        #expect(again.text.contains(#""state":"current""#), "\(again.text)")
    }

    @Test func `a key is due by its age, by that of the root, and if its date is wrong`() throws {
        var content = try KeyringFixture.area().content
        try #require(!content.hasFormerRoot)
        (content.epochMade, content.rootMade) = (1_000_000, 500_000)
        func work(
            _ olderThan: String?, root: String? = nil, dropping: [UInt16]? = nil,
            epoch: Int? = nil, from: String? = nil, at: Double
        ) throws -> DueOptions.Work? {
            var due = DueOptions.always
            due.olderThan = try olderThan.map { try TimeSpan($0) }
            due.rootOlderThan = try root.map { try TimeSpan($0) }
            (due.fromEpoch, due.fromRoot) = (epoch, from)
            return due.work(
                for: Keyring(content, isWhole: true),
                newRoot: dropping.map {
                    RotationRun.NewRoot(dropped: $0.map { .number($0) }, kept: KeptSlotOptions())
                },
                now: Date(timeIntervalSince1970: at))
        }
        #expect(try work(nil, at: 0) == .key)
        #expect(try work("1d", at: 1_086_399) == nil && work("1d", at: 1_086_400) == .key)
        let early = 1_000_000.0 - 86_400
        #expect(try work("1d", at: early) == nil && work("1d", at: early - 1) == .key)
        // The root has an age of its own.
        #expect(try work("30d", root: "5d", dropping: [], at: 1_000_000) == .root)
        #expect(try work("30d", root: "7d", dropping: [], at: 1_000_000) == nil)
        #expect(try work("1d", root: "30d", dropping: [], at: 1_086_400) == .key)
        #expect(try work(nil, root: "30d", dropping: [], at: 1_086_400) == nil)
        // Without an age of its own, the same one.
        #expect(try work("1d", dropping: [], at: 1_000_000) == .root)
        #expect(try work("30d", dropping: [], at: 1_000_000) == nil)
        // A slot that is to go makes it due.
        let slot = try #require(content.slots.first).id
        #expect(try work("30d", root: "30d", dropping: [slot], at: 1_000_000) == .root)
        #expect(try work(nil, dropping: [slot], from: "another", at: 0) == .root)
        content.nextSlotID = 90
        #expect(try work("30d", root: "30d", dropping: [89], at: 1_000_000) == nil)
        // It never was, which is a mistake.
        #expect(try work("30d", root: "30d", dropping: [90], at: 1_000_000) == .root)
        // Another run may have done it.
        let (epoch, root) = (Int(content.epoch), content.rootID.hexDigits)
        #expect(try work(nil, epoch: epoch, at: 0) == .key)
        #expect(try work(nil, epoch: epoch - 1, at: 0) == nil)
        #expect(try work(nil, epoch: epoch + 1, at: 0) == .key)
        #expect(try work(nil, dropping: [], epoch: epoch - 1, from: root, at: 0) == .root)
        #expect(try work(nil, dropping: [], epoch: epoch, from: "another", at: 0) == nil)
    }

    @Test func `a store that another run rotates meanwhile is rotated once`() throws {
        try stores.make("a")
        let command =
            "'\(Tool.executable.path)' rotate '\(stores.path("a"))' --key-file "
            + "'\(stores.path("file"))' >/dev/null 2>&1; cat '\(stores.path("words"))'"
        try stores.addPassphrase(to: "a")
        let output = try stores.result(
            stores.rotate(
                ["a"], ["--jobs", "1", "--json"], secret: ["--passphrase-command", command]))
        #expect(output.stores.map(\.event) == ["foundRotated"])
        #expect(output.stores[0].oldEpoch == 1)
    }

    @Test(arguments: ["secret", "secret\n", "secret\r", "\u{301} e"])
    func `a passphrase from standard input opens each store`(passphrase: String) throws {
        for name in ["a", "b"] {
            try Store(
                path: stores.path(name), key: .keyring(.passphrase(passphrase)),
                configuration: .testing()
            ).close()
        }
        _ = try stores.rotate(
            ["a", "b"], secret: ["--passphrase-stdin"], input: Data((passphrase + "\r\n").utf8))
        #expect(try stores.epoch("a") > 1 && stores.epoch("b") > 1)
        let wrong = try stores.rotate(
            ["a", "b", "c"], ["--stop-after-failures", "1", "--json"],
            secret: ["--passphrase-stdin"], input: Data("wrong".utf8), exitCode: 3)
        // That there is no such file needs no run.
        #expect(try stores.result(wrong).counts == ["failed": 2, "notStarted": 1])
        #expect(try stores.result(wrong).stores[0].exitCode == 12)
    }

    @Test func `a run that dies is a failure of its store alone`() throws {
        try stores.make("a", "b")
        let command =
            "test \"$COFFER_PATH\" = '\(stores.path("a"))' && kill -KILL $PPID; cat "
            + "'\(stores.path("words"))'"
        try stores.addPassphrase(to: "b")
        let output = try stores.rotate(
            ["a", "b"], ["--json"], secret: ["--passphrase-command", command], exitCode: 3)
        let ends = try stores.result(output).stores
        #expect(ends.map(\.event) == ["failed", "rotated"])
        #expect(ends[0].message == "its run was ended by signal 9")
        #expect(try stores.epoch("a") == 1)
    }

    @Test func `a new root drops a slot of each store`() throws {
        try stores.make("a", "b")
        for name in ["a", "b"] {
            let store = try stores.open(name)
            try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
            try store.close()
        }
        let roots = try ["a", "b"].map { try Keyring(of: stores.path($0)).rootID }
        // No run has a terminal to ask.
        let unnamed = try stores.result(
            stores.rotate(["a", "b"], ["--root", "--json"], exitCode: 3))
        #expect(unnamed.stores.map(\.exitCode) == [19, 19])
        _ = try stores.rotate(["a", "b"], ["--root", "--drop", "2"])
        for (name, root) in zip(["a", "b"], roots) {
            let keyring = try Keyring(of: stores.path(name))
            #expect(keyring.slots.map(\.id) == [1] && keyring.rootID != root)
        }
        // The root is young, and no slot is left to drop.
        let young = ["--root", "--drop", "2", "--root-older-than", "1d", "--json"]
        let again = try stores.result(stores.rotate(["a", "b"], young, secret: []))
        #expect(again.counts == ["current": 2])
    }

    @Test func `an interrupted list ends its runs, and says what was not begun`() throws {
        try stores.make("a", "b", "c")
        try stores.addPassphrase(to: "a", "b")
        try #require(mkfifo(stores.path("pipe"), 0o600) == 0)
        // The run for the second store waits for its passphrase.
        let command =
            "test \"$COFFER_PATH\" = '\(stores.path("b"))' && cat '\(stores.path("pipe"))'; "
            + "cat '\(stores.path("words"))'"
        let tool = try Tool.start(
            ["rotate"] + ["a", "b", "c"].map(stores.path)
                + ["--passphrase-command", command, "--report", stores.path("report"), "--json"])
        try waitUntil { (try? stores.events("b")) == ["started"] }
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(
            try stores.result(output).stores.map(\.event) == [
                "rotated", "interrupted", "notStarted",
            ])
        #expect(output.errorText.contains("2 of 3 stores were not rotated"))
        #expect(try stores.events("b") == ["started", "interrupted"])
        #expect(try stores.events("c") == ["notStarted"])
        #expect(try stores.epoch("b") == 1)
    }

    @Test func `a young root with a slot that is to go is replaced`() throws {
        try stores.make("a")
        let store = try stores.open("a")
        try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
        try store.close()
        let options = ["--root", "--drop", "2", "--root-older-than", "1d", "--older-than", "1d"]
        _ = try stores.rotate(["a"], options + ["--jobs", "1"])
        #expect(try Keyring(of: stores.path("a")).slots.map(\.id) == [1])
        let root = try Keyring(of: stores.path("a")).rootID
        let other = try stores.rotate(["a"], ["--root", "--from-root", "another", "--json"])
        #expect(other.text.contains(#""isWholeFile":true"#), "\(other.text)")
        #expect(try Keyring(of: stores.path("a")).rootID == root)
        _ = try stores.rotate(["a"], ["--root", "--from-root", root])
        #expect(try Keyring(of: stores.path("a")).rootID != root)
        _ = try stores.rotate(["a"], ["--from-root", root], exitCode: 2)
    }

    @Test func `a secret that can be read once opens each store`() throws {
        try stores.make("a", "b")
        let output = try Tool.run(
            ["rotate", stores.path("a"), stores.path("b"), "--key-file", "/dev/fd/3"],
            descriptors: [3: Data(RotatedStores.file)])
        #expect(output.exitCode == 0, "\(output.text)\(output.errorText)")
        try #require(mkfifo(stores.path("pipe"), 0o600) == 0)
        let script = "head -c 32 '\(stores.path("file"))' >'\(stores.path("pipe"))' & exec \"$@\""
        let piped = try Tool.runProgram(
            ["sh", "-c", script, "sh", Tool.executable.path, "rotate", stores.path("a")]
                + [stores.path("b"), "--key-file", stores.path("pipe")])
        #expect(piped.exitCode == 0, "\(piped.text)\(piped.errorText)")
        #expect(piped.text.contains("rotated:       2\n"), "\(piped.text)")
        let kept = ["--root", "--keep", "1=" + stores.path("pipe")]
        let once = try stores.rotate(["a", "b"], kept, exitCode: 19)
        #expect(once.errorText.contains("can be read once"), "\(once.errorText)")
        let both = try stores.rotate(
            [], ["--list", "-"], secret: ["--key-file", "/dev/stdin"],
            input: Data(stores.path("a").utf8), exitCode: 2)
        #expect(both.errorText.contains("both the list and the secret"), "\(both.errorText)")
    }

    @Test func `the words of a secret's command reach whoever waits, and noise holds up nothing`()
        throws
    {
        try stores.make("a", "b")
        try stores.addPassphrase(to: "a", "b")
        let noise = "(while echo noise >&2; do :; done) >/dev/null & "
        let output = try stores.rotate(
            ["a", "b"], ["--json"],
            secret: [
                "--passphrase-command",
                "echo the token has expired >&2; \(noise)cat '\(stores.path("words"))'",
            ])
        #expect(output.errorText.contains("the token has expired\n"))
        #expect(try stores.result(output).counts == ["rotated": 2])
    }

    @Test func `a relative path is of the folder of the run, and a dash begins no option`() throws {
        try stores.make("-a", "b")
        let script = "cd \"$1\" && shift && exec \"$@\""
        let output = try Tool.runProgram(
            ["sh", "-c", script, "sh", stores.folder.url.path, Tool.executable.path, "rotate"]
                + stores.secret + ["--json", "--", "-a", "b"])
        #expect(output.exitCode == 0, "\(output.text)\(output.errorText)")
        #expect(try stores.result(output).stores.map(\.path) == ["-a", "b"].map(stores.path))
        // Its absolute path is not that of a file in the root folder.
        let gone = try Tool.runProgram(
            [
                "sh", "-c",
                "mkdir \"$1/gone\" && cd \"$1/gone\" && rmdir \"$1/gone\" && shift && "
                    + "exec \"$@\"", "sh", stores.folder.url.path, Tool.executable.path, "rotate",
            ]
                + stores.secret + ["--json", "b", "c"])
        #expect(gone.exitCode == 3, "\(gone.text)\(gone.errorText)")
        #expect(try stores.result(gone).stores.map(\.path) == ["b", "c"])
    }

    @Test func `a signal ends a list that waits for its secret`() throws {
        try stores.make("a", "b")
        let tool = try Tool.start(
            ["rotate", stores.path("a"), stores.path("b"), "--passphrase-stdin", "--report"]
                + [stores.path("report")])
        try waitUntil { FileManager.default.fileExists(atPath: stores.path("report")) }
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130 && output.text.isEmpty, "\(output.text)")
        #expect(try stores.lines().isEmpty)
    }

    @Test func `a secret may be as long as for one store`() throws {
        let text = String(repeating: "a", count: 65_535)
        try Store(
            path: stores.path("a"), key: .keyring(.passphrase(text)), configuration: .testing()
        ).close()
        let output = try stores.rotate(
            ["a"], ["--jobs", "1"], secret: ["--passphrase-stdin"], input: Data(text.utf8))
        #expect(output.text.contains("rotated:"), "\(output.text)")
    }

    @Test func `a second signal says what it leaves`() throws {
        try stores.make("a")
        try stores.addPassphrase(to: "a")
        let begun = stores.path("begun")
        let command = "echo $PPID >'\(begun).new'; mv '\(begun).new' '\(begun)'; sleep 600"
        let tool = try Tool.start(
            ["rotate", stores.path("a"), "--jobs", "1", "--passphrase-command", command])
        try waitUntil { FileManager.default.fileExists(atPath: begun) }
        let child = try #require(Int32(try stores.read("begun").dropLast()))
        Foundation.kill(child, SIGSTOP)
        defer { Foundation.kill(child, SIGKILL) }
        tool.send(SIGTERM)
        try tool.waitForError("cleaning up")
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 130)
        #expect(output.errorText.contains("the old key or the new one"), "\(output.errorText)")
    }

    @Test func `a failure at the first look counts as well`() throws {
        try stores.make("b")
        let few = try stores.result(
            stores.rotate(["a", "b"], ["--stop-after-failures", "1", "--json"], exitCode: 3))
        #expect(few.stores.map(\.event) == ["failed", "notStarted"])
        #expect(try stores.epoch("b") == 1)
    }
}
