import Foundation
import Testing

@testable import Coffer

/// Nothing unauthenticated leaves the engine by the verbs that `DamageTests` does not cover.
@Suite(.againstHanging, .onOwnThreads) struct TruthTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private struct Letter: Record, Equatable {
        var id: Int
        var flag: Int
        var text: String

        static func numbered(_ id: Int) -> Letter {
            Letter(id: id, flag: 7, text: String(repeating: "text \(id) ", count: 1200))
        }
    }

    /// The same rows, read as stored properties.
    private struct FastLetter: Record {
        static var table: String { "letter" }
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var flag: Int
        var text: String
    }

    private let letters = Bucket<String, String>("letters")
    private let others = Bucket<String, String>("others")

    /// The number of the file's last page.
    private func lastPage(_ store: Store) throws -> Int {
        try store.read { tx in
            try tx.rows("PRAGMA page_count").first?.get(0, as: Int.self) ?? 0
        }
    }

    /// Makes a file by `fill`, and damages the last page: the end of the value written last.
    private func makeWithDamagedEnd(_ fill: (inout WriteTransaction) throws -> Void) throws -> Int {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        try store.write { tx in try fill(&tx) }
        let (page, size) = (try lastPage(store), store.profile.pageByteCount)
        try store.close()
        try Damage.flip(path, at: (page - 1) * size + 10)
        return page
    }

    private func open(_ mode: Configuration.JournalMode) throws -> Store {
        try Store(path: path, key: .numbered(1), configuration: .testing(mode))
    }

    @Test(arguments: journalModes)
    func `no record over a damaged page leaves a read`(mode: Configuration.JournalMode) throws {
        _ = try makeWithDamagedEnd { tx in
            for id in 1...2 { try tx.insert(Letter.numbered(id)) }
        }
        let store = try open(mode)
        expect(.damaged) { try store.read { tx in try tx.fetch(Letter.all) } }
        expect(.damaged) { try store.read { tx in try tx.find(Letter.self, 2) } }
        expect(.damaged) { try store.read { tx in try tx.fetch(FastLetter.all) } }
        expect(.damaged) { try store.read { tx in try tx.fetch(FastLetter.limit(2)) } }
        expect(.damaged) { try store.read { tx in try tx.find(FastLetter.self, 2) } }
        expect(.damaged) { try store.read { tx in try tx.find(Letter.self, keys: 1...9) } }
        expect(.damaged) { try store.read { tx in try tx.find(FastLetter.self, keys: 1...9) } }
        struct Text: Decodable { let text: String }
        expect(.damaged) { try store.read { tx in try tx.fetch(Letter.all, as: Text.self) } }
        expect(.damaged) { try store.read { tx in try tx.fetch(Letter.all, as: FastLetter.self) } }
        expect(.damaged) {
            try store.read { tx in try tx.first(Letter.where(\.text == "none")) }
        }
        expect(.damaged) {
            try store.read { tx in try tx.count(Letter.where(\.text == "none")) }
        }
        expect(.damaged) {
            try store.write { tx in
                try tx.insert(Letter.numbered(3))
                _ = try? tx.find(Letter.self, 2)
            }
        }
        #expect(try store.read { tx in try tx.find(Letter.self, 1) } == Letter.numbered(1))
        #expect(try store.read { tx in try tx.find(Letter.self, 3) } == nil)
    }

    @Test(arguments: journalModes)
    func `no entry of a bucket over a damaged page leaves a read`(
        mode: Configuration.JournalMode
    ) throws {
        let value = String(repeating: "value ", count: 2000)
        _ = try makeWithDamagedEnd { tx in
            try tx.set(value, for: "a", in: others)
            for key in ["a", "b"] { try tx.set(value, for: key, in: letters) }
        }
        let store = try open(mode)
        expect(.damaged) { try store.read { tx in try tx.get("b", in: letters) } }
        expect(.damaged) { try store.read { tx in try tx.entries(in: letters).count } }
        expect(.damaged) {
            try store.write { tx in
                try tx.set("beside", for: "c", in: letters)
                _ = try? tx.get("b", in: letters)
            }
        }
        // The value is in another bucket: to find a key, the engine may read the long entry next to
        // it.
        #expect(try store.read { tx in try tx.get("a", in: others) } == value)
    }

    @Test(arguments: journalModes)
    func `a body that catches the damage returns nothing`(
        mode: Configuration.JournalMode
    ) throws {
        _ = try makeWithDamagedEnd { tx in
            for id in 1...2 { try tx.insert(Letter.numbered(id)) }
        }
        let store = try open(mode)
        expect(.damaged) {
            try store.read { tx in
                (try? tx.firstRow("SELECT text FROM letter WHERE id = 2")) == nil ? 1 : 2
            }
        }
        let connection = try { () throws in
            try store.close()
            return try Connection(
                path: path, key: .numbered(1), configuration: .testing(mode))
        }()
        expect(.damaged) {
            try connection.transaction {
                _ = try? connection.firstRow("SELECT text FROM letter WHERE id = 2")
                return 1
            }
        }
        #expect(try connection.rows("SELECT id FROM letter WHERE id = 1").count == 1)
    }

    private static let scans: [SQL] = [
        "SELECT n FROM t", "SELECT n FROM t ORDER BY v", "SELECT n FROM t WHERE n > 0 ORDER BY n",
        "SELECT count(*) FROM t", "SELECT sum(n), group_concat(n) FROM t",
        "SELECT count(DISTINCT n) FROM t", "SELECT a.n FROM t a JOIN t b ON a.n = b.n",
        "SELECT n FROM t WHERE v LIKE '%1%' UNION SELECT n FROM t", "SELECT max(v), min(n) FROM t",
    ]

    @Test(arguments: journalModes)
    func `with any page damaged every scan is whole or damage`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT, n INT)")
        try connection.execute("CREATE INDEX by_n ON t(n)")
        try connection.transaction {
            for id in 1...900 {
                let text = String(repeating: "\(id) ", count: id % 100 == 0 ? 2500 : 8)
                try connection.execute("INSERT INTO t VALUES (\(id), \(text), \(id))")
            }
        }
        let whole = try Self.scans.map { try connection.rows($0).map(\.values) }
        let size = try #require(connection.profile).pageByteCount
        connection.close()
        var damageCount = 0
        var rightCursorCount = 0
        let pageCount = try Damage.byteCount(path) / size
        try #require(pageCount > 20)
        for page in 2...pageCount {
            let copy = try folder.copy(path, as: "page\(page).db")
            try Damage.flip(copy, at: (page - 1) * size + size / 2)
            let damaged = try Connection(
                path: copy, key: .numbered(1), configuration: .testing(mode))
            for (index, scan) in Self.scans.enumerated() {
                do {
                    let rows = try damaged.rows(scan).map(\.values)
                    #expect(rows == whole[index], "page \(page), \(scan.text)")
                } catch let error as StoreError {
                    #expect(error.code == .damaged, "\(error)")
                    #expect(error.pages == [page])
                    damageCount += 1
                }
            }
            // A cursor ends with damage on the pages where reading all rows does.
            let hasRows = (try? damaged.rows(Self.cursor)) != nil
            #expect(try (Self.stepCount(damaged) != nil) == hasRows, "page \(page)")
            if hasRows { rightCursorCount += 1 }
        }
        #expect(damageCount > pageCount)
        // The cursor reads the table's pages but not the index's, of which there are fewer.
        #expect((1..<(pageCount / 2)).contains(rightCursorCount), "\(rightCursorCount)")
    }

    private static let cursor: SQL = "SELECT v, n FROM t"

    /// The number of rows that a cursor gives before its end; `nil` if it ends with damage.
    private static func stepCount(_ connection: Connection) throws -> Int? {
        let cursor = try connection.prepare(Self.cursor.text)
        var count = 0
        do {
            while try cursor.step() {
                count += 1
                #expect(try cursor.value(at: 1) == .integer(Int64(count)), "a wrong row")
                let text = String(repeating: "\(count) ", count: count % 100 == 0 ? 2500 : 8)
                #expect(try cursor.value(at: 0) == .text(text), "a wrong text")
            }
        } catch let error as StoreError {
            #expect(error.code == .damaged, "\(error)")
            return nil
        }
        #expect(count == 900, "the end came early")
        return count
    }

    @Test func `a damaged frame of the WAL is damage to a reader`() throws {
        let store = try open(.wal)
        try store.write { tx in
            try tx.execute("CREATE TABLE good(v)")
            try tx.execute("INSERT INTO good VALUES (1)")
            try tx.execute("CREATE TABLE t(flag INT, data BLOB)")
        }
        let data = Data(repeating: 9, count: 40_000)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (7, \(data))") }
        // The writer's last frames are the pages of the value, in the order of their numbers.
        let walByteCount = try Damage.byteCount(path + "-wal")
        try Damage.overwriteFromOutside(path + "-wal", at: walByteCount - 1000)
        expect(.damaged) { try store.read { tx in try tx.rows("SELECT data FROM t").count } }
        expect(.damaged) {
            try store.read { tx in
                try tx.rows("SELECT substr(data, 39000) FROM t").count
            }
        }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }
}
