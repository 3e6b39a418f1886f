import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// What the tool makes of the library's messages.
@Suite(.againstHanging, .onOwnThreads) struct ToolWordsTests {
    @Test(arguments: [
        "Call resume(), then run it again.", "Use savepoint(_:) inside it.",
        "Name the property: \\Note.created.", "Set Configuration.journalMode to .wal.",
        "Use .all to mean every row.", "Say it in static var encodings.",
        "Start with store.write { }, which also reads.", "Use attach(_:as:key:) of a Connection.",
        "Store(.memory) and Connection(.memory) need none.",
    ])
    func `a hint that only Swift code could follow is left out`(hint: String) {
        #expect(ToolWords.isSwift(hint))
    }

    @Test(arguments: [
        "Restore the file from a backup.", "Put a name with spaces in double quotes.",
        "Raise the limit (ulimit -f) and try again: nothing was changed.",
        "Remove the other names (find DIR -samefile ./a.db lists them).",
        "Install SQLCipher 4 and build against it; .portable files work on both.",
        "No key opens it: copy it into a new store with Store.encrypt.",
        "Copy the file into a new store with Store.upgrade, or `coffer upgrade`.",
        "Another connection or process holds the lock: try again, or raise busyTimeout.",
        "PRAGMA foreign_key_check lists all such rows.",
        "Remove the other names (find DIR -samefile /data/Notes.db lists them), or go on.",
    ])
    func `a hint that a shell's user can follow is kept`(hint: String) {
        #expect(ToolWords.hint(hint) != nil)
    }

    @Test func `each phrase that is replaced is one that the library says`() throws {
        let base = Repository.root.appending(path: "Sources")
        let files = try #require(FileManager.default.enumerator(atPath: base.path))
        let sources = try files.compactMap { $0 as? String }
            .filter { $0.hasSuffix(".swift") && !$0.hasPrefix("CofferTool/") }
            .map { try String(contentsOf: base.appending(path: $0), encoding: .utf8) }.joined()
        // A message may be composed of several literals.
        let said = sources.replacing(#/"\s+\+ "/#, with: "")
        for (phrase, _) in ToolWords.words {
            let isSaid = said.contains(phrase)
            #expect(isSaid, "\(phrase)")
        }
    }

    @Test func `the reasons of refused SQL have no word of the library`() throws {
        let store = try ToolStore()
        for sql in [
            "PRAGMA key = 'x'", "PRAGMA rekey = 'x'", "PRAGMA cipher_page_size = 1024",
            "PRAGMA journal_mode = DELETE", "ATTACH 'x' AS y", "BEGIN", "SAVEPOINT a",
            "PRAGMA page_size = 1024", "PRAGMA user_version = 1; SELECT 1",
        ] {
            let output = try store.run("sql", [sql, "--write"])
            #expect(output.exitCode != 0)
            #expect(!ToolWords.isSwift(output.errorText), "\(output.errorText)")
            #expect(!output.errorText.contains("Configuration"), "\(output.errorText)")
        }
    }

    // MARK: Exit codes

    @Test func `no two exit codes have a meaning`() {
        let numbers = ExitStatus.allCases.map(\.rawValue)
        #expect(Set(ExitStatus.allCases.map(\.meaning)).count == numbers.count)
    }

    @Test func `an existing file, a constraint, bad SQL and a forgotten option have a code each`()
        throws
    {
        let store = try ToolStore()
        try store.succeed("sql", ["CREATE TABLE t(v UNIQUE)", "--write"])
        try store.succeed("sql", ["INSERT INTO t VALUES (1)", "--write"])
        try store.fail("sql", ["INSERT INTO t VALUES (1)", "--write"], exitCode: 23)
        try store.fail("sql", ["SELECT * FROM nowhere"], exitCode: 24)
        try store.fail("sql", ["PRAGMA key = 'x'", "--write"], exitCode: 24)
        try store.fail("sql", ["DELETE FROM t"], exitCode: 26, saying: "--write")
        try store.fail(
            "import", ["-", "--table", "t", "--format", "jsonl"], input: Data("{".utf8),
            exitCode: 25, saying: "line 1")
        let taken = try Tool.run(
            ["init", store.path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(taken.exitCode == 22, "\(taken.errorText)")
    }

    @Test func `an error in JSON names its exit code, and the library's reason`() throws {
        let store = try ToolStore()
        try store.execute("CREATE TABLE t(v)")
        try Damage.truncate(store.path, to: 5000)
        let output = try store.run("status", ["--json"])
        #expect(output.exitCode == 14)
        let object = try JSONSerialization.jsonObject(with: output.stderr) as? [String: Any]
        let error = try #require(object?["error"] as? [String: Any])
        #expect(error["code"] as? String == "damaged")
        #expect(error["reason"] as? String == "truncated")
        #expect(error["exitCode"] as? Int == 14)
    }

    // MARK: Verbs

    @Test(arguments: [
        (["rekye", "x.db"], "Did you mean coffer rekey?"),
        (["kv", "putt", "x.db"], "Did you mean coffer kv put?"),
        (["frobnicate"], "coffer --help lists the verbs."),
    ])
    func `a verb that does not exist is compared to the others`(
        arguments: [String], hint: String
    ) throws {
        let output = try Tool.run(arguments)
        #expect(output.exitCode == 2)
        #expect(output.stdout.isEmpty)
        #expect(output.errorText.contains(hint), "\(output.errorText)")
    }

    // MARK: Pages

    @Test func `pages that follow each other are told as a run`() {
        #expect(PageRuns.text(of: [3]) == "3")
        #expect(PageRuns.text(of: [3, 7, 8, 9, 11]) == "3, 7–9, 11")
        let contents: [Int: PageContent] = [4: .free, 5: .free, 6: .free, 8: .free, 9: .schema]
        let damaged = [0, 4, 5, 6, 8, 9].map { DamagedPage($0, contents) }
        let runs = VerifyResult.Damaged.runs(of: damaged)
        #expect(runs.map { [$0.page, $0.lastPage] } == [[0, 0], [4, 6], [8, 8], [9, 9]])
        #expect(runs[1].text == "3 pages, 4–6: \(PageContent.free)")
    }
}
