import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// What `coffer rotate` writes about several stores, and reads of earlier runs.
@Suite(.againstHanging, .onOwnThreads) struct RotateRecordTests {
    private let stores: RotatedStores

    init() throws { stores = try RotatedStores() }

    @Test func `what a killed run has done is found, and reported once`() throws {
        try stores.make("done", "begun")
        let report = ["--report", stores.path("report")]
        _ = try stores.rotate(["done"], report)
        let epoch = try stores.epoch("done")
        // As if the run had been killed before it wrote the second line.
        let started = try String(contentsOfFile: stores.path("report"), encoding: .utf8)
            .split(separator: "\n")[0]
        let begun = try stores.begun("begun", at: 1)
        // The last line is torn.
        try Data("\(started)\n\(begun)\n{\"event\":\"rot".utf8)
            .write(to: URL(filePath: stores.path("report")))
        let output = try stores.result(
            stores.rotate(["done", "begun"], report + ["--older-than", "1d", "--json"]))
        #expect(output.stores.map(\.event) == ["foundRotated", "current"])
        #expect(output.stores[0].oldEpoch == 1 && output.stores[0].epoch == epoch)
        #expect(try stores.epoch("done") == epoch && stores.epoch("begun") == 1)
        let text = try String(contentsOfFile: stores.path("report"), encoding: .utf8)
        #expect(text.contains("{\"event\":\"rot\n{"))
        // Both have come to their end.
        let next = try stores.result(
            stores.rotate(["done", "begun"], report + ["--older-than", "1d", "--json"]))
        #expect(next.counts == ["current": 2])
    }

