import Foundation
import Testing

@testable import Coffer

/// Full-text search: the program's tokenizers, commands and offsets.
@Suite(.againstHanging, .onOwnThreads) struct FullTextTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
    }

    /// The ways to name a tokenizer that this engine has.
    private static let tables: [(module: String, argument: String)] =
        [("fts3", "tokenize=coffer words"), ("fts4", #"tokenize=coffer "words""#)]
        + (isEngine4 ? [("fts5", "tokenize='words'")] : [])

    private static func create(_ index: Int, _ name: String = "t") -> SQL {
        let (module, argument) = tables[index]
        return SQL(text: "CREATE VIRTUAL TABLE \(name) USING \(module)(v, \(argument))")
    }

    private func found(_ query: String, in connection: Connection? = nil) throws -> [Int] {
        try (connection ?? self.connection).rows(
            "SELECT rowid FROM t WHERE t MATCH \(query) ORDER BY rowid"
        ).map { try $0.get(0) }
    }

    /// Gives the tokens that it was made with, whatever the text.
    private struct Fixed: Tokenizer {
        let given: [TextToken]
        func tokens(in text: String) -> [TextToken] { given }
    }

    /// Makes one token of the whole text.
    private struct Whole: Tokenizer {
        func tokens(in text: String) -> [TextToken] {
            [TextToken(text, at: 0..<text.utf8.count)]
        }
    }

    // MARK: Tables

    @Test(arguments: ["simple", "porter", "unicode61"], ["fts3", "fts4"])
    func `the engine's own tokenizers work`(name: String, module: String) throws {
        try connection.execute(
            SQL(text: "CREATE VIRTUAL TABLE t USING \(module)(v, tokenize=\(name))"))
        try connection.execute("INSERT INTO t VALUES ('Running dogs'), ('a cat')")
        #expect(try found("dogs") == [1])
        #expect(try found("run") == (name == "porter" ? [1] : []))
    }

    @Test(arguments: 0..<tables.count)
    func `a tokenizer of the program finds words, phrases and prefixes`(table: Int) throws {
        try connection.register(tokenizer: WordTokenizer(removesDiacritics: true), named: "Words")
        try connection.execute(Self.create(table))
        let texts = ["Die Straße nach Köln", "ΣΊΣΥΦΟΣ rolls", "don’t stop", "日本語 text", ""]
        for text in texts { try connection.execute("INSERT INTO t VALUES (\(text))") }
        try connection.execute("INSERT INTO t VALUES (NULL)")
        #expect(try found("STRASSE") == [1])
        #expect(try found("koln") == [1])
        #expect(try found("\"strasse nach\"") == [1])
        #expect(try found("\"nach strasse\"") == [])
        #expect(try found("stra*") == [1])
        #expect(try found("σίσυφος") == [2])
        #expect(try found("\"本語\"") == [4])
        #expect(try found("\"don't\"") == [3])
        try connection.execute("UPDATE t SET v = 'Zürich' WHERE rowid = 1")
        try connection.execute("DELETE FROM t WHERE rowid = 2")
        #expect(try found("koln") == [])
        #expect(try found("zurich") == [1])
        #expect(try found("rolls") == [])
        try connection.fullText(.integrityCheck, on: "t")
    }

    @Test(arguments: 0..<tables.count)
    func `a tokenizer survives a change of the key`(table: Int) throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute(Self.create(table))
        try connection.execute("INSERT INTO t VALUES ('Straße')")
        try connection.rekey(to: .numbered(8))
        try connection.execute("INSERT INTO t VALUES ('STRASSE')")
        #expect(try found("strasse") == [1, 2])
    }

    @Test(arguments: 0..<tables.count)
    func `prepare registers it with the writer and the readers of a store, in many tasks`(
        table: Int
    ) async throws {
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            try connection.register(tokenizer: WordTokenizer(), named: "words")
        }
        let store = try await Store(
            path: folder.path("other.db"), key: .numbered(7), configuration: configuration)
        let create = Self.create(table)
        try await store.write { tx in try tx.execute(create) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    try await store.write { tx in
                        try tx.execute("INSERT INTO t VALUES (\("ÉTÉ number\(number)"))")
                    }
                    let count = try await store.read { tx in
                        try tx.rows("SELECT v FROM t WHERE t MATCH 'été'").count
                    }
                    #expect(count > 0)
                }
            }
            try await group.waitForAll()
        }
        try await store.rekey(to: .numbered(9))
        try await store.write { tx in try tx.table("t").fullText(.optimize) }
        let row = try await store.read { tx in
            try tx.firstRow("SELECT count(*) FROM t WHERE t MATCH 'été'")
        }
        #expect(row?[0] == 40)
        try await store.close()
    }

    // MARK: Names

    @Test func `a table with an unknown tokenizer cannot be made`() throws {
        for argument in ["coffer nothing", "coffer", "coffer \"two words\""] {
            let error = expect(.notFound) {
                try connection.execute(
                    SQL(text: "CREATE VIRTUAL TABLE t USING fts4(v, tokenize=\(argument))"))
            }
            #expect(error?.sql != nil)
        }
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        expect(.sql) {
            try connection.execute(
                "CREATE VIRTUAL TABLE t USING fts4(v, tokenize=coffer words more)")
        }
        expect(.sql) {
            try connection.execute("CREATE VIRTUAL TABLE t USING fts4(v, tokenize=words)")
        }
        if isEngine4 {
            for argument in ["nothing", "words more"] {
                expect(.sql) {
                    try connection.execute(
                        SQL(text: "CREATE VIRTUAL TABLE t USING fts5(v, tokenize='\(argument)')"))
                }
            }
        } else {
            expect(.sql) { try connection.execute("CREATE VIRTUAL TABLE t USING fts5(v)") }
        }
        #expect(try connection.schemaObjects().isEmpty)
        #expect(try connection.scalar("SELECT 1", as: Int.self) == 1)
    }

    @Test func `a name is taken by the next tokenizer, in any case`() throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute("CREATE VIRTUAL TABLE t USING fts4(v, tokenize=coffer WORDS)")
        try connection.execute("INSERT INTO t VALUES ('one two')")
        #expect(try found("one") == [1])
        try connection.register(tokenizer: Whole(), named: "Words")
        try connection.execute("INSERT INTO t VALUES ('one two')")
        #expect(try found("one") == [1])
        try connection.fullText(.rebuild, on: "t")
        #expect(try found("one") == [])
        #expect(try found("\"one two\"") == [1, 2])
        expect(.misuse) { try connection.register(tokenizer: Whole(), named: "") }
        expect(.misuse) { try connection.register(tokenizer: Whole(), named: "a\0b") }
    }

    @Test func `a file whose tokenizer is missing shows its other tables and the texts`() throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute("CREATE TABLE good(v)")
        try connection.execute("INSERT INTO good VALUES (1)")
        for (index, _) in Self.tables.enumerated() {
            try connection.execute(Self.create(index, "t\(index)"))
            try connection.execute(SQL(text: "INSERT INTO t\(index) VALUES ('one')"))
        }
        connection.close()
        let other = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
        for index in 0..<2 {
            let table = "t\(index)"
            #expect(try other.scalar(SQL(text: "SELECT v FROM \(table)"), as: String.self) == "one")
            for sql in [
                "SELECT * FROM \(table) WHERE \(table) MATCH 'one'",
                "INSERT INTO \(table) VALUES ('two')", "DELETE FROM \(table)",
            ] {
                expect(.notFound) { try other.rows(SQL(text: sql)) }
            }
            expect(.notFound) { try other.fullText(.rebuild, on: table) }
        }
        if isEngine4 { expect(.sql) { try other.rows("SELECT * FROM t2") } }
        #expect(try other.scalar("SELECT v FROM good", as: Int.self) == 1)
        try other.execute("DROP TABLE t0")
        try other.register(tokenizer: WordTokenizer(), named: "words")
        #expect(try other.scalar("SELECT v FROM t1 WHERE t1 MATCH 'one'", as: String.self) == "one")
        #expect(try other.rows("PRAGMA integrity_check").map { $0[0] } == ["ok"])
    }

    @Test func `an FMDB module opens the tables that name it`() throws {
        var configuration = Configuration.testing()
        configuration.tokenizerModules = ["fmdb"]
        let other = try Connection(
            path: folder.path("other.db"), key: .numbered(7), configuration: configuration)
        try other.register(tokenizer: WordTokenizer(), named: "fmdb")
        try other.register(tokenizer: Whole(), named: "key")
        try other.execute("CREATE VIRTUAL TABLE a USING fts3(v, tokenize=fmdb)")
        try other.execute("CREATE VIRTUAL TABLE b USING fts3(v, tokenize=fmdb key)")
        expect(.notFound) {
            try other.execute("CREATE VIRTUAL TABLE c USING fts3(v, tokenize=fmdb other)")
        }
        for table in ["a", "b"] {
            try other.execute("INSERT INTO \(identifier: table) VALUES ('one two')")
        }
        #expect(try other.rows("SELECT * FROM a WHERE a MATCH 'two'").count == 1)
        #expect(try other.rows("SELECT * FROM b WHERE b MATCH 'two'").count == 0)
        configuration.tokenizerModules = [""]
        expect(.misuse) {
            try Connection(path: folder.path(), key: .numbered(7), configuration: configuration)
        }
    }

    @Test func `a handle owned by someone else takes no tokenizer`() throws {
        try connection.execute("CREATE TABLE x(v)")
        try connection.withUnsafeHandle { pointer in
            let other = try Connection(adopting: pointer)
            expect(.unsupported) { try other.register(tokenizer: Whole(), named: "whole") }
            other.close()
        }
    }

    @Test func `a CHECK cannot register a tokenizer by a value that the program binds`() throws {
        let path = folder.path("raw.db")
        do {
            let raw = try RawConnection(path, key: 7)
            let sql = "CREATE TABLE a(n, v CHECK(fts3_tokenizer(n, v) IS NOT NULL))"
            try #require(raw.run(sql) == 0)
        }
        let other = try Connection(path: path, key: .numbered(7), configuration: .testing(.delete))
        let address = Data(repeating: 1, count: MemoryLayout<UnsafeRawPointer>.size)
        expect(.misuse) { try other.execute("INSERT INTO a VALUES ('evil', \(address))") }
        expect(.sql) {
            try other.execute("CREATE VIRTUAL TABLE t USING fts3(v, tokenize=evil)")
        }
    }

    // MARK: What a tokenizer may give

    @Test(arguments: 0..<tables.count)
    func `P31 a token may have any length`(table: Int) throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute(Self.create(table))
        let start = String(repeating: "x", count: 10_000)
        for end in ["a", "b"] { try connection.execute("INSERT INTO t VALUES (\(start + end))") }
        #expect(try found(start + "a") == [1])
        #expect(try found(start + "b") == [2])
        #expect(try found(start + "*") == [1, 2])
        try connection.fullText(.integrityCheck, on: "t")
    }

    @Test func `P31 a tokenizer lives as long as its connection, and no longer`() throws {
        final class Witness: Sendable {}
        struct Held: Tokenizer {
            let witness: Witness
            func tokens(in text: String) -> WordTokenizer.Words {
                WordTokenizer().tokens(in: text)
            }
        }
        weak var seen: Witness?
        do {
            let witness = Witness()
            seen = witness
            try connection.register(tokenizer: Held(witness: witness), named: "words")
        }
        for index in Self.tables.indices {
            try connection.execute(Self.create(index, "t\(index)"))
            try connection.execute(SQL(text: "INSERT INTO t\(index) VALUES ('one')"))
        }
        #expect(seen != nil)
        let other = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
        expect(.notFound) { try other.rows("SELECT * FROM t0 WHERE t0 MATCH 'one'") }
        try connection.register(tokenizer: Whole(), named: "words")
        #expect(seen == nil)
    }

    @Test(arguments: 0..<tables.count)
    func `P31 a text that is not UTF-8 is indexed, and its ranges are right`(table: Int) throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute(Self.create(table))
        // "ab" 0xff "é" 0xe2 0x82 "cd"
        try connection.execute("INSERT INTO t VALUES (CAST(x'6162ffc3a9e2826364' AS TEXT))")
        for word in ["ab", "é", "cd"] { #expect(try found(word) == [1]) }
        if Self.tables[table].module != "fts5" {
            let offsets: String? = try connection.scalar(
                "SELECT offsets(t) FROM t WHERE t MATCH 'cd'")
            #expect(try TextMatch.parse(offsets).map(\.range) == [7..<9])
        }
        expect(.sql) {
            try connection.execute("SELECT * FROM t WHERE t MATCH CAST(x'22ff' AS TEXT)")
        }
        #expect(try connection.scalar("SELECT count(*) FROM t", as: Int.self) == 1)
    }

    @Test func `P31 NULL has no offsets, and a text that does not hold offsets is an error`() throws
    {
        #expect(try TextMatch.parse(nil) == [])
        #expect(try TextMatch.parse("") == [])
        for text in ["1", "0 0 1", "0 0 a 1", "0 0 -1 5", "0 0 9223372036854775807 1", "0,0 1 2 3"]
        {
            expect(.mismatch) { try TextMatch.parse(text) }
        }
        let text = "aé語"
        let match = { TextMatch(column: 0, term: 0, range: $0) }
        #expect(match(1..<3).range(in: text).map { String(text[$0]) } == "é")
        #expect(match(3..<6).range(in: text).map { String(text[$0]) } == "語")
        for range in [2..<3, 1..<2, 0..<7, 9..<9, 4..<6] {
            #expect(match(range).range(in: text) == nil)
        }
        #expect(match(0..<Int.max).range(in: text) == nil)
    }

    @Test(arguments: 0..<tables.count)
    func `a range outside the text or out of order is misuse, an empty token is left out`(
        table: Int
    ) throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute(Self.create(table))
        let wrong: [[TextToken]] = [
            [TextToken("a", at: 0..<4)], [TextToken("a", at: -1..<1)],
            [TextToken("a", at: 1..<2), TextToken("b", at: 0..<1)],
            [TextToken("a", at: 0..<Int.max)],
        ]
        for tokens in wrong {
            try connection.register(tokenizer: Fixed(given: tokens), named: "words")
            expect(.misuse) { try connection.execute("INSERT INTO t VALUES ('abc')") }
        }
        try connection.register(
            tokenizer: Fixed(given: [TextToken("", at: 0..<0), TextToken("b", at: 1..<2)]),
            named: "words")
        try connection.execute("INSERT INTO t VALUES ('abc')")
        #expect(try connection.scalar("SELECT count(*) FROM t", as: Int.self) == 1)
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        #expect(try found("b") == [1])
    }

    @Test func `a tokenizer must not use its connection`() throws {
        struct Again: Tokenizer {
            let use: @Sendable () -> Void
            func tokens(in text: String) -> [TextToken] {
                use()
                return []
            }
        }
        nonisolated(unsafe) let connection = connection
        try connection.register(
            tokenizer: Again { expect(.misuse) { try connection.rows("SELECT 1") } },
            named: "words")
        try connection.execute(Self.create(0))
        try connection.execute("INSERT INTO t VALUES ('abc')")
        #expect(try connection.scalar("SELECT v FROM t", as: String.self) == "abc")
        try connection.register(tokenizer: Whole(), named: "words")
    }

    // MARK: Commands

    @Test(arguments: 0..<tables.count)
    func `commands run on each kind of table`(table: Int) throws {
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        try connection.execute(Self.create(table))
        for number in 0..<50 { try connection.execute("INSERT INTO t VALUES (\("word\(number)"))") }
        let commands: [FullTextCommand] = [
            .automerge(0), .automerge(1), .automerge(8), .merge(pages: 100), .optimize, .rebuild,
            .integrityCheck, .merge(pages: 1, segments: 2),
        ]
        for command in commands { try connection.fullText(command, on: "T") }
        try connection.transaction { try connection.fullText(.optimize, on: "t", in: "main") }
        #expect(try found("word7") == [8])
        for command in [
            FullTextCommand.merge(pages: 0), .merge(pages: 1, segments: 1), .automerge(17),
            .automerge(-1), .merge(pages: .max),
        ] {
            expect(.misuse) { try connection.fullText(command, on: "t") }
        }
        // The new tokenizer finds other words than those in the index.
        try connection.execute("INSERT INTO t VALUES ('two words')")
        try connection.register(tokenizer: Whole(), named: "words")
        let error = expect(.damaged) { try connection.fullText(.integrityCheck, on: "t") }
        #expect(error?.table == "t" && error?.pages.isEmpty == true)
        try connection.fullText(.rebuild, on: "t")
        try connection.fullText(.integrityCheck, on: "t")
    }

    @Test func `a command is accepted for a full-text table only`() throws {
        try connection.execute("CREATE TABLE plain(plain)")
        try connection.execute("CREATE TABLE plain_segdir(v)")
        try connection.execute("CREATE VIEW seen AS SELECT * FROM plain")
        expect(.misuse) { try connection.fullText(.optimize, on: "plain") }
        expect(.misuse) { try connection.fullText(.optimize, on: "seen") }
        expect(.notFound) { try connection.fullText(.optimize, on: "nothing") }
        expect(.notFound) { try connection.fullText(.optimize, on: "plain", in: "nowhere") }
        #expect(try connection.rows("SELECT * FROM plain").isEmpty)
        try connection.execute("CREATE VIRTUAL TABLE \"o\"\"dd 'name\" USING fts4(v)")
        try connection.fullText(.optimize, on: "o\"dd 'name")
        try connection.execute("CREATE VIRTUAL TABLE temp.brief USING fts4(v)")
        try connection.fullText(.rebuild, on: "brief")
    }

    // MARK: Truth

    @Test(arguments: journalModes, 0..<tables.count)
    func `a damaged page of the index or the texts is damage, not a wrong answer`(
        mode: Configuration.JournalMode, table: Int
    ) throws {
        let path = folder.path("damaged.db")
        func open() throws -> Connection {
            let connection = try Connection(
                path: path, key: .numbered(7), configuration: .testing(mode))
            try connection.register(tokenizer: WordTokenizer(), named: "words")
            return connection
        }
        var connection = try open()
        try connection.execute("CREATE TABLE good(v)")
        try connection.execute("INSERT INTO good VALUES (1)")
        try connection.execute(Self.create(table))
        let first = try connection.current().firstInteger("PRAGMA page_count")
        try connection.transaction {
            for number in 0..<2000 {
                try connection.execute("INSERT INTO t VALUES (\("same word\(number)"))")
            }
        }
        let last = try connection.current().firstInteger("PRAGMA page_count")
        let byteCount = try #require(connection.profile).pageByteCount
        connection.close()
        let good = try Data(contentsOf: URL(filePath: path))
        var damagedCount = 0
        for page in stride(from: first + 1, through: last, by: 5) {
            try Damage.flip(path, at: (page - 1) * byteCount + 100)
            connection = try open()
            let search = Result {
                try connection.rows("SELECT v FROM t WHERE t MATCH 'same'").count
            }
            switch search {
            case .success(let count): #expect(count == 2000)
            case .failure(let error):
                #expect((error as? StoreError)?.code == .damaged, "\(error)")
                damagedCount += 1
            }
            #expect(try connection.scalar("SELECT v FROM good", as: Int.self) == 1)
            connection.close()
            try good.write(to: URL(filePath: path))
        }
        #expect(damagedCount > 0)
    }

    @Test func `the text that was searched for is not in the error`() throws {
        let connection = try Connection(.memory)
        for module in isEngine4 ? ["fts4", "fts5"] : ["fts4"] {
            try connection.execute(SQL(text: "CREATE VIRTUAL TABLE \(module)_t USING \(module)(v)"))
            for words in ["\"hunter2", "hunter2 AND", "NEAR/ hunter2 (", "(hunter2"] {
                do {
                    _ = try connection.rows(
                        "SELECT v FROM \(identifier: module + "_t") WHERE v MATCH \(words)")
                } catch {
                    #expect(!"\(error)".contains("hunter2"))
                }
            }
        }
    }

    @Test func `the row id of an added row is the table's`() throws {
        let connection = try Connection(.memory)
        try connection.execute("CREATE VIRTUAL TABLE f USING fts4(v)")
        for number in 1...3 as ClosedRange<Int64> {
            #expect(try connection.insert(into: "f", ["v": "word"]).insertedRowID == number)
        }
    }
}
