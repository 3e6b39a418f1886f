import CTool
import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// Verbs that take several stores, each in a run of its own.
@Suite(.againstHanging, .onOwnThreads) struct ListVerbTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        for (name, number) in [("a", 1), ("b", 1), ("other", 2)] as [(String, UInt8)] {
            let store = try Store(
                path: folder.path(name), key: .numbered(number), configuration: .testing(.delete))
            try store.write { tx in
                try tx.execute("CREATE TABLE t(v)")
                for _ in 0..<40 { try tx.execute("INSERT INTO t VALUES (randomblob(900))") }
            }
            try store.close()
        }
    }

    private struct Result: Decodable {
        struct Item: Decodable {
            let path: String
            let exitCode: Int?
            let code: String
            let message: String?
            let report: Report?
        }

        struct Report: Decodable {
            let isGood: Bool?
        }

        let isDone: Bool
        let stores: [Item]
    }

    private func run(
        _ verb: [String], _ names: [String], _ options: [String] = [], exitCode: Int32 = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(
            verb + names.map(folder.path) + options, descriptors: [3: Tool.key(1)])
        #expect(
            output.exitCode == exitCode, "\(output.text)\(output.errorText)",
            sourceLocation: sourceLocation)
        return output
    }

    private func result(_ output: Tool.Output) throws -> Result {
        try JSONDecoder().decode(Result.self, from: output.stdout)
    }

    @Test func `verify checks each store, and counts damage apart from failures`() throws {
        let damaged = folder.url.appending(path: "b")
        var bytes = try Data(contentsOf: damaged)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: damaged)
        let output = try run(
            ["verify"], ["a", "b", "other"],
            ["--raw-key-fd", "3", "--failed-out", folder.path("failed")], exitCode: 3)
        #expect(output.text.contains("damaged: \(folder.path("b")): damaged or tampered\n"))
        #expect(output.text.contains("done:    1\n"), "\(output.text)")
        #expect(output.text.contains("failed:  1 (1 wrongKey)\n"), "\(output.text)")
        let failed = try String(contentsOfFile: folder.path("failed"), encoding: .utf8)
        #expect(failed == folder.path("b") + "\n" + folder.path("other") + "\n")
        let json = try result(
            run(
                ["verify"], ["a", "b", "other"], ["--raw-key-fd", "3", "--json", "--jobs", "2"],
                exitCode: 3))
        #expect(!json.isDone && json.stores.map(\.exitCode) == [0, 14, 12])
        #expect(json.stores.map(\.code) == ["success", "damaged", "wrongKey"])
        #expect(json.stores.map(\.report?.isGood) == [true, false, nil])
        let quiet = try run(
            ["verify"], ["a", "b"], ["--raw-key-fd", "3", "--quiet"], exitCode: 3)
        #expect(quiet.stdout.isEmpty && quiet.errorText.contains("1 of 2 stores were not done"))
        let few = try result(
            run(
                ["verify"], ["other", "b", "a"],
                ["--raw-key-fd", "3", "--json", "--stop-after-failures", "2"], exitCode: 3))
        #expect(few.stores.map(\.code) == ["wrongKey", "damaged", "notStarted"])
    }

    @Test func `status tells of each store, with a secret or without one`() throws {
        let plain = try run(["status"], ["a", "other"])
        #expect(plain.text.contains("\(folder.path("a")): encrypted, "), "\(plain.text)")
        #expect(plain.text.contains("done:   2\n"), "\(plain.text)")
        let opened = try run(["status"], ["a", "b"], ["--raw-key-fd", "3"])
        #expect(opened.text.contains("the key opens it"), "\(opened.text)")
        let variable = try Tool.run(
            ["status", folder.path("a"), folder.path("b"), "--json"],
            environment: ["COFFER_RAW_KEY_COMMAND": "head -c 32 /dev/zero | tr '\\0' '\\1'"])
        #expect(variable.exitCode == 0 && variable.text.contains(#""keyID""#), "\(variable.text)")
        let wrong = try run(
            ["status"], ["a", "other"], ["--test-key", "--raw-key-fd", "3", "--json"], exitCode: 3)
        #expect(try result(wrong).stores.map(\.exitCode) == [0, 12])
    }

    @Test func `a checkpoint and a test of a credential take several stores too`() throws {
        #expect(try run(["checkpoint"], ["a", "b"], ["--raw-key-fd", "3"]).text.contains("done:"))
        let file = folder.path("file")
        try Data(repeating: 42, count: 32).write(to: URL(filePath: file))
        for name in ["c", "d"] {
            try Store(
                path: folder.path(name),
                key: .keyring(.keyFile([UInt8](repeating: 42, count: 32))),
                configuration: .testing()
            ).close()
        }
        let tested = try run(["key", "test"], ["c", "d", "a"], ["--key-file", file], exitCode: 3)
        #expect(tested.text.contains("\(folder.path("c")): slot 1 opens it"), "\(tested.text)")
        #expect(tested.text.contains("failed:  there is no keyring at \(folder.path("a"))"))
    }

    @Test func `an interruption ends a list of any verb`() throws {
        try #require(mkfifo(folder.path("pipe"), 0o600) == 0)
        let begun = folder.path("begun")
        let command = "echo >'\(begun)'; cat '\(folder.path("pipe"))'"
        let tool = try Tool.start(
            ["verify", folder.path("a"), folder.path("b"), "--json"]
                + ["--raw-key-command", command])
        try waitUntil { FileManager.default.fileExists(atPath: begun) }
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(try result(output).stores.map(\.code) == ["interrupted", "notStarted"])
        #expect(output.errorText.contains("2 of 2 stores were not done"), "\(output.errorText)")
    }

    @Test func `a run that cannot start is a failure of its store alone`() throws {
        let names = (0..<8).map { "\($0)" }
        for name in names {
            try FileManager.default.copyItem(atPath: folder.path("a"), toPath: folder.path(name))
        }
        let output = try Tool.runProgram(
            ["sh", "-c", "ulimit -n 16; exec \"$@\"", "sh", Tool.executable.path, "status"]
                + names.map(folder.path) + ["--jobs", "8", "--json"])
        #expect(output.exitCode == 3, "\(output.text)\(output.errorText)")
        let stores = try result(output).stores
        #expect(stores.map(\.path) == names.map(folder.path))
        #expect(stores.contains { $0.message?.contains("cannot be started") == true })
    }

    /// A command that notes the process that runs it, and then prints the key of most stores.
    private func command(noting path: String, before rest: String = "") -> [String] {
        let key = "head -c 32 /dev/zero | tr '\\0' '\\1'"
        return ["--raw-key-command", "echo $PPID >>'\(path)'; \(rest) \(key)"]
    }

    private func lines(of path: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test func `one process works on a store after another, and names each by itself`() throws {
        let noted = folder.path("noted")
        let names = ["absent", "b", "other", "copy"]
        try FileManager.default.copyItem(atPath: folder.path("a"), toPath: folder.path("copy"))
        let output = try run(
            ["verify"], names, command(noting: noted) + ["--json"], exitCode: 3)
        let stores = try result(output).stores
        #expect(stores.map(\.code) == ["notFound", "success", "wrongKey", "success"])
        for (name, store) in zip(names, stores) {
            let others = names.filter { $0 != name }.map(folder.path)
            #expect(!others.contains { store.message?.contains($0) == true }, "\(store)")
        }
        let processes = try lines(of: noted)
        #expect(processes.count >= 3 && Set(processes).count == 1, "\(processes)")
    }

    @Test func `a store has two names, and each is a run of its own`() throws {
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("link"), withDestinationPath: folder.path("a"))
        let output = try run(
            ["verify"], ["a", "link", "a"], command(noting: folder.path("noted")) + ["--json"])
        #expect(try result(output).stores.map(\.path) == ["a", "link"].map(folder.path))
    }

    @Test func `a process that is killed fails its store alone`() throws {
        let noted = folder.path("noted")
        let kills = #"case "$COFFER_PATH" in */b) kill -9 $PPID;; esac;"#
        try FileManager.default.copyItem(atPath: folder.path("a"), toPath: folder.path("copy"))
        let output = try run(
            ["verify"], ["a", "b", "other", "copy"],
            command(noting: noted, before: kills) + ["--json"], exitCode: 3)
        let stores = try result(output).stores
        #expect(stores.map(\.exitCode) == [0, 256 + 9, 12, 0])
        #expect(stores[1].message == "its run was ended by signal 9")
        let processes = try lines(of: noted)
        #expect(processes.count == 4 && Set(processes).count == 2, "\(processes)")
        #expect(processes[0] == processes[1] && processes[2] == processes[3])
    }

    @Test func `only a list starts a worker`() throws {
        let output = try Tool.run(["--worker"])
        #expect(
            output.exitCode == 2 && output.errorText.contains("--worker"), "\(output.errorText)")
    }

    /// Starts a worker on a socket, as a list does, and waits for its end.
    private func endOfWorker(sending bytes: [UInt8]) throws -> Int32 {
        let words = [Tool.executable.path, "--worker"]
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var socket: Int32 = -1
        let process = coffer_start_worker(&pointers, &socket)
        try #require(process > 0)
        _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, 0) }
        close(socket)
        return coffer_wait_for_command(process, 0, 60_000)
    }

    @Test func `a worker that gets no whole run does not end in success`() throws {
        #expect(try endOfWorker(sending: []) == 2)
        // Four bytes without descriptors.
        #expect(try endOfWorker(sending: [9, 0, 0, 0]) == 17)
    }

    @Test func `a run that has not told its end is never done`() {
        let ends: [Int32: Int32] = [
            0: 1, 14: 14, 256 + SIGTERM: 130, 256 + SIGINT: 130, 256 + SIGKILL: 256 + SIGKILL,
        ]
        for (process, run) in ends { #expect(StoreRun.failure(process) == run) }
    }
}
