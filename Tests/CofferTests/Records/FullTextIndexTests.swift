import Foundation
import Testing
import Workload

@testable import Coffer

/// Full-text indexes that a record type declares, and conditions on words.
@Suite(.againstHanging, .onOwnThreads) struct FullTextIndexTests {
    private let fixture: RecordFixture

    struct Mail: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.number, isUnique: true)] }
        static var fullTextIndex: FullTextIndex<Self>? {
            FullTextIndex(\.title, \.body, prefixLengths: [2])
        }
        var id: Int?
        var number: Int
        var title: String
        var body: String?
        var isRead = false
    }

    init() throws {
        fixture = try RecordFixture()
    }

    private func insert(_ mails: [(Int, String, String?)]) throws {
        try fixture.store.write { tx throws in
            for (id, title, body) in mails {
                try tx.insert(Mail(id: id, number: id, title: title, body: body))
            }
        }
    }

    private func ids(
        _ pattern: FullTextPattern, in path: PartialKeyPath<Mail>? = nil
    ) throws -> [Int] {
        let query = Mail.where(.matching(pattern, in: path)).order(by: \.id)
        return try fixture.store.read { tx in try tx.fetch(query) }.compactMap(\.id)
    }

    @Test func `rows are found by words of their texts`() throws {
        try insert([
            (1, "Swift database", "encrypted store"), (2, "A store", nil),
            (3, "Café au lait", "swift, and FAST"), (4, "fast-moving", "database: none"),
        ])
        #expect(try ids("swift") == [1, 3])
        #expect(try ids("STORE") == [1, 2])
        #expect(try ids("swift store") == [1])
        #expect(try ids("cafe") == [3])
        #expect(try ids(.anyWord(of: "lait encrypted")) == [1, 3])
        #expect(try ids(.phrase("fast moving")) == [4] && ids(.phrase("moving fast")) == [])
        #expect(try ids(.prefixes(of: "da sw")) == [1] && ids(.prefixes(of: "fa")) == [3, 4])
        #expect(try ids("swift", in: \.title) == [1] && ids("swift", in: \.body) == [3])
        #expect(try ids(.expression("encrypted OR lait")) == [1, 3])
        try fixture.store.read { tx throws in
            let both = Mail.where(.matching("store") && \.title == "A store")
            #expect(try tx.fetch(both).map(\.id) == [2])
            #expect(try tx.count(Mail.where(!.matching("store"))) == 2)
        }
    }

    @Test func `what somebody types is never syntax`() throws {
        try insert([(1, "one OR two", "near not"), (2, "one", "x-y"), (3, "hello", "title: a*b")])
        #expect(try ids("one OR") == [1] && ids("\"one") == [1, 2] && ids("NOT near") == [1])
        #expect(try ids("x-y") == [2] && ids("-one") == [1, 2] && ids("title:a") == [3])
        #expect(try ids("hel*") == [] && ids("^one") == [1, 2] && ids("on\0e") == [])
        #expect(try ids(.prefixes(of: "hel*")) == [3] && ids(.prefixes(of: "hel-")) == [3])
        for empty in ["", "  ", "\"\"", "- * ^", "\0", "…", "()"] {
            #expect(try ids(.allWords(of: empty)) == [] && ids(.prefixes(of: empty)) == [])
            #expect(try ids(.anyWord(of: empty)) == [] && ids(.phrase(empty)) == [])
        }
        #expect(try ids("hello …") == [3] && ids("hello -") == [3])
        var random = SeededGenerator(for: #function)
        let signs = Array("ab \"'*^-():\0é%_;/\\ORNEAR")
        for _ in 0..<300 {
            let text = String(
                (0..<Int.random(in: 0...12, using: &random)).map { _ in
                    signs.randomElement(using: &random) ?? "a"
                })
            _ = try ids(.allWords(of: text)) + ids(.anyWord(of: text))
            _ = try ids(.phrase(text)) + ids(.prefixes(of: text))
        }
    }

    @Test func `a malformed expression of your own is an error`() throws {
        try insert([(1, "a", nil)])
        _ = expect(.sql) { try ids(.expression("\"a")) }
    }

    /// The words of a text, as the tokenizer `unicode61` finds ASCII ones.
    private func words(_ mail: Mail) -> Set<Substring> {
        Set("\(mail.title) \(mail.body ?? "")".lowercased().split { !$0.isLetter })
    }

    @Test func `the index follows every change of a row, also one that REPLACE deletes`() throws {
        var random = SeededGenerator(for: #function)
        let vocabulary = ["ant", "bee", "cat", "dog", "eel"]
        func text() -> String {
            (0..<2).map { _ in vocabulary.randomElement(using: &random) ?? "" }
                .joined(separator: " ")
        }
        try fixture.store.write { tx in try tx.create(Mail.self) }
        for step in 0..<250 {
            let (id, number) = (
                Int.random(in: 1...20, using: &random), Int.random(in: 1...20, using: &random)
            )
            let (title, body) = (text(), text())
            let kind = Int.random(in: 0...7, using: &random)
            try fixture.store.write { tx throws in
                switch kind {
                case 0, 1:
                    try tx.execute(
                        """
                        INSERT OR REPLACE INTO mail(id, number, title, body, isRead)
                        VALUES (\(id), \(number), \(title), \(body), 0)
                        """)
                case 2:
                    try tx.execute(
                        """
                        UPDATE OR REPLACE mail SET id = \(number), title = \(title)
                        WHERE id = \(id)
                        """)
                case 3:
                    try tx.execute(
                        """
                        INSERT OR IGNORE INTO mail(id, number, title, body, isRead)
                        VALUES (\(id), \(number), \(title), \(body), 0)
                        """)
                case 4: try tx.update(Mail.where(\.id == id).set(\.body, to: nil))
                case 5: try tx.delete(Mail.where(\.id == id))
                case 6:
                    try? tx.savepoint { part throws in
                        try part.delete(Mail.where(\.id > id))
                        throw CancellationError()
                    }
                default: try tx.upsert(Mail(id: id, number: step + 100, title: title, body: body))
                }
            }
            guard step % 10 == 9 else { continue }
            let mails = try fixture.store.read { tx in try tx.fetch(Mail.order(by: \.id)) }
            for word in vocabulary {
                let expected = mails.filter { words($0).contains(word[...]) }.compactMap(\.id)
                #expect(try ids(.allWords(of: word)) == expected, "step \(step)")
            }
        }
        // What REPLACE left under the row id of no row is not found, and goes with the next row.
        try fixture.store.write { tx throws in
            try tx.delete(Mail.all)
            try tx.insert(Mail(id: 5, number: 1, title: "new", body: nil))
        }
        #expect(try ids(.anyWord(of: "ant bee cat dog eel")) == [])
    }

    @Test func `the index follows a row whose id changes by another name, or a trigger of yours`()
        throws
    {
        try insert([(1, "one", nil), (2, "two", nil)])
        try fixture.execute("UPDATE mail SET rowid = 9 WHERE id = 1")
        try fixture.execute("UPDATE mail SET _rowid_ = 1 WHERE id = 2")
        #expect(try ids("one") == [9] && ids("two") == [1])
        try fixture.execute(
            """
            CREATE TRIGGER low AFTER INSERT ON mail BEGIN
                UPDATE mail SET title = 'normal' WHERE id = new.id;
                DELETE FROM mail WHERE id = new.id AND body = 'spam';
            END
            """)
        try insert([(3, "raw", nil), (4, "raw", "spam")])
        #expect(try ids("normal") == [3] && ids("raw") == [] && ids("spam") == [])
    }

    @Test func `an index that Coffer has not made is not dropped`() throws {
        for sql: SQL in [
            "CREATE VIRTUAL TABLE mail_text USING fts4(title, body)",
            "CREATE VIRTUAL TABLE mail_text USING fts4(\"title\")", "CREATE TABLE mail_text(a)",
            "CREATE VIEW mail_text AS SELECT 1 AS a",
        ] {
            try fixture.execute(sql)
            try fixture.store.write { tx throws in
                _ = expect(.mismatch) { try tx.dropFullTextIndex(of: Mail.self) }
                _ = expect(.mismatch) { try tx.create(Mail.self) }
                #expect(
                    try tx.rows("SELECT 1 FROM sqlite_master WHERE name = 'mail_text'").count == 1)
            }
            let kind = sql.text.contains("VIEW") ? "VIEW" : "TABLE"
            try fixture.execute("DROP \(SQL(text: kind)) mail_text")
        }
        try fixture.execute("CREATE TABLE other(a)")
        try fixture.execute(
            "CREATE TRIGGER mail_text_insert AFTER INSERT ON other BEGIN SELECT 'mail_text'; END")
        _ = expect(.mismatch) {
            try fixture.store.write { tx in try tx.dropFullTextIndex(of: Mail.self) }
        }
        try fixture.execute("DROP TRIGGER mail_text_insert")
        try fixture.execute("CREATE INDEX mail_text ON other(a)")
        _ = expect(.mismatch) { try fixture.store.write { tx in try tx.create(Mail.self) } }
    }

    @Test func `a temporary table of the name is not indexed`() throws {
        try fixture.store.write { tx in try tx.create(Note.self) }
        let path = fixture.folder.path("temporary.db")
        let connection = try Connection(
            path: path, key: .numbered(3), configuration: .testing())
        try connection.execute(
            "CREATE TABLE mail(id INTEGER PRIMARY KEY, number, title, body, isRead)")
        try connection.execute("CREATE TEMP TABLE mail AS SELECT * FROM main.mail")
        let index = try #require(try RecordPlan.of(Mail.self).declaration().fullText)
        _ = expect(.misuse) { try FullTextSchema(index, connection).create() }
        #expect(try connection.rows("SELECT 1 FROM sqlite_master WHERE name = 'mail_text'").isEmpty)
    }

    struct Porter: Record {
        static var fullTextIndex: FullTextIndex<Self>? {
            FullTextIndex(\.title, tokenizer: .englishStems)
        }
        var id: Int
        var title: String
    }

    @Test func `words are those of the tokenizer`() throws {
        try insert([
            (1, "pizza\u{1F914}", nil), (2, "\u{24B6} hello", nil), (3, "a\u{1F914}b", nil),
        ])
        #expect(try ids("pizza\u{1F914}") == [1] && ids("pizza") == [])
        #expect(try ids("hello \u{24B6}") == [2] && ids("\u{24B6}") == [])
        try fixture.store.write { tx throws in
            try tx.insert([Porter(id: 1, title: "__init__ foo_"), Porter(id: 2, title: "init")])
            for (word, found) in [("__init__", [1]), ("init", [2]), ("foo_", [1]), ("(init)", [2])]
            {
                let query = Porter.where(.matching(.allWords(of: word)))
                #expect(try tx.fetch(query).map(\.id) == found, "\(word)")
            }
        }
    }

    @Test func `a text of many words is found or refused, and a phrase may be long`() throws {
        let words = (0..<1000).map { "w\($0)" }
        let text = words.joined(separator: " ")
        try insert([(1, text, nil), (2, "w1", nil)])
        #expect(try ids(.allWords(of: text + " " + text)) == [1])
        #expect(try ids(.anyWord(of: text)) == [1, 2] && ids(.prefixes(of: text)) == [1])
        #expect(try ids(.phrase(text)) == [1])
        for pattern: FullTextPattern in [.allWords(of: text + " x"), .anyWord(of: text + " x")] {
            #expect(expect(.tooBig) { try ids(pattern) }?.hint != nil)
        }
    }

    @Test func `an insert returns the row id of the row, not of its words`() throws {
        let ids = try fixture.store.write { tx throws in
            let mails = (1...30).map { Mail(number: $0, title: "a b c \($0)", body: nil) }
            return try mails.map { try tx.insert($0) }
        }
        #expect(ids == (1...30).map { Int64($0) })
    }

    @Test func `create adds the index to a table with rows`() throws {
        struct Plain: Record {
            static var table: String { "mail" }
            static var indexes: [Index<Self>] { [Index(\.number, isUnique: true)] }
            var id: Int?
            var number: Int
            var title: String
            var body: String?
            var isRead = false
        }
        try fixture.store.write { tx throws in
            for id in 1...50 {
                try tx.insert(Plain(id: id, number: id, title: "mail \(id)", body: nil))
            }
        }
        let missing = expect(.mismatch) { try ids("mail") }
        #expect(missing?.table == "mail" && missing?.hint?.contains("create") == true)
        try fixture.store.write { tx throws in
            #expect(try tx.schemaDifferences(of: Mail.self).isEmpty)
            try tx.create(Mail.self)
            try tx.create(Mail.self)
        }
        #expect(try ids("mail").count == 50 && ids("17") == [17])
    }

    @Test func `another index of the name is a difference, until it is dropped`() throws {
        struct Later: Record {
            static var table: String { "mail" }
            static var indexes: [Index<Self>] { [Index(\.number, isUnique: true)] }
            static var fullTextIndex: FullTextIndex<Self>? {
                FullTextIndex(\.title, tokenizer: .englishStems)
            }
            var id: Int?
            var number: Int
            var title: String
            var body: String?
            var isRead = false
        }
        try insert([(1, "running", "body")])
        try fixture.store.write { tx throws in
            let differences = try tx.schemaDifferences(of: Later.self)
            #expect(differences.count == 1 && differences[0].expected.contains("title"))
            let error = expect(.mismatch) { try tx.create(Later.self) }
            #expect(error?.hint?.contains("dropFullTextIndex") == true)
            try tx.dropFullTextIndex(of: Later.self)
            try tx.create(Later.self)
            #expect(try tx.fetch(Later.where(.matching("run"))).map(\.id) == [1])
            #expect(try tx.count(Later.where(.matching("body"))) == 0)
            try tx.update(Later.where(\.id == 1).set(\.title, to: "walks"))
            #expect(try tx.fetch(Later.where(.matching("walking"))).map(\.id) == [1])
        }
        // A trigger that is missing lets the index go stale.
        try fixture.execute("DROP TRIGGER mail_text_update")
        try fixture.store.write { tx throws in
            #expect(try tx.schemaDifferences(of: Later.self).count == 1)
            _ = expect(.mismatch) { try tx.create(Later.self) }
            _ = expect(.mismatch) { try tx.count(Later.where(.matching("run"))) }
        }
        try fixture.execute("DROP TABLE mail_text")
        try fixture.execute("CREATE TABLE mail_text(a)")
        try fixture.store.write { tx throws in
            _ = expect(.mismatch) { try tx.dropFullTextIndex(of: Later.self) }
            _ = expect(.mismatch) { try tx.count(Later.where(!.matching("run"))) }
            #expect(try tx.rows("SELECT * FROM mail_text").isEmpty)
        }
    }

    @Test func `an index whose table was made again finds nothing until it is made again`() throws {
        struct Bare: Record {
            static var table: String { "mail" }
            var id: Int?
            var number: Int
            var title: String
            var body: String?
            var isRead = false
        }
        try insert([(1, "old", nil)])
        #expect(try ids("old") == [1])
        try fixture.execute("ALTER TABLE mail RENAME TO former")
        #expect(try ids("old") == [])
        try fixture.execute("DROP TABLE former")
        try fixture.store.write { tx in
            try tx.insert(Bare(id: 1, number: 1, title: "new", body: nil))
        }
        let stale = expect(.mismatch) { try ids("old") }
        #expect(stale?.hint?.contains("dropFullTextIndex") == true)
        try fixture.store.write { tx throws in
            // A type that declares no index has one of the usual name to drop.
            try tx.dropFullTextIndex(of: Bare.self)
            try tx.dropFullTextIndex(of: Bare.self, named: "nothing")
            try tx.create(Mail.self)
        }
        #expect(try ids("old") == [] && ids("new") == [1])
    }

    @Test func `an index is filled again when its table is altered`() throws {
        struct Bare: Record {
            static var table: String { "mail" }
            static var indexes: [Index<Self>] { [Index(\.number, isUnique: true)] }
            var id: Int?
            var number: Int
            var title: String
            var body: String?
            var isRead = false
        }
        try insert([(1, "old", "x"), (7, "older", nil)])
        try fixture.store.migrate([
            Migration("new titles") { tx in
                try tx.alter(Bare.self) { table in
                    table.set(\.title, sql: "replace(title, 'old', 'new')")
                }
            }
        ])
        #expect(try ids("old") == [] && ids("new") == [1] && ids("newer") == [7] && ids("x") == [1])
        try insert([(8, "late", nil)])
        #expect(try ids("late") == [8])
    }

    struct UUIDKey: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title) }
        var id: UUID
        var title: String
    }

    struct NotText: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.tags) }
        var id: Int
        var tags: [String]
    }

    struct NoProperty: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex() }
        var id: Int
        var title: String
    }

    struct Twice: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.title) }
        var id: Int
        var title: String
    }

    struct Taken: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, name: "TITLE") }
        var id: Int
        var title: String
    }

    private func refuse<R: Record>(_ type: R.Type) {
        let error = expect(.misuse) { try fixture.store.write { tx in try tx.create(type) } }
        #expect(error?.hint != nil)
        _ = expect(.misuse) {
            try fixture.store.read { tx in try tx.count(R.where(.matching("a"))) }
        }
    }

    @Test func `an index that there cannot be is refused`() throws {
        refuse(UUIDKey.self)
        refuse(NotText.self)
        refuse(NoProperty.self)
        refuse(Twice.self)
        refuse(Taken.self)
        let none = expect(.misuse) {
            try fixture.store.read { tx in try tx.count(Note.where(.matching("a"))) }
        }
        #expect(none?.hint?.contains("fullTextIndex") == true)
        _ = expect(.misuse) { try ids("a", in: \.isRead) }
    }

    @Test func `a type without a table has no matches`() throws {
        #expect(try ids("a") == [])
    }

    @Test func `a condition on words is observed`() async throws {
        try insert([(1, "one", nil)])
        let values = fixture.store.observe { tx in try tx.count(Mail.where(.matching("two"))) }
        let loop = values.makeAsyncIterator()
        #expect(try await loop.next() == 0)
        try await fixture.store.write { tx in
            try tx.update(Mail.where(\.id == 1).set(\.title, to: "two"))
        }
        #expect(try await loop.next() == 1)
    }
}
