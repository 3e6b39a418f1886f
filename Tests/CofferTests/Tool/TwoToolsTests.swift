import Foundation
import Testing

@testable import Coffer

/// Two tools at once on one store: both succeed, or one says that the other has it.
@Suite(.againstHanging, .onOwnThreads) struct TwoToolsTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
        let connection = try store.connect()
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<300 {
                try connection.execute("INSERT INTO t(v) VALUES (randomblob(3000))")
            }
        }
        try Data("v\n1\n2\n".utf8).write(to: store.folder.url.appending(path: "in.csv"))
    }

    /// The arguments of a verb; `COPY` is a name that is free.
    private func arguments(_ words: String) -> [String] {
        var arguments = words.split(separator: " ").map { word in
            switch word {
            case "STORE": store.path
            case "COPY": store.folder.path("copy-\(UUID()).db")
            case "IN": store.folder.path("in.csv")
            default: String(word)
            }
        }
        arguments += ["--raw-key-fd", "3"]
        if arguments[0] == "rekey" { arguments += ["--new-raw-key-fd", "4"] }
        return arguments
    }

    private static let keys: [Int32: Data] = [3: Tool.key(1), 4: Tool.key(2)]

    private func run(_ words: String) throws -> Tool.Output {
        try Tool.run(arguments(words), descriptors: Self.keys)
    }

    /// An import whose input does not end, so that its transaction does not.
    private func startImport() throws -> Tool {
        let tool = try Tool.start(
            arguments("import STORE - --format csv --table t --progress json"),
            descriptors: Self.keys)
        try tool.write(Data(("v\n" + String(repeating: "1\n", count: 600_000)).utf8))
        try tool.waitForError("\"done\"")
        return tool
    }

    // MARK: A lock that is held

    @Test func `a busy store is named, with the process that has a lock and what to do`() throws {
        let holder = try startImport()
        for words in [
            "kv put STORE b k v", "kv expire STORE b k --never", "kv import STORE b IN",
            "import STORE IN --table t",
            "rekey STORE", "compact STORE",
            "sql STORE --write DELETE\tFROM\tt", "journal-mode STORE delete",
            "checkpoint STORE", "salvage STORE COPY",
        ] {
            let output = try run(words + " --busy-timeout 0.05")
            let said = output.errorText
            #expect(output.exitCode == 11, "\(words): \(said)")
            #expect(said.contains(store.path), "\(words): \(said)")
            #expect(said.contains("process \(holder.processIdentifier) "), "\(words): \(said)")
            #expect(said.contains("hint: "), "\(words): \(said)")
        }
        // Readers do not wait for a writer in WAL mode.
        for words in [
            "verify STORE", "backup STORE COPY", "status STORE",
            "export STORE --table t --format jsonl",
        ] {
            let output = try run(words)
            #expect(output.exitCode == 0, "\(words): \(output.errorText)")
        }
        try holder.closeInput()
        #expect(try holder.finish().exitCode == 0)
        try store.succeed("verify")
    }

    @Test func `a restore says which process has the store open`() throws {
        #expect(try run("backup STORE \(store.folder.path("backup.db"))").exitCode == 0)
        let holder = try startImport()
        let output = try run("restore \(store.folder.path("backup.db")) STORE --busy-timeout 0.05")
        #expect(output.exitCode == 11)
        #expect(output.errorText.contains(store.path + " open"), "\(output.errorText)")
        #expect(
            output.errorText.contains("process \(holder.processIdentifier) "),
            "\(output.errorText)")
        try holder.closeInput()
        #expect(try holder.finish().exitCode == 0)
        try store.succeed("verify")
    }

    // MARK: Keyrings

    /// Runs `coffer key` once for each list of arguments, all at the same time.
    private func keyVerbs(_ verbs: [[String]], _ secret: [String]) throws -> [Tool.Output] {
        let tools = try verbs.map { try Tool.start(["key"] + $0 + secret) }
        return try tools.map { try $0.finish() }
    }

    @Test func `tools that change the slots of one keyring at once lose none of the changes`()
        throws
    {
        let keyed = store.folder.path("keyed.db")
        let files = try (0..<6).map { number in
            try store.write(Data(repeating: UInt8(number + 1), count: 32), as: "file\(number)")
        }
        let secret = ["--key-file", files[0]]
        #expect(
            try Tool.run(["init", keyed, "--keyring", "--no-recovery-key"] + secret).exitCode == 0)
        let added = try keyVerbs(
            files[1...].map { ["add", keyed, "--new-key-file", $0, "--label", $0] }, secret)
        #expect(added.map(\.exitCode) == [0, 0, 0, 0, 0], "\(added.map(\.errorText))")
        #expect(Set(try Keyring(of: keyed).slots.map(\.label)) == Set(["first"] + files[1...]))
        #expect(Set(try Keyring(of: keyed).slots.map(\.id)) == Set(1...6))

        // One credential gets one slot, and one slot ends once.
        let new = try store.write(Data(repeating: 9, count: 32), as: "new")
        let same = try keyVerbs(
            Array(repeating: ["add", keyed, "--new-key-file", new], count: 3), secret)
        #expect(same.map(\.exitCode).sorted() == [0, 22, 22])
        let removed = try keyVerbs(Array(repeating: ["remove", keyed, "3"], count: 3), secret)
        #expect(removed.map(\.exitCode).sorted() == [0, 10, 10])
        for file in files.enumerated() {
            let isRemoved = try !Keyring(of: keyed).slots.contains { slot in
                slot.label == file.element || file.offset == 0 && slot.id == 1
            }
            let tested = try Tool.run(["key", "test", keyed, "--key-file", file.element])
            #expect(tested.exitCode == (isRemoved ? 12 : 0))
        }
    }

    // MARK: Any moment

    private static let verbs = [
        "rekey STORE", "compact STORE", "verify STORE", "backup STORE COPY",
        "import STORE IN --table t", "kv put STORE b k v",
    ]

    /// The first one is stopped as soon as it tells of progress, wherever that is.
    @Test(arguments: verbs, verbs)
    func `two verbs at once both succeed, or one says busy, and the store stays good`(
        first: String, second: String
    ) throws {
        let wait = " --busy-timeout 0.05 --progress json"
        let stopped = try Tool.start(arguments(first + wait), descriptors: Self.keys)
        try stopped.waitForError("\"done\"")
        stopped.send(SIGSTOP)
        let other = try run(second + wait)
        stopped.send(SIGCONT)
        let outputs = [(first, try stopped.finish()), (second, other)]
        let changes = outputs.contains {
            $0.0.hasPrefix("rekey") && [0, 18].contains($0.1.exitCode)
        }
        for (words, output) in outputs {
            // A tool that comes after a change of the key has the old one. A reader keeps the old
            // pages of a store that is compacted.
            let codes: Set<Int32> =
                if changes { [0, 11, 12, 18] } else if words.hasPrefix("compact") {
                    [0, 11, 18]
                } else { [0, 11] }
            if changes, words.hasPrefix("rekey"), output.exitCode == 130 {
                // It opened the store before the other one changed the key.
                #expect(
                    output.errorText.contains("another program changed the key"),
                    "\(output.errorText)")
                continue
            }
            #expect(codes.contains(output.exitCode), "\(words): \(output.errorText)")
            guard output.exitCode == 11 else { continue }
            #expect(output.errorText.contains(store.path), "\(words): \(output.errorText)")
            #expect(output.errorText.contains("hint: "), "\(words): \(output.errorText)")
        }
        #expect(outputs.contains { $0.1.exitCode == 0 || $0.1.exitCode == 18 })
        let checks = try [1, 2].map { key in
            try Tool.run(
                ["verify", store.path, "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(UInt8(key))])
        }
        let isGood = checks.contains { $0.exitCode == 0 }
        #expect(isGood, "\(checks.map(\.errorText)) \(outputs.map(\.1.errorText))")
    }
}
