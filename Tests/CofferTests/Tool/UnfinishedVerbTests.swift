import Foundation
import Testing

/// Verbs that are killed while they make a file, and `coffer doctor FOLDER`.
@Suite(.againstHanging, .onOwnThreads) struct UnfinishedVerbTests {
    private let store: ToolStore
    private let copy: String

    init() throws {
        store = try ToolStore()
        copy = store.folder.path("copy.db")
    }

    /// Enough for a copy to take a while.
    private func fill() throws {
        try store.execute(
            "CREATE TABLE note(id INTEGER PRIMARY KEY, body)",
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
            INSERT INTO note(body) SELECT randomblob(2000) FROM n
            """)
    }

    private func unfinished() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: store.folder.url.path)
            .filter { $0.contains(".new-") }.sorted()
    }

    /// Runs a verb and kills it as soon as it reports progress; runs it again if it was faster.
    private func killHalfWay(_ arguments: [String]) throws {
        for _ in 0..<20 {
            let tool = try Tool.start(
                arguments + ["--raw-key-fd", "3", "--progress", "json"],
                descriptors: [3: Tool.key(1)])
            let deadline = ContinuousClock.now + .seconds(60)
            while !tool.errorText.contains("\"done\"") {
                try #require(ContinuousClock.now < deadline, "no progress was told")
                usleep(500)
            }
            tool.send(SIGKILL)
            if try tool.finish().exitCode == 137, access(copy, F_OK) != 0 { return }
            // It has its name already, or has done all but its last step.
            for name in try unfinished() + ["copy.db"] {
                try? FileManager.default.removeItem(atPath: store.folder.path(name))
            }
        }
        Issue.record("it was always faster than the signal")
    }

    private func doctor(_ options: String...) throws -> Tool.Output {
        let output = try Tool.run(["doctor", store.folder.url.path] + options)
        #expect(output.exitCode == 0, "\(output.errorText)")
        return output
    }

    /// State and path of each unfinished file that `doctor --json` reports.
    private func checks(_ output: Tool.Output) throws -> [(state: String, path: String?)] {
        let report = try #require(
            JSONSerialization.jsonObject(with: output.stdout) as? [String: Any])
        let checks = try #require(report["checks"] as? [[String: Any]])
        return checks.filter { $0["name"] as? String == "unfinished" }
            .map { ($0["state"] as? String ?? "", $0["path"] as? String) }
    }

    @Test(arguments: [["backup"], ["decrypt", "--write-plaintext"]])
    func `files of a killed copy are removed by the next run`(verb: [String]) throws {
        try fill()
        try killHalfWay([verb[0], store.path, copy] + verb.dropFirst())
        #expect(try unfinished().count == 2, "the file and its lock")
        let output = try store.run(verb[0], [copy] + verb.dropFirst())
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try unfinished().isEmpty)
    }

    @Test func `a killed export leaves no file at all`() throws {
        try fill()
        try killHalfWay(["export", store.path, "--output", copy])
        #expect(try unfinished().isEmpty)
        #expect(access(copy, F_OK) != 0)
        try store.succeed("export", ["--output", copy])
        #expect(access(copy, F_OK) == 0)
    }

    @Test(.onSmallDisk)
    func `export makes its file also where none can be without a name`() throws {
        try store.execute("CREATE TABLE note(body)", "INSERT INTO note VALUES ('here')")
        // Without its descriptors in /proc the tool cannot name a file that has no name.
        let output = try Tool.run(
            ["export", store.path, "--output", copy, "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)],
            under: [
                "unshare", "-Urm", "sh", "-c", "mount -t tmpfs tmpfs /proc/$$/fd && exec \"$@\"",
                "sh",
            ])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try String(contentsOfFile: copy, encoding: .utf8).contains("here"))
        #expect(try unfinished().isEmpty)
        let facts = try FileManager.default.attributesOfItem(atPath: copy)
        #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    }

    @Test func `doctor lists the unfinished files of a folder, and removes them on request`() throws
    {
        let clean = try doctor("--json")
        #expect(try checks(clean).map(\.state) == ["good"])
        try fill()
        try killHalfWay(["decrypt", store.path, copy, "--write-plaintext"])
        let said = try doctor()
        #expect(said.text.contains("left by a process that ended"))
        #expect(said.text.contains("--clean"))
        let listed = try checks(doctor("--json"))
        #expect(listed.map(\.state) == ["warning"])
        let path = try #require(listed.first?.path)
        #expect(path.hasPrefix(copy + ".new-"))
        #expect(FileManager.default.fileExists(atPath: path))
        let removed = try checks(doctor("--clean", "--json"))
        #expect(removed.map(\.state) == ["good"])
        #expect(removed.map(\.path) == [path])
        #expect(try unfinished().isEmpty)
        #expect(try checks(doctor("--clean", "--json")).map(\.path) == [nil])
    }

    @Test func `doctor does not touch a file that is being made, nor one without a lock`() throws {
        try fill()
        let peer = try Peer(["copy-held", "backup", store.path, copy, "1"])
        try #require(peer.line() == "ready")
        let strange = store.folder.path("other.db.new-0123456789abcdef")
        try Data("x".utf8).write(to: URL(filePath: strange))
        let before = try unfinished()
        let told = try checks(doctor("--clean", "--json"))
        #expect(told.map(\.state) == ["good", "warning"])
        #expect(told.last?.path == strange)
        #expect(try unfinished() == before)
        peer.goOn()
        #expect(peer.finish() == ["copied"])
        #expect(access(copy, F_OK) == 0)
    }

    @Test func `doctor cleans folders only`() throws {
        for (arguments, exitCode) in [([store.path, "--clean"], 2), (["--clean"], 2), ([""], 2)] {
            let output = try Tool.run(["doctor"] + arguments)
            #expect(output.exitCode == exitCode, "\(arguments)")
            #expect(output.stdout.isEmpty)
        }
    }
}
