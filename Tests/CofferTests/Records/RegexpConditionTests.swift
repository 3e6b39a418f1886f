import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Conditions by a regular expression, and the operator REGEXP.
@Suite(.againstHanging, .onOwnThreads) struct RegexpConditionTests: NotesSuite {
    let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        (fixture, notes) = try Self.makeFixture()
    }

    struct Word: Record, Equatable {
        var id: Int
        var text: String
        var other: String?
    }

    private func words(_ condition: Condition<Word>) throws -> [Int] {
        try read { tx in try tx.fetch(Word.where(condition).order(by: \.id)) }.map(\.id)
    }

    @Test func `a condition is true where the pattern matches somewhere in the text`() throws {
        func expected(_ isFound: (Note) -> Bool) -> [Int] { notes.filter(isFound).map(\.id) }
        #expect(try ids(.regexp(\.title, "^n[1-3]$")) == [1, 2, 3])
        #expect(try ids(.regexp(\.title, "0")) == [10, 20, 30, 40])
        #expect(try ids(.regexp(\.title, "^N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.regexp(\.title, "(?i)^N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.regexp(\.title, "^N4")) == [])
        #expect(try ids(.regexp(\.title, "")) == notes.map(\.id))
        let isSecond: (Note) -> Bool = { ["n1", "n2"].contains($0.note) }
        #expect(try ids(.regexp(\.note, "^n(1|2)$")) == expected(isSecond))
        #expect(try ids(!.regexp(\.note, "^n(1|2)$")) == expected { !isSecond($0) })
        #expect(try ids(.regexp(\.note, "")) == expected { $0.note != nil })
        #expect(
            try ids(.regexp(\.note, "1") || .regexp(\.title, "1$") && \.pinned == false)
                == expected {
                    $0.note?.contains("1") == true || $0.title.hasSuffix("1") && !$0.pinned
                })
    }

    @Test func `every verb that takes a condition takes a regular expression`() throws {
        let condition = Condition<Note>.regexp(\.title, "^n[12]$")
        try fixture.store.write { tx throws in
            #expect(try tx.count(Note.where(condition)) == 2)
            #expect(try tx.exists(Note.where(condition)))
            #expect(try tx.first(Note.where(condition), \.title) != nil)
            #expect(try tx.max(\.id, Note.where(condition)) == 2)
            let groups = try tx.fetch(Note.where(condition).group(by: \.pinned), .count)
            #expect(groups.map(\.1) == [1, 1])
            var note = notes[0]
            note.rank = 99
            try tx.update(note, expecting: condition)
            note.id = 3
            expect(.conflict) { try tx.update(note, expecting: condition) }
            #expect(try tx.update(Note.where(condition).set(\.pinned, to: true)) == 2)
            #expect(try tx.delete(Note.where(condition)) == 2)
            #expect(try tx.count(Note.all) == 38)
        }
    }

    @Test func `a nested query and a join take a regular expression`() throws {
        struct Author: Record {
            var id: Int
            var name: String
        }
        struct Article: Record {
            static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
            var id: Int
            var author: Int
        }
        try fixture.store.write { tx throws in
            try tx.insert([Author(id: 1, name: "Ada"), Author(id: 2, name: "Bo")])
            try tx.insert([Article(id: 1, author: 1), Article(id: 2, author: 2)])
            let named = Author.where(.regexp(\.name, "^A"))
            #expect(try tx.fetch(Article.where(named.contains(\.author))).map(\.id) == [1])
            let join = try tx.fetch(Article.all.joining(\.author, to: named))
            #expect(join.map(\.0.id) == [1])
            let writing = Author.where(
                .exists(Article.where(\.id > 1), by: \.author) && .regexp(\.name, "o$"))
            #expect(try tx.fetch(writing).map(\.id) == [2])
        }
    }

    @Test func `a bad pattern is refused before the statement is sent`() throws {
        let seen = Mutex<[String]>([])
        try fixture.store.prepareConnections { connection throws in
            try connection.trace { event in seen.withLock { $0.append(event.sql) } }
        }
        let error = expect(.misuse) { try ids(.regexp(\.title, "n(1")) }
        #expect(error?.message == "the ( has no ), at character 2 of the regular expression")
        #expect(error?.table == "note")
        #expect(error?.column == "title")
        expect(.misuse) { try ids(.regexp(\.note, "(?=n)", isCaseSensitive: false)) }
        expect(.tooBig) { try ids(!.regexp(\.title, "(a{1000}){1000}")) }
        #expect(seen.withLock { $0.filter { $0.contains("coffer_regexp") } } == [])
    }

    @Test func `a pattern is compiled once for all rows of a statement`() throws {
        let words = (0..<500).map { Word(id: $0, text: "w\($0)") }
        try fixture.store.write { tx throws in
            try tx.insert(words)
            let handle = try tx.connection().current()
            #expect(try tx.count(Word.where(.regexp(\.text, "7$"))) == 50)
            #expect(handle.attachment { RegexpState() }.compiledCount == 1)
            #expect(
                try tx.count(Word.where(.regexp(\.text, "7$") || .regexp(\.text, "^w8"))) == 60)
            #expect(handle.attachment { RegexpState() }.compiledCount == 3)
        }
    }

    @Test func `values of another program match by the rule of each storage class`() throws {
        try fixture.execute("CREATE TABLE word(id INTEGER PRIMARY KEY, text, other TEXT)")
        for value in [
            "'a1'", "x'6131'", "CAST(x'6131ff' AS TEXT)", "CAST(x'61ff31' AS TEXT)", "31", "1.5",
            "NULL", "CAST(x'610031' AS TEXT)", "x''", "''",
        ] {
            try fixture.execute(SQL(text: "INSERT INTO word(text) VALUES (\(value))"))
        }
        func count(_ condition: Condition<Word>) throws -> [Int] {
            try read { tx in try tx.fetch(Word.where(condition).order(by: \.id), \.id) }
        }
        #expect(try count(.regexp(\.text, "^a")) == [1, 3, 4, 8])
        #expect(try count(.regexp(\.text, "1$")) == [1, 4, 5, 8])
        #expect(try count(.regexp(\.text, "^a.1$")) == [8])
        #expect(try count(.regexp(\.text, "^1\\.5$")) == [6])
        #expect(try count(.regexp(\.text, "")) == [1, 3, 4, 5, 6, 8, 10])
        #expect(try count(!.regexp(\.text, "")) == [2, 7, 9])
    }

    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func `texts of a UTF-16 file match as the same scalars`(encoding: String) throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try connection.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
        try connection.execute("CREATE TABLE other(a)")
        connection.close()
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
        try store.write { tx throws in
            try tx.insert([
                Word(id: 1, text: "жук🎈"), Word(id: 2, text: "a\u{0}b"), Word(id: 3, text: ""),
            ])
            func found(_ pattern: String) throws -> [Int] {
                try tx.fetch(Word.where(.regexp(\.text, pattern)).order(by: \.id)).map(\.id)
            }
            #expect(try found("^[а-я]{3}.$") == [1])
            #expect(try found("^a.b$") == [2])
            #expect(try found("^$") == [3])
        }
    }

    @Test func `the condition calls Coffer's function, not one of the program`() throws {
        try fixture.store.prepareConnections { connection in
            try connection.register(function: "regexp", argumentCount: 2) { _ in 0 }
        }
        #expect(try ids(.regexp(\.title, "^n4$")) == [4])
        try fixture.store.prepareConnections { connection in
            expect(.misuse) {
                try connection.register(function: "COFFER_regexp", argumentCount: 2) { _ in 0 }
            }
        }
    }

    @Test func `an observed query may have a regular expression`() async throws {
        let store = fixture.store
        let values = store.observe { tx in try tx.count(Note.where(.regexp(\.title, "^n4"))) }
        var seen: [Int] = []
        for try await value in values {
            seen.append(value)
            if seen.count == 2 { break }
            try await store.write { tx in try tx.insert(Note.numbered(41)) }
        }
        #expect(seen == [2, 3])
    }

    // MARK: The operator

    private func connection() throws -> Connection {
        let connection = try Connection(
            path: fixture.folder.path("operator.db"), key: .numbered(7), configuration: .testing())
        try connection.registerRegexp()
        return connection
    }

    @Test func `REGEXP has the same syntax, and a pattern may be a column`() throws {
        let connection = try connection()
        let row = try connection.firstRow(
            """
            SELECT 'abc' REGEXP 'b', 'abc' REGEXP '^b', NULL REGEXP 'b', 'b' REGEXP NULL,
                'é' REGEXP '^.$', x'62' REGEXP 'b', 12 REGEXP '^12$', 'Ab' REGEXP '(?i)^aB'
            """)
        #expect(row?.values == [1, 0, .null, .null, 1, 0, 1, 1])
        try connection.execute("CREATE TABLE t(pattern, text)")
        try connection.execute(
            "INSERT INTO t VALUES ('^a', 'abc'), ('^b', 'abc'), ('c$', 'abc'), (NULL, 'abc')")
        let rows = try connection.rows("SELECT text REGEXP pattern FROM t ORDER BY rowid")
        #expect(rows.map { $0[0] } == [1, 0, 1, .null])
        let error = expect(.misuse) { try connection.rows("SELECT 'abc' REGEXP 'a)'") }
        #expect(error?.message == "the ) closes no group, at character 2 of the regular expression")
        expect(.tooBig) { try connection.rows("SELECT 'abc' REGEXP '(a{1000}){1000}'") }
        expect(.mismatch) { try connection.rows("SELECT 'abc' REGEXP x'61'") }
        expect(.mismatch) { try connection.rows("SELECT 'abc' REGEXP 5") }
        expect(.mismatch) { try connection.rows("SELECT 'abc' REGEXP CAST(x'ff' AS TEXT)") }
        #expect(try connection.firstRow("SELECT 'abc' REGEXP 'c'")?[0] == 1)
        try connection.removeFunction("regexp", argumentCount: 2)
        expect(.sql) { try connection.rows("SELECT 'abc' REGEXP 'b'") }
    }

    // MARK: Interruption

    private static let long = String(repeating: "a", count: 200_000)

    @Test func `an interrupt ends a match within a row`() throws {
        let connection = try connection()
        let handle = connection.interruptHandle
        // The engine itself looks for an interrupt only after the row.
        try connection.register(function: "interrupted", argumentCount: 1) { arguments in
            handle.interrupt()
            return .text(try arguments.get(0))
        }
        let cursor = try connection.cursor("SELECT interrupted(\(Self.long)) REGEXP 'b'")
        expect(.cancelled) { try cursor.next() }
        let short = try connection.cursor("SELECT interrupted('a') REGEXP 'b'")
        #expect(try short.next()?[0] == 0)
        try short.close()
        #expect(try connection.firstRow("SELECT \(Self.long) REGEXP 'b'")?[0] == 0)
    }

    @Test func `a body that must stop ends a match within a row, also if an interrupt is lost`()
        throws
    {
        let connection = try connection()
        // The statement begins after the interrupt, which so does nothing.
        connection.interruptHandle.stop()
        let cursor = try connection.cursor("SELECT \(Self.long) REGEXP 'b'")
        expect(.cancelled) { try cursor.next() }
        connection.interruptHandle.endStop()
        #expect(try connection.firstRow("SELECT \(Self.long) REGEXP 'b'")?[0] == 0)
    }

    @Test func `an interruption ends a condition over one huge text`() throws {
        try fixture.store.write { tx in try tx.insert(Word(id: 1, text: Self.long)) }
        let interruption = Interruption()
        try fixture.store.prepareConnections { connection in
            try connection.registerRegexp()
            try connection.register(function: "interrupted", argumentCount: 1) { arguments in
                interruption.interrupt()
                return try arguments.get(0, as: Value.self)
            }
        }
        expect(.cancelled) {
            try fixture.store.read(interruptedBy: interruption) { tx throws in
                try tx.rows("SELECT interrupted(text) REGEXP 'b' FROM word")
            }
        }
        #expect(try words(.regexp(\.text, "b")) == [])
        #expect(try words(.regexp(\.text, "^a*$")) == [1])
    }
}
