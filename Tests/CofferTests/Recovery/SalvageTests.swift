import Foundation
import Testing
import Workload

@testable import Coffer

/// What `Store.salvage` saves of a store, page by page.
@Suite(.againstHanging, .onOwnThreads) struct SalvageTests {
    private let folder: TemporaryFolder
    private let path: String
    private let profile: CipherProfile

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        // Small pages, so that the trees are deep.
        profile = try Engine.capabilities.defaultProfile.with(pageByteCount: 1024)
    }

    // MARK: A store with a page of each kind

    /// - Returns: Pages of the file.
    @discardableResult
    private func make(_ mode: Configuration.JournalMode = .delete) throws -> Int {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        let statements = [
            "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT UNIQUE, rank REAL)",
            "\(Self.numbers) INSERT INTO note SELECT i, 'title ' || i, i * 0.5 FROM n",
            "ALTER TABLE note ADD COLUMN state TEXT NOT NULL DEFAULT 'draft'",
            "UPDATE note SET state = 'done' WHERE id % 3 = 0",
            "CREATE TABLE bare(v)",
            "\(Self.numbers) INSERT INTO bare(rowid, v) SELECT i * 7, randomblob(60) FROM n",
            "CREATE TABLE pair(k INTEGER, v TEXT, w BLOB, PRIMARY KEY (v, k)) WITHOUT ROWID",
            "\(Self.numbers) INSERT INTO pair SELECT i, 'v' || (i % 7), randomblob(40) FROM n",
            "CREATE TABLE file(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, body BLOB)",
            "INSERT INTO file(name, body) VALUES ('a', randomblob(9000)), ('b', randomblob(9000))",
            "CREATE TABLE gone(v)",
            "\(Self.numbers) INSERT INTO gone SELECT randomblob(60) FROM n",
            "CREATE INDEX note_rank ON note(rank)",
            "CREATE VIEW ranked AS SELECT title FROM note ORDER BY rank",
            "CREATE TRIGGER note_gone AFTER DELETE ON note BEGIN DELETE FROM bare WHERE 0; END",
            "DROP TABLE gone",
            "PRAGMA user_version = 7",
        ]
        for text in statements { try connection.execute(SQL(text: text)) }
        let count = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        return count
    }

    private static let numbers =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)"

    private static let tables = [
        "note": "SELECT id, id, title, rank, state FROM note",
        "bare": "SELECT rowid, v FROM bare",
        "pair": "SELECT k, v, k, w FROM pair",
        "file": "SELECT id, id, name, body FROM file",
    ]

    /// The rows of each table, by their first column.
    private func rows(_ path: String) throws -> [String: [Int64: [Value]]] {
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        return try Self.tables.mapValues { sql in
            let rows = try connection.rows(SQL(text: sql))
            let pairs = try rows.map { row -> (Int64, [Value]) in
                guard case .integer(let id) = row[0] else {
                    throw StoreError(.damaged, "a row without an id")
                }
                return (id, row.values.dropFirst().map { $0 })
            }
            return Dictionary(uniqueKeysWithValues: pairs)
        }
    }

    private func lostRows(_ path: String, _ report: SalvageReport) throws -> [[Value]] {
        guard let name = report.lostTableName else { return [] }
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        return try connection.rows("SELECT * FROM \(identifier: name)").map(\.values)
    }

    private func salvage(
        damaging pages: [Int], _ name: String = "\(UUID()).db"
    ) throws -> (report: SalvageReport, copy: String) {
        let damaged = try folder.copy(path, as: "damaged-\(name)")
        for page in pages {
            try Damage.flip(damaged, at: page * profile.pageByteCount - 300)
        }
        let before = try Data(contentsOf: URL(filePath: damaged))
        let copy = folder.path("copy-\(name)")
        let report = try Store.salvage(
            damagedAt: damaged, key: .numbered(1), to: copy, configuration: .testing())
        #expect(try Data(contentsOf: URL(filePath: damaged)) == before)
        return (report, copy)
    }

    /// Expects that each saved row is as it was, and that the report accounts for each other row.
    private func expectHonest(
        _ report: SalvageReport, _ copy: String, _ original: [String: [Int64: [Value]]],
        _ comment: String
    ) throws {
        let known = Set(report.tables.map(\.name))
        guard known == Set(Self.tables.keys) else {
            #expect(!report.isComplete && !report.problems.isEmpty, "\(comment)")
            return
        }
        let saved = try rows(copy)
        var missing = 0
        for table in report.tables {
            let (old, new) = (original[table.name] ?? [:], saved[table.name] ?? [:])
            #expect(new.count == table.rowCount, "\(comment)")
            for (id, row) in new { #expect(old[id] == row, "\(comment): \(table.name) \(id)") }
            let absent = old.keys.filter { new[$0] == nil }
            missing += absent.count
            #expect(absent.isEmpty || !table.isWhole || report.lostRowCount > 0, "\(comment)")
            guard table.name != "pair" else { continue }
            let unexplained = absent.filter { id in
                !table.gaps.contains { ($0.firstRowID ?? id) <= id && id <= ($0.lastRowID ?? id) }
            }
            #expect(
                unexplained.count <= table.cutRowCount + report.lostRowCount,
                "\(comment): \(table.name) \(unexplained)")
        }
        let isSequenceLost = report.problems.contains { $0.contains("AUTOINCREMENT") }
        // Such a page may have been one of rows.
        let isPageUnknown = report.damagedPages.contains { $0.content == .unknown }
        let isComplete = missing == 0 && !isSequenceLost
        #expect(
            report.isComplete == isComplete || (isPageUnknown && !report.isComplete),
            "\(comment): \(missing) \(report)")
    }

    // MARK: One page

    @Test func `a store without damage is saved whole`() throws {
        try make()
        let (report, copy) = try salvage(damaging: [])
        #expect(report.isComplete && report.damagedPages.isEmpty && report.lostTableName == nil)
        #expect(try Dump.store(copy, key: 1) == Dump.store(path, key: 1))
    }

    @Test func `of any damaged page, all rows of all other pages are saved and none is changed`()
        throws
    {
        let pageCount = try make()
        let original = try rows(path)
        var kinds: Set<String> = []
        for page in 1...pageCount {
            let (report, copy) = try salvage(damaging: [page])
            #expect(report.damagedPages.map(\.number) == [page])
            kinds.formUnion(report.damagedPages.map(\.content.description))
            try expectHonest(report, copy, original, "page \(page): \(report.damagedPages)")
            try FileManager.default.removeItem(atPath: copy)
        }
        #expect(
            kinds.isSuperset(of: [
                "the schema", "free", "a leaf of table note", "a leaf of table bare",
                "overflow of table file", "a leaf of index note_rank of table note",
                "a leaf of table pair", "a page of table note",
            ]), "\(kinds)")
    }

    @Test func `below a damaged interior page of a table, every row is saved into its table`()
        throws
    {
        try make()
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        let root = try connection.current().firstInteger(
            "SELECT rootpage FROM sqlite_master WHERE name = 'bare'")
        connection.close()
        let (report, copy) = try salvage(damaging: [root])
        #expect(report.isComplete && report.lostTableName == nil, "\(report)")
        #expect(try rows(copy) == rows(path))
    }

    @Test func `rows below two damaged interior pages are kept apart, since nobody knows whose`()
        throws
    {
        try make()
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        let roots = try ["bare", "note"].map { name in
            try connection.current().firstInteger(
                "SELECT rootpage FROM sqlite_master WHERE name = '\(name)'")
        }
        connection.close()
        let (report, copy) = try salvage(damaging: roots)
        #expect(!report.isComplete && report.lostRowCount == 800, "\(report)")
        let lost = try lostRows(copy, report)
        #expect(lost.allSatisfy { $0[0] == .text("of an unknown table") && $0[1] == .null })
        try expectHonest(report, copy, try rows(path), "roots")
    }

    @Test func `without page 1 every row is in the table for lost rows`() throws {
        try make()
        let (report, copy) = try salvage(damaging: [1])
        #expect(!report.isComplete && report.tables.isEmpty)
        let lost = try lostRows(copy, report)
        let original = try rows(path)
        // The values of a row follow six columns that say where it comes from.
        let found = Set(lost.map { Array($0.dropFirst(6).prefix { $0 != .null }) })
        for row in (original["bare"] ?? [:]).values {
            #expect(found.contains([row[0]]))
        }
        #expect(report.problems.contains { $0.contains("page 1 is lost") })
        #expect(report.problems.contains { $0.contains("definitions of tables are lost") })
    }

    @Test func `what random damage leaves is saved, and what it takes is told`() throws {
        let pageCount = try make()
        let original = try rows(path)
        var random = SeededGenerator(for: #function)
        for round in 0..<(isLongRun ? 1_000 : 25) {
            let count = Int.random(in: 1...20, using: &random)
            let pages = Set((0..<count).map { _ in Int.random(in: 2...pageCount, using: &random) })
            let (report, copy) = try salvage(damaging: pages.sorted())
            #expect(report.damagedPages.map(\.number) == pages.sorted())
            try expectHonest(report, copy, original, "round \(round): \(pages.sorted())")
            try FileManager.default.removeItem(atPath: copy)
        }
    }

    // MARK: Kinds of damage

    @Test(arguments: ["cut", "zeros", "unaligned"])
    func `of a file without its end, the rest is saved`(kind: String) throws {
        let pageCount = try make()
        let original = try rows(path)
        let kept = pageCount / 2
        let damaged = try folder.copy(path, as: "damaged.db")
        let size = profile.pageByteCount
        switch kind {
        case "cut": try Damage.truncate(damaged, to: kept * size)
        case "unaligned": try Damage.truncate(damaged, to: kept * size + 100)
        default: try Damage.zero(damaged, at: kept * size, count: (pageCount - kept) * size)
        }
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: damaged, key: .numbered(1), to: copy, configuration: .testing())
        #expect(report.pageCount == pageCount)
        #expect(report.damagedPages.map(\.number) == Array(kept + 1...pageCount))
        #expect(!report.isComplete)
        try expectHonest(report, copy, original, kind)
        #expect(try rows(copy).values.contains { !$0.isEmpty })
    }

    @Test func `without the salt, a raw key with its salt still opens the pages`() throws {
        let raw = StoreKey.raw([UInt8](repeating: 1, count: 48))
        let connection = try Connection(
            path: path, key: raw, configuration: .testing(.delete, profile: profile))
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (randomblob(5000))")
        connection.close()
        try Damage.zero(path, at: 1, count: 15)
        expect(.wrongKey) {
            try Store.salvage(
                damagedAt: path, key: .passphrase("wrong"), to: folder.path("none.db"),
                configuration: .testing())
        }
        let report = try Store.salvage(
            damagedAt: path, key: raw, to: folder.path("copy.db"), configuration: .testing())
        #expect(report.tables.map(\.rowCount) == [1] && report.isComplete)
    }

    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func `texts of every encoding stay as they are`(encoding: String) throws {
        do {
            let pragma = "PRAGMA encoding = '\(encoding)'"
            let raw = try RawConnection(path, key: 1, pragmas: [pragma])
            try #require(raw.run("CREATE TABLE \"größe 𝄞\"(v TEXT)") == 0)
            // Half of a surrogate pair: valid in no encoding.
            raw.run("INSERT INTO \"größe 𝄞\" VALUES ('späße 🙂'), (CAST(x'00d8' AS TEXT)), ('')")
        }
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        #expect(report.isComplete, "\(report)")
        #expect(try Dump.store(copy, key: 1) == Dump.store(path, key: 1))
    }

    @Test func `without page 1, texts of another encoding are BLOBs, and the report says so`()
        throws
    {
        do {
            let raw = try RawConnection(path, key: 1, pragmas: ["PRAGMA encoding = 'UTF-16le'"])
            try #require(raw.run("CREATE TABLE t(v)") == 0)
            raw.run("INSERT INTO t VALUES ('ab'), ('é'), (7)")
        }
        try Damage.flip(path, at: 700)
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        #expect(
            try lostRows(copy, report).map { $0[6] }
                == [.blob(Data([0x61, 0, 0x62, 0])), .blob(Data([0xe9, 0])), .integer(7)])
        #expect(report.problems.contains { $0.contains("taken for UTF-8") })
        #expect(report.problems.contains { $0.hasPrefix("2 texts of lost_and_found") })
    }

    @Test(arguments: [false, true])
    func `a table of nearly as many columns as SQLite allows ends no salvage`(
        isFirstPageDamaged: Bool
    ) throws {
        let count = 1_999
        do {
            let raw = try RawConnection(path, key: 1)
            let names = (0..<count).map { "a\($0)" }.joined(separator: ", ")
            let values = (0..<count).map { "\($0)" }.joined(separator: ", ")
            try #require(raw.run("CREATE TABLE wide(\(names))") == 0)
            try #require(raw.run("INSERT INTO wide VALUES (\(values))") == 0)
            raw.run("CREATE TABLE note(body); INSERT INTO note VALUES ('kept')")
        }
        if isFirstPageDamaged { try Damage.flip(path, at: 700) }
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        // The older engine binds at most 999 values, and so its table refuses the row.
        guard !report.isComplete else { return #expect(!isFirstPageDamaged) }
        let lost = try lostRows(copy, report)
        let values = lost.filter { $0[5] == .integer(Int64(count)) }
            .flatMap { $0.dropFirst(6).filter { $0 != .null } }
        #expect(values == (0..<count).map { .integer(Int64($0)) })
        #expect(lost.count == (isFirstPageDamaged ? 4 : 3))
    }

    /// Story: a row that the key's own collation tells from others was compared with that of its
    /// column. It counted as not stored, and the rows that looked the same were deleted with it.
    @Test func `rows whose keys differ only for the key's own collation are all saved`() throws {
        do {
            let raw = try RawConnection(path, key: 1)
            let key = "k TEXT COLLATE NOCASE, v, PRIMARY KEY (k COLLATE BINARY)"
            try #require(raw.run("CREATE TABLE t(\(key)) WITHOUT ROWID") == 0)
            raw.run("INSERT INTO t VALUES ('A', 1), ('a', 2), ('B', 3), ('b', 4)")
        }
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        #expect(report.isComplete && report.tables.map(\.rowCount) == [4], "\(report)")
        #expect(try Dump.store(copy, key: 1) == Dump.store(path, key: 1))
    }

    @Test func `the odd schema is saved whole`() throws {
        let plain = folder.path("plain.db")
        try #require(try RawConnection(plain).run(OddSchema.sql) == 0)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing(.delete))
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        #expect(report.lostRowCount == 0 && report.tables.allSatisfy(\.isWhole), "\(report)")
        // It had no parent before.
        #expect(report.problems == ["1 rows of child refer to rows that are missing"])
        #expect(try Dump.store(copy, key: 1) == Dump.store(path, key: 1))
    }

    @Test func `a value that its column's type would change is kept as it is, elsewhere`() throws {
        do {
            let raw = try RawConnection(path, key: 1)
            try #require(raw.run("CREATE TABLE t(v)") == 0)
            raw.run("INSERT INTO t VALUES (1), ('two'), (3.5)")
            raw.run("PRAGMA writable_schema = ON")
            let sql = "UPDATE sqlite_master SET sql = 'CREATE TABLE t(v TEXT)'"
            try #require(raw.run(sql) == 0)
        }
        let copy = folder.path("copy.db")
        let report = try Store.salvage(
            damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
        #expect(report.tables.map(\.rowCount) == [1] && report.tables[0].refusedRowCount == 2)
        #expect(try lostRows(copy, report).map { $0[6] } == [.integer(1), .real(3.5)])
        #expect(!report.isComplete)
    }

    // MARK: The WAL

    /// A store whose newest commits are only in its WAL.
    private func makeWAL() throws -> String {
        try make(.wal)
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.wal))
        try connection.execute("UPDATE note SET title = 'new ' || id WHERE id <= 200")
        try connection.execute("INSERT INTO bare(rowid, v) VALUES (100000, 'last')")
        let copy = try folder.copy(path, as: "wal.db")
        _ = try folder.copy(path + "-wal", as: "wal.db-wal")
        connection.close()
        return copy
    }

    @Test func `commits in the WAL are saved, also if its header is damaged`() throws {
        let damaged = try makeWAL()
        let original = try rows(path)
        for isHeaderDamaged in [false, true] {
            if isHeaderDamaged { try Damage.flip(damaged + "-wal", at: 17) }
            let copy = folder.path("copy\(isHeaderDamaged).db")
            let report = try Store.salvage(
                damagedAt: damaged, key: .numbered(1), to: copy, configuration: .testing())
            #expect(report.isComplete, "\(report)")
            #expect(try rows(copy) == original)
        }
        #expect(FileManager.default.fileExists(atPath: damaged + "-wal"))
    }

    @Test func `commits behind a damaged frame are saved, and no older version of its page is`()
        throws
    {
        let damaged = try makeWAL()
        let original = try rows(path)
        let whole = try Data(contentsOf: URL(filePath: damaged + "-wal"))
        let frame = WriteAheadLog.frameHeaderByteCount + profile.pageByteCount
        let count = (whole.count - WriteAheadLog.headerByteCount) / frame
        var incompleteCount = 0
        // The last frame commits: without it, its transaction never was.
        for index in stride(from: 0, to: count - 1, by: 3) {
            try whole.write(to: URL(filePath: damaged + "-wal"))
            let offset = WriteAheadLog.headerByteCount + index * frame + 500
            try Damage.flip(damaged + "-wal", at: offset)
            let copy = folder.path("copy\(index).db")
            let report = try Store.salvage(
                damagedAt: damaged, key: .numbered(1), to: copy, configuration: .testing())
            try expectHonest(report, copy, original, "frame \(index)")
            if !report.isComplete { incompleteCount += 1 }
            // A row of the last commit.
            guard report.tables.first(where: { $0.name == "bare" })?.isWhole == true else {
                continue
            }
            #expect(try rows(copy)["bare"]?[100_000] == [.text("last")], "frame \(index)")
        }
        #expect(incompleteCount > 0)
    }

    /// Changes the last frame of a WAL, and salvages.
    ///
    /// - Parameter change: Given the offset of the frame.
    private func salvage(
        _ damaged: String, _ name: String, changing change: (Int) throws -> Void
    ) throws -> (report: SalvageReport, copy: String) {
        let log = URL(filePath: damaged + "-wal")
        let whole = try Data(contentsOf: log)
        defer { try? whole.write(to: log) }
        let frame = WriteAheadLog.frameHeaderByteCount + profile.pageByteCount
        let count = (whole.count - WriteAheadLog.headerByteCount) / frame
        try change(WriteAheadLog.headerByteCount + (count - 1) * frame)
        let copy = folder.path("copy-\(name).db")
        return (
            try Store.salvage(
                damagedAt: damaged, key: .numbered(1), to: copy, configuration: .testing()), copy
        )
    }

    @Test
    func `a last commit that is damaged in the WAL is told, for it may have been acknowledged`()
        throws
    {
        let damaged = try makeWAL()
        let log = damaged + "-wal"
        let changes: [(String, (Int) throws -> Void)] = [
            ("content", { try Damage.flip(log, at: $0 + 500) }),
            ("page number", { try Damage.flip(log, at: $0 + 3) }),
            ("end", { try Damage.truncate(log, to: $0 + 100) }),
        ]
        for (name, change) in changes {
            let (report, _) = try salvage(damaged, name, changing: change)
            #expect(!report.isComplete, "\(name)")
            let problem = report.problems.first { $0.contains("last commit may be missing") }
            #expect(problem != nil, "\(name): \(report.problems)")
        }
    }

    @Test func `a WAL whose only commit is damaged is not taken for that of another store`() throws
    {
        try make(.wal)
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.wal))
        try connection.execute("UPDATE note SET title = 'new ' || id WHERE id <= 200")
        let damaged = try folder.copy(path, as: "wal.db")
        _ = try folder.copy(path + "-wal", as: "wal.db-wal")
        connection.close()
        let (report, _) = try salvage(damaged, "only") { offset in
            try Damage.flip(damaged + "-wal", at: offset + 500)
        }
        #expect(!report.isComplete)
        #expect(report.problems.count == 1, "\(report.problems)")
        #expect(report.problems[0].contains("last commit may be missing"))
    }

    @Test func `a wrong salt or checksum of the last commit loses nothing`() throws {
        let damaged = try makeWAL()
        let original = try rows(path)
        for place in [9, 13, 17, 21] {
            let (report, copy) = try salvage(damaged, "\(place)") { offset in
                try Damage.flip(damaged + "-wal", at: offset + place)
            }
            #expect(report.isComplete, "\(place): \(report)")
            #expect(try rows(copy) == original, "\(place)")
        }
    }

    /// Story: the size of the database in the last commit frame, which no MAC covers, was believed.
    /// One bit made it a thousand pages or billions.
    @Test func `a wrong size in the last commit frame changes nothing`() throws {
        let damaged = try makeWAL()
        let original = try rows(path)
        let frame = WriteAheadLog.frameHeaderByteCount + profile.pageByteCount
        for (place, bit) in [(4, 7), (5, 0), (6, 0), (7, 0), (7, 2), (7, 6)] {
            for isFirstPageLost in [false, true] {
                let name = "\(place)-\(bit)-\(isFirstPageLost)"
                let (report, copy) = try salvage(damaged, name) { last in
                    let log = URL(filePath: damaged + "-wal")
                    var bytes = try [UInt8](Data(contentsOf: log))
                    bytes[last + place] ^= 1 << bit
                    for offset in stride(
                        from: WriteAheadLog.headerByteCount, to: last, by: frame)
                    where isFirstPageLost && bytes[offset..<offset + 4] == [0, 0, 0, 1] {
                        bytes[offset + 500] ^= 1
                    }
                    try Data(bytes).write(to: log)
                }
                if isFirstPageLost {
                    #expect(report.lostRowCount > 1_000, "\(name)")
                    #expect(report.pageCount < 1_000, "\(name)")
                } else {
                    #expect(report.isComplete, "\(name): \(report)")
                    #expect(try rows(copy) == original, "\(name)")
                }
            }
        }
    }

    @Test func `a WAL of another store is left out and told`() throws {
        try make()
        let other = folder.path("other.db")
        let connection = try Connection(
            path: other, key: .numbered(2), configuration: .testing(.wal, profile: profile))
        try connection.execute("CREATE TABLE t(v)")
        _ = try folder.copy(other + "-wal", as: "store.db-wal")
        connection.close()
        let (report, _) = try {
            let copy = folder.path("copy.db")
            let report = try Store.salvage(
                damagedAt: path, key: .numbered(1), to: copy, configuration: .testing())
            return (report, copy)
        }()
        #expect(report.tables.count == 4 && report.tables.allSatisfy(\.isWhole))
        #expect(!report.isComplete && report.problems.contains { $0.contains("-wal") })
    }

    // MARK: Refusals

    @Test func `a store that somebody has open, a journal and a taken name are refused`() throws {
        try make()
        let copy = folder.path("copy.db")
        var configuration = Configuration.testing()
        configuration.busyTimeout = .milliseconds(20)
        func salvage() throws {
            _ = try Store.salvage(
                damagedAt: path, key: .numbered(1), to: copy, configuration: configuration)
        }
        for mode in [Configuration.JournalMode.delete, .wal] {
            let connection = try Connection(
                path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(mode))
            try connection.execute("BEGIN IMMEDIATE")
            try connection.execute("INSERT INTO bare VALUES (1)")
            expect(.busy) { try salvage() }
            connection.close()
        }
        let journal: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 1]
        try Data(journal).write(to: URL(filePath: path + "-journal"))
        expect(.busy) { try salvage() }
        try FileManager.default.removeItem(atPath: path + "-journal")
        #expect(!FileManager.default.fileExists(atPath: copy))
        try salvage()
        expect(.alreadyExists) { try salvage() }
        expect(.wrongKey) {
            _ = try Store.salvage(
                damagedAt: path, key: .numbered(9), to: folder.path("wrong.db"),
                configuration: .testing())
        }
    }

    @Test func `a cancelled salvage leaves nothing`() async throws {
        try make()
        let copy = folder.path("copy.db")
        let path = path
        let task = Task {
            try await Store.salvage(
                damagedAt: path, key: .numbered(1), to: copy, configuration: .testing()
            ) { _ in
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store.db"])
    }
}
