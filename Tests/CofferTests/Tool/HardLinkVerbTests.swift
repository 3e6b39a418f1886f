import Foundation
import Testing

/// A store under two names: the verbs that write refuse it, the verbs that read do not.
@Suite(.againstHanging, .onOwnThreads) struct HardLinkVerbTests {
    private let store: ToolStore
    private let other: String

    init() throws {
        store = try ToolStore()
        other = store.folder.path("other.db")
        try store.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        try FileManager.default.linkItem(atPath: store.path, toPath: other)
    }

    private func run(_ verb: [String]) throws -> Tool.Output {
        try Tool.run(
            verb + ["--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
    }

    @Test func `verbs that write refuse a store with two names, under either`() throws {
        let csv = try store.write(Data("id,body\n1,one\n".utf8), as: "in.csv")
        for path in [store.path, other] {
            for verb in [
                ["rekey", path, "--new-raw-key-fd", "4"],
                ["sql", path, "INSERT INTO note VALUES (7, 'x')", "--write"],
                ["import", path, csv, "--table", "note"],
                ["kv", "put", path, "b", "k", "v"], ["kv", "delete", path, "b", "k"],
            ] {
                let output = try run(verb)
                #expect(output.exitCode == 21, "\(verb): \(output.errorText)")
                #expect(output.stdout.isEmpty)
                #expect(output.errorText.contains("2 names"), "\(verb): \(output.errorText)")
                #expect(output.errorText.contains("-samefile"))
            }
        }
        #expect(try store.rows("SELECT * FROM note").isEmpty)
    }

    @Test func `restore tells what the other name is, and a stray WAL is not the backup's`() throws
    {
        let backup = store.folder.path("backup.db")
        try #require(try run(["backup", store.path, backup]).exitCode == 0)
        let output = try run(["restore", backup, store.path])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("2 names"), "\(output.errorText)")
        let missing = store.folder.path("missing.db")
        try Data(repeating: 1, count: 5000).write(to: URL(filePath: missing + "-wal"))
        let refused = try run(["restore", backup, missing])
        #expect(refused.exitCode == 14)
        #expect(refused.errorText.contains("missing.db is missing"))
        #expect(!refused.errorText.contains("backup.db: "), "\(refused.errorText)")
    }

    @Test func `verbs that read open a store with two names`() throws {
        func new(_ name: String) -> String { store.folder.path(name) }
        for verb in [
            ["status", store.path], ["verify", store.path], ["export", store.path],
            ["sql", store.path, "SELECT * FROM note"], ["kv", "list", store.path],
            ["backup", store.path, new("backup.db")], ["upgrade", store.path, new("upgraded.db")],
            ["decrypt", store.path, new("plain.db"), "--write-plaintext"],
        ] {
            let output = try run(verb)
            #expect(output.exitCode == 0, "\(verb): \(output.errorText)")
        }
        let doctor = try Tool.run(["doctor", store.path])
        #expect(doctor.text.contains("2 (hard links)"))
        let copied = try run(
            ["sql", new("backup.db"), "INSERT INTO note VALUES (7, 'x')", "--write"])
        #expect(copied.exitCode == 0, "a copy has one name")
    }
}