    @Test func `two runs do not write to one report`() throws {
        try stores.make("a")
        let held = Foundation.open(stores.path("report"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(held) }
        try #require(flock(held, LOCK_EX | LOCK_NB) == 0)
        let output = try stores.rotate(["a"], ["--report", stores.path("report")], exitCode: 11)
        #expect(output.errorText.contains("another run"), "\(output.errorText)")
        #expect(try stores.epoch("a") == 1)
        _ = try stores.rotate(["a"], ["--report", stores.path("none/report")], exitCode: 17)
        // It has no end.
        _ = try stores.rotate(["a"], ["--report", "/dev/zero"], exitCode: 17)
        #expect(try stores.epoch("a") == 1)
    }

    @Test func `a collector gets counts, pauses and dates`() throws {
        try stores.make("a")
        _ = try stores.rotate(
            ["a", "b\"\\"], ["--prometheus", stores.path("m.prom")], exitCode: 3)
        let text = try String(contentsOfFile: stores.path("m.prom"), encoding: .utf8)
        #expect(text.contains("coffer_rotation_stores{state=\"rotated\"} 1\n"), "\(text)")
        #expect(text.contains("coffer_rotation_stores{state=\"failed\"} 1\n"))
        let made = try Keyring(of: stores.path("a")).keyMade.timeIntervalSince1970
        #expect(text.contains("{path=\"\(stores.path("a"))\"} \(made)\n"))
        let series = #/^coffer_[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"\})? [0-9.]+$/#
        for line in text.split(separator: "\n") where !line.hasPrefix("# ") {
            #expect(line.contains(series), "\(line)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: stores.path("m.prom"))
        #expect((mode[.posixPermissions] as? Int).map { $0 & 0o444 } == 0o444)
    }

    @Test func `a look changes nothing, and tells what would be done`() throws {
        try stores.make("a", "b")
        let before = try ["a", "b"].map { try Data(contentsOf: URL(filePath: stores.path($0))) }
        let output = try stores.rotate(["a", "b", "c"], ["--dry-run"], secret: [], exitCode: 3)
        #expect(output.text.contains("would rotate: \(stores.path("a")): the key is 0 days old"))
        #expect(output.text.contains("writes wait for less than 0.1 s"), "\(output.text)")
        let young = try stores.result(
            stores.rotate(["a"], ["--dry-run", "--older-than", "1h", "--json"], secret: []))
        #expect(young.counts == ["current": 1])
        #expect(
            try before == ["a", "b"].map { try Data(contentsOf: URL(filePath: stores.path($0))) })
        for options in [
            ["--dry-run", "--report", stores.path("r")], ["--jobs", "0"],
            ["--stop-after-failures", "0"],
            ["--root-older-than", "1d"], ["--older-than", "1"], ["--older-than", "1w"],
            ["--report", "-"], ["--from-epoch", "1", "--jobs", "2"],
        ] {
            _ = try stores.rotate(["a"], options, exitCode: 2)
        }
        _ = try stores.rotate([], exitCode: 2)
    }

    // MARK: Earlier runs

    @Test func `an earlier run is claimed for its store and a later epoch only`() throws {
        try stores.make("a", "restored", "other")
        _ = try stores.rotate(["a", "other"])
        let (a, other) = try (stores.epoch("a"), stores.epoch("other"))
        try stores.write(
            [
                stores.begun("a", at: 1), stores.begun("restored", at: 999_999),
                stores.begun("other", at: 1, storeID: String(repeating: "0", count: 32)),
            ].joined(separator: "\n") + "\n", to: "report")
        let young = try stores.result(
            stores.rotate(
                ["a", "restored", "other"],
                ["--older-than", "1d", "--report", stores.path("report"), "--json"]))
        #expect(young.stores.map(\.event) == ["foundRotated", "current", "current"])
        #expect(young.stores[0].oldEpoch == 1 && young.stores[0].epoch == a)
        #expect(try stores.epoch("restored") == 1 && stores.epoch("other") == other)
    }

    @Test func `what an earlier run has done does not stand for what is asked for now`() throws {
        try stores.make("a", "b")
        for name in ["a", "b"] {
            let store = try stores.open(name)
            try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
            try store.close()
        }
        _ = try stores.rotate(["a"])
        let epoch = try stores.epoch("a")
        let begun = try stores.begun("a", at: 1) + "\n" + stores.begun("b", at: 999_999) + "\n"
        try stores.write(begun, to: "report")
        let output = try stores.result(
            stores.rotate(
                ["a", "b"],
                ["--root", "--drop", "2", "--report", stores.path("report"), "--json"]))
        #expect(output.stores.map(\.event) == ["rotated", "rotated"])
        for name in ["a", "b"] {
            #expect(try Keyring(of: stores.path(name)).slots.map(\.id) == [1])
        }
        #expect(try stores.events("a") == ["started", "started", "foundRotated", "rotated"])
        #expect(try stores.events("b") == ["started", "started", "rotated"])
        let found = try #require(try stores.lines().first { $0.event == "foundRotated" })
        #expect(found.oldEpoch == 1 && found.epoch == epoch)
    }

    @Test func `a failure in between does not hide what an earlier run has done`() throws {
        try stores.make("a")
        _ = try stores.rotate(["a"])
        try stores.write(stores.begun("a", at: 1) + "\n", to: "report")
        let report = ["--older-than", "1d", "--report", stores.path("report"), "--json"]
        try stores.write("wrong", to: "wrong")
        let wrong = try stores.result(
            stores.rotate(
                ["a"], report, secret: ["--passphrase-file", stores.path("wrong")], exitCode: 3))
        // Without the right secret nothing is found.
        #expect(wrong.stores.map(\.event) == ["failed"])
        #expect(try stores.result(stores.rotate(["a"], report)).stores[0].event == "foundRotated")
        #expect(try stores.result(stores.rotate(["a"], report)).stores[0].event == "current")
    }

    @Test func `a main file under the old key is told until it is whole`() throws {
        try stores.make("a")
        let store = try stores.open("a")
        let report = ["--report", stores.path("report"), "--json"]
        try store.read { tx in
            _ = try tx.rows("SELECT * FROM t").count
            let rotated = try stores.result(stores.rotate(["a"], report, exitCode: 18))
            #expect(rotated.stores.map(\.event) == ["rotated"])
            // The age alone would leave it alone.
            let young = try stores.result(
                stores.rotate(["a"], report + ["--older-than", "1d"], exitCode: 18))
            #expect(young.stores.map(\.event) == ["current"])
            #expect(young.stores.map(\.exitCode) == [18])
            let left = stores.path("left")
            let told = try stores.rotate(
                ["a"],
                ["--report", stores.path("report"), "--older-than", "1d", "--failed-out", left],
                exitCode: 18)
            #expect(told.text.contains("of these unfinished: 1\n"), "\(told.text)")
            #expect(try stores.read("left") == stores.path("a") + "\n")
            _ = try stores.rotate(["a"], ["--from-epoch", "1"], exitCode: 18)
            // The size of the WAL tells it as well.
            _ = try stores.rotate(["a"], ["--older-than", "1d"], exitCode: 18)
            _ = try stores.rotate(["a"], ["--older-than", "1d", "--jobs", "1"], exitCode: 18)
        }
        let whole = try stores.result(stores.rotate(["a"], report + ["--older-than", "1d"]))
        #expect(whole.stores.map(\.event) == ["current"])
        #expect(try store.opensWithoutWAL())
        try store.close()
    }

    @Test func `a report whose only line is torn is gone on with`() throws {
        try stores.make("a")
        let report = ["--report", stores.path("report")]
        for torn in [#"{"byteC"#, #"{"event":"sta"#, #"{"code":"io","event""#] {
            try stores.write(torn, to: "report")
            // This one has nothing to write.
            let none = ["--passphrase-file", stores.path("none")]
            _ = try stores.rotate(["a"], report, secret: none, exitCode: 3)
            _ = try stores.rotate(["a"], report)
            #expect(try stores.read("report").hasPrefix(torn + "\n{"))
        }
    }

    // MARK: Files

    @Test func `a report and metrics destroy no other file`() throws {
        try stores.make("a", "b")
        let names = ["a", "b.keyring", "file"]
        try stores.write("{\n  \"secret\": 1\n}\n", to: "other")
        try stores.write(#"{"secret":1}"#, to: "line")
        try stores.write(#"{"event":"failed","path":"/x"}"# + "\n", to: "events")
        try stores.write(#"{"a":1}{"b":"#, to: "two")
        try stores.write("", to: "empty")
        let others = ["other", "line", "events", "two"]
        let before = try (names + others).map {
            try Data(contentsOf: URL(filePath: stores.path($0)))
        }
        for name in names {
            // By another name, which the words do not show.
            symlink(stores.path(name), stores.path(name + ".link"))
            let link = stores.path(name + ".link")
            _ = try stores.rotate(["b"], ["--prometheus", link], exitCode: 22)
            _ = try stores.rotate(["b"], ["--report", link], exitCode: 25)
            _ = try stores.rotate(
                ["b"], ["--prometheus", stores.path(name)],
                exitCode: name == "b.keyring" ? 2 : 22)
        }
        _ = try stores.rotate(["b"], ["--prometheus", stores.path("empty")], exitCode: 22)
        for name in others {
            _ = try stores.rotate(["b"], ["--report", stores.path(name)], exitCode: 25)
            _ = try stores.rotate(["b"], ["--prometheus", stores.path(name)], exitCode: 22)
        }
        try #require(mkfifo(stores.path("pipe"), 0o600) == 0)
        _ = try stores.rotate(["b"], ["--prometheus", stores.path("pipe")], exitCode: 22)
        _ = try stores.rotate(["b"], ["--prometheus", stores.path("none/m")], exitCode: 17)
        for (one, other) in [
            ("--report", "--prometheus"), ("--report", "--failed-out"),
            ("--prometheus", "--failed-out"), ("--prometheus", "--list"), ("--report", "--list"),
        ] {
            let options = [one, stores.path("new"), other, stores.path("new")]
            _ = try stores.rotate(["b"], options, exitCode: other == "--list" ? 10 : 2)
        }
        try stores.write(stores.path("b"), to: "list")
        _ = try stores.rotate(
            ["b"], ["--list", stores.path("list"), "--report", stores.path("list")], exitCode: 2)
        _ = try stores.rotate(["c"], ["--report", stores.path("c-wal")], exitCode: 2)
        #expect(try stores.epoch("b") == 1)
        #expect(
            try before
                == (names + others).map {
                    try Data(contentsOf: URL(filePath: stores.path($0)))
                })
    }

    @Test func `a rotation counts as done, whatever can be written about it`() throws {
        try stores.make("a", "b")
        try stores.addPassphrase(to: "a")
        let taken = ["failed", "m.prom"].map { "echo taken >'\(stores.path($0))'; " }.joined()
        let files = ["--failed-out", stores.path("failed"), "--prometheus", stores.path("m.prom")]
        let output = try stores.rotate(
            ["a", "b"], files,
            secret: ["--passphrase-command", taken + "cat '\(stores.path("words"))'"], exitCode: 3)
        #expect(try stores.epoch("a") > 1 && stores.epoch("b") == 1)
        for name in ["failed", "m.prom"] {
            #expect(output.errorText.contains("warning: \(stores.path(name))"))
            #expect(try stores.read(name) == "taken\n")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: stores.folder.url.path)
        #expect(!left.contains { $0.hasSuffix(".tmp") }, "\(left)")
        // Nothing is left to do, and no file is left that would be in the way of the next run.
        _ = try stores.rotate(["a"], ["--failed-out", stores.path("none")])
        #expect(!FileManager.default.fileExists(atPath: stores.path("none")))
    }

    @Test func `a restored backup is told by the report, whatever the age of its key`() throws {
        try stores.make("a")
        for name in ["a", "a.keyring"] {
            try FileManager.default.copyItem(
                atPath: stores.path(name), toPath: stores.path(name + ".bak"))
        }
        let report = ["--report", stores.path("report"), "--older-than", "1d"]
        _ = try stores.rotate(["a"], ["--report", stores.path("report")])
        let epoch = try stores.epoch("a")
        #expect(try !stores.rotate(["a"], report).text.contains("backup"))
        for name in ["a", "a.keyring"] {
            try FileManager.default.removeItem(atPath: stores.path(name))
            try FileManager.default.moveItem(
                atPath: stores.path(name + ".bak"), toPath: stores.path(name))
        }
        let output = try stores.rotate(["a"], report)
        #expect(output.text.contains("epoch 1 after \(epoch) in the report"), "\(output.text)")
        let quiet = try stores.rotate(["a"], report + ["--json"])
        #expect(try stores.result(quiet).stores[0].warnings?.count == 1)
    }

    @Test func `each run replaces the metrics, and each store has a series to watch`() throws {
        try stores.make("b")
        let options = ["--prometheus", stores.path("m.prom"), "--stop-after-failures", "1"]
        _ = try stores.rotate(["b"], options)
        #expect(
            try stores.read("m.prom").contains("coffer_rotation_ok{path=\"\(stores.path("b"))\"} 1")
        )
        _ = try stores.rotate(["a", "b"], options, exitCode: 3)
        let text = try stores.read("m.prom")
        for name in ["a", "b"] {
            #expect(text.contains("coffer_rotation_ok{path=\"\(stores.path(name))\"} 0"), "\(text)")
        }
        // A run that cannot begin leaves no earlier success behind.
        _ = try stores.rotate(["b"], options)
        _ = try stores.rotate(
            ["b"], options, secret: ["--passphrase-fd", "9"], exitCode: 19)
        #expect(
            try stores.read("m.prom").contains(
                "coffer_rotation_ok{path=\"\(stores.path("b"))\"} 0"))
        // It was not begun, and its key has an age all the same.
        #expect(text.contains("coffer_key_made_timestamp_seconds{path=\"\(stores.path("b"))\"}"))
        _ = try stores.rotate(["a\nb"], ["--failed-out", stores.path("failed")], exitCode: 2)
    }

    @Test func `a look says what would fail`() throws {
        try stores.make("a")
        func obstacle(_ options: [String], exitCode: Int32 = 3) throws -> RotatedStores.Line {
            let output = try stores.rotate(
                ["a"], ["--dry-run", "--json"] + options, secret: [], exitCode: exitCode)
            return try #require(try stores.result(output).stores.first)
        }
        #expect(try obstacle(["--pause-max", "0.000001"]).exitCode == 25)
        #expect(try obstacle(["--root", "--drop", "7"]).exitCode == 10)
        #expect(try obstacle(["--root", "--drop", "1"]).exitCode == 13)
        #expect(try obstacle(["--root"], exitCode: 0).warnings?.count == 1)
        try stores.addPassphrase(to: "a")
        #expect(try obstacle(["--root"]).exitCode == 19)
        #expect(try obstacle(["--root", "--drop", "1"], exitCode: 0).event == "wouldRotate")
        let words = ["--keep", "2=" + stores.path("words")]
        let kept = try obstacle(["--root"] + words, exitCode: 0)
        #expect(kept.event == "wouldRotate" && kept.message == "a new root key")
        let dropped = try obstacle(["--root", "--drop", "2"], exitCode: 0)
        #expect(dropped.message == "a new root key, without slot 2 (words)")
        // The named secret is for a slot of another kind.
        let other = ["--passphrase-file", stores.path("words")]
        #expect(try obstacle(["--root", "--drop", "2"] + other).exitCode == 19)
    }
}
