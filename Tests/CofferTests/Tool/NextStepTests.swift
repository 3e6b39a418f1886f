import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// Messages name the file, and the command that helps.
@Suite(.againstHanging, .onOwnThreads) struct NextStepTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(rowCount: Int = 50) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        for number in 0..<rowCount {
            try connection.execute("INSERT INTO note VALUES (\(number), randomblob(2000))")
        }
        connection.close()
    }

    private func coffer(_ arguments: [String], under wrapper: [String] = []) throws -> Tool.Output {
        try Tool.run(
            arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1), 4: Tool.key(2)],
            under: wrapper)
    }

    // MARK: Damage

    @Test func `each message about damage names the store, restore and salvage`() throws {
        try make()
        try Damage.flip(path, at: 4096 + 100)
        for arguments in [
            ["verify", path], ["verify", path, "--quiet"], ["status", path], ["export", path],
            ["sql", path, "SELECT * FROM note"], ["backup", path, folder.path("copy.db")],
            ["compact", path], ["rekey", path, "--new-raw-key-fd", "4"],
            ["rekey", path, "--new-raw-key-fd", "4", "--dry-run"],
            ["export", path, "--output", folder.path("x.sql")],
            ["decrypt", path, folder.path("plain.db"), "--write-plaintext"],
        ] {
            let output = try coffer(arguments)
            #expect(output.exitCode == 14, "\(arguments): \(output.errorText)")
            let said = output.text + output.errorText
            #expect(said.contains("coffer restore BACKUP \(path)"), "\(arguments): \(said)")
            #expect(said.contains("coffer salvage \(path) COPY"), "\(arguments): \(said)")
            let lines = said.split(separator: "\n").filter { !$0.contains("coffer restore") }
            let isNamed = lines.contains { $0.contains(path) }
            #expect(isNamed || arguments.contains("--quiet"), "\(arguments): \(said)")
        }
    }

    @Test func `a file whose end is lost, or that is empty, has a next step too`() throws {
        try make()
        try Damage.truncate(path, to: 5000)
        let short = try coffer(["status", path])
        #expect(short.exitCode == 14)
        #expect(short.errorText.contains("coffer salvage \(path) COPY"), "\(short.errorText)")
        try Damage.truncate(path, to: 0)
        let empty = try coffer(["verify", path])
        #expect(empty.exitCode == 14)
        #expect(empty.errorText.contains("coffer restore BACKUP \(path)"), "\(empty.errorText)")
        #expect(!empty.errorText.contains("salvage"), "\(empty.errorText)")
    }

    @Test func `a file of one byte is not called empty`() throws {
        try Data([0]).write(to: URL(filePath: path))
        let output = try coffer(["verify", path])
        #expect(output.exitCode == 16, "\(output.errorText)")
        #expect(output.errorText.contains("has 1 byte: less than one page"))
    }

    @Test func `a damaged backup is not the one to restore from`() throws {
        try make()
        try Damage.flip(path, at: 4096 + 100)
        let output = try coffer(["restore", path, folder.path("store2.db")])
        #expect(output.exitCode == 14)
        #expect(output.errorText.contains(path))
        #expect(!output.errorText.contains("coffer restore"), "\(output.errorText)")
        #expect(output.errorText.lowercased().contains("another backup"), "\(output.errorText)")
    }

    @Test func `restore of a file over itself is wrong usage`() throws {
        try make()
        let before = try Data(contentsOf: URL(filePath: path))
        let output = try coffer(["restore", path, folder.url.path + "/./store.db"])
        #expect(output.exitCode == 2, "\(output.errorText)")
        #expect(output.errorText.contains("same file"))
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test func `a command in a hint can be pasted into a shell`() {
        #expect(ShellWord.of("/a/b-1.db") == "/a/b-1.db")
        #expect(ShellWord.of("it's a.db") == #"'it'\''s a.db'"#)
        #expect(ShellWord.of("-x.db") == "./-x.db")
        #expect(ShellWord.of("a$b") == "'a$b'")
        #expect(ShellWord.of("größe.db") == "größe.db")
        #expect(
            Remedy.hint("The end is missing: restore the file from a backup.", "go on")
                == "The end is missing: go on.")
        #expect(
            Remedy.hint("Restore the file next to its WAL.", "go on")
                == "Restore the file next to its WAL.")
        #expect(Remedy.hint(nil, "go on") == "Go on.")
    }

    // MARK: Pages

    @Test func `a rehearsal tells damaged pages as runs, and all of them`() throws {
        try make(rowCount: 100)
        for page in 10..<40 { try Damage.flip(path, at: (page - 1) * 4096 + 100) }
        try Damage.flip(path, at: 45 * 4096 + 100)
        let output = try coffer(["rekey", path, "--new-raw-key-fd", "4", "--dry-run"])
        #expect(output.exitCode == 14)
        #expect(output.text.contains("10–39, 46"), "\(output.text)")
        let change = try coffer(["rekey", path, "--new-raw-key-fd", "4"])
        #expect(change.exitCode == 14)
        #expect(change.errorText.contains("10–25, perhaps more"), "\(change.errorText)")
    }

    @Test func `salvage tells lost pages that follow each other as one run`() throws {
        try make(rowCount: 100)
        for page in [20, 21, 22, 23, 30] { try Damage.flip(path, at: (page - 1) * 4096 + 100) }
        let output = try coffer(["salvage", path, folder.path("rest.db")])
        #expect(output.exitCode == 14, "\(output.errorText)")
        let lost = output.text.split(separator: "\n").filter { $0.hasPrefix("lost:") }
        #expect(lost.count == 2, "\(output.text)")
        #expect(lost.first?.contains("note: rows ") == true, "\(output.text)")
        #expect(lost.first?.hasSuffix(", 4 pages, 20–23") == true, "\(output.text)")
        #expect(lost.last?.hasSuffix(", page 30") == true, "\(output.text)")
        #expect(output.text.contains("rows, 2 gaps"), "\(output.text)")
        let json = try coffer(["salvage", path, folder.path("again.db"), "--json"])
        #expect(json.text.contains("\"lastPage\":23,\"lastRowID\":"), "\(json.text)")
    }

    @Test func `gaps are one run only if pages and rows follow each other`() {
        func pages(_ gaps: (Int, Int64?, Int64?)...) -> [ClosedRange<Int>] {
            SalvageResult.Gap.runs(
                of: gaps.map { SalvageReport.Gap(page: $0.0, firstRowID: $0.1, lastRowID: $0.2) }
            ).map { $0.page...$0.lastPage }
        }
        #expect(pages((3, 1, 5), (4, 6, 9), (5, 10, nil)) == [3...5])
        #expect(pages((3, nil, nil), (4, nil, nil)) == [3...4])
        #expect(pages((3, 1, 5), (4, 7, 9)) == [3...3, 4...4])
        #expect(pages((3, 1, 5), (5, 6, 9)) == [3...3, 5...5])
        #expect(pages((4, 1, 5), (3, 6, 9)) == [4...4, 3...3])
        #expect(pages((3, 1, .max), (4, .min, 0)) == [3...3, 4...4])
    }

    @Test func `many runs of pages are counted`() {
        let pages = Array(stride(from: 2, through: 60, by: 2))
        #expect(PageRuns.text(of: pages, maximumCount: 2) == "2, 4 and 28 more")
        #expect(PageRuns.text(of: [1, 2, 5, 7, 8], maximumCount: 2) == "1–2, 5 and 2 more")
    }

    @Test func `problems of the structure have a line each, and the rest is counted`() {
        var report = VerificationReport()
        report.problems =
            ["*** in database main ***\nPage 3: a\nPage 4: b"]
            + (0..<30).map { "row \($0) missing from index i" }
        let lines = VerifyResult(path: "a.db", report).lines
            .filter { $0.label.hasPrefix("problem") }
        #expect(lines.count == 21)
        #expect(!lines.contains { $0.value.contains("\n") })
        #expect(lines[1].value == "Page 3: a")
        #expect(lines.last?.value == "13 more, which --json lists")
    }

    // MARK: A full disk

    private static let script = """
        mount -t tmpfs -o size=700k tmpfs "$1" && cp "$2" "$1/store.db" && shift 2 && exec "$@"
        """

    @Test(.onSmallDisk) func `a full disk is named with the store`() throws {
        try make(rowCount: 10)
        let big = folder.path("big.bin")
        try Data(count: 900_000).write(to: URL(filePath: big))
        let rows = folder.path("rows.csv")
        try Data(("a\n" + String(repeating: "some text of a row\n", count: 60_000)).utf8)
            .write(to: URL(filePath: rows))
        let mount = folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let wrapper = ["unshare", "-Urm", "sh", "-c", Self.script, "sh", mount, path]
        let store = mount + "/store.db"
        for arguments in [
            ["sql", store, "INSERT INTO note VALUES (99, zeroblob(900000))", "--write"],
            ["kv", "put", store, "b", "k", "file:\(big)"],
            ["import", store, rows, "--table", "t"],
        ] {
            let output = try coffer(arguments, under: wrapper)
            #expect(output.exitCode == 17, "\(arguments): \(output.errorText)")
            #expect(output.errorText.contains(store + ": "), "\(output.errorText)")
            #expect(output.errorText.contains("disk is full"), "\(output.errorText)")
        }
    }

    // MARK: SQL

    @Test(arguments: [
        ("PRAGMA journal_mode=DELETE", "coffer journal-mode"), ("SELECT 1; SELECT 2", "--file -"),
        ("ATTACH 'x' AS y", "coffer import"),
    ])
    func `SQL that is refused has another way`(sql: String, way: String) throws {
        try make(rowCount: 1)
        let output = try coffer(["sql", path, sql, "--write"])
        #expect(output.exitCode == 24)
        #expect(output.errorText.contains(way), "\(output.errorText)")
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `a store that cannot be written can be copied`() throws {
        try make(rowCount: 1)
        try OtherUser.giveAway(folder, file: 0o444, folder: 0o555)
        let output = try coffer(
            ["sql", path, "DELETE FROM note", "--write"], under: OtherUser.stranger)
        #expect(output.exitCode == 21)
        #expect(output.errorText.contains("coffer backup"), "\(output.errorText)")
        #expect(!output.errorText.contains("reading only"), "\(output.errorText)")
    }

    @Test func `permissions have three digits`() throws {
        try make(rowCount: 1)
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: path)
        let output = try Tool.run(["doctor", path])
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        guard output.exitCode == 0 else { return }
        #expect(output.text.contains("mode 000"), "\(output.text)")
    }
}
