/// Fills the new store with what the pages of a damaged one hold, and notes what is missing.
final class SalvageFilling {
    /// The tree of a table or an index, after its walk.
    private struct Tree {
        /// The table's place in `tables`; `nil` for an index.
        let table: Int?
        let losses: TreeWalk.Losses
    }

    private let source: SalvageSource
    private let walk: TreeWalk
    private let handle: Handle
    private let monitor: CopyMonitor
    private let schema: SalvagedSchema
    private let contents: [Int: PageContent]
    private let lost: LostAndFound

    private var tables: [SalvageReport.Table] = []
    /// The tables of the new store; `nil` for one that could not be made.
    private var made: [SalvagedTable?] = []
    private var roots: [Int] = []
    private var rowTrees: [Tree] = []
    private var indexTrees: [Tree] = []
    private var problems: [String] = []
    private var count = 0

    /// - Parameters:
    ///   - walk: Of which no tree was walked.
    ///   - handle: An empty database, in no transaction.
    init(
        _ source: SalvageSource, _ walk: TreeWalk, _ handle: Handle, _ monitor: CopyMonitor
    ) throws(StoreError) {
        self.source = source
        self.walk = walk
        self.handle = handle
        self.monitor = monitor
        schema = try SalvagedSchema(source, walk)
        lost = LostAndFound(handle, schema.encoding, isAssumed: source.header == nil)
        contents = try PageOwners.contents(
            of: Set(walk.damagedPages), pageCount: source.pageCount
        ) { (number) throws(StoreError) in try source.page(number) }
    }

    func run() throws(StoreError) {
        try prepare()
        try handle.run(.beginImmediate)
        for entry in schema.entries where entry.type == "table" && entry.rootPage > 0 {
            try makeTable(entry)
        }
        for table in tables.indices { try copyRows(of: table) }
        try takeIndexes()
        try adoptOrphans(isIndex: false)
        try adoptOrphans(isIndex: true)
        for entry in schema.entries { try makeRest(entry) }
        try set("user_version", headerOffset: 60)
        try set("application_id", headerOffset: 68)
        try noteLosses()
        try handle.run(.commit)
        try monitor.report(.copyingRows, count, of: count)
    }

    func report(_ copy: CopyReport) -> SalvageReport {
        SalvageReport(
            copy: copy, pageCount: source.pageCount,
            damagedPages: walk.damagedPages.map { DamagedPage($0, contents) },
            tables: tables.filter { !$0.name.hasPrefix("sqlite_") }, lostTableName: lost.name,
            lostRowCount: lost.rowCount, problems: problems)
    }

    private static let sequence = "sqlite_sequence"

    // MARK: Settings

    private func prepare() throws(StoreError) {
        try handle.run("PRAGMA foreign_keys = OFF")
        try handle.run("PRAGMA encoding = \"\(schema.encoding.pragmaName)\"")
        // "52: The page number of the largest root b-tree page when in auto-vacuum or
        // incremental-vacuum modes, or zero otherwise." "64: True (non-zero) for incremental-vacuum
        // mode." https://www.sqlite.org/fileformat2.html#the_database_header
        if source.header?.integer(at: 52, byteCount: 4) ?? 0 > 0 {
            let isIncremental = source.header?.integer(at: 64, byteCount: 4) ?? 0 > 0
            try handle.run("PRAGMA auto_vacuum = \(isIncremental ? 2 : 1)")
        }
        // Allows creating tables with names reserved by SQLite, and writing the schema as rows.
        try handle.run("PRAGMA writable_schema = ON")
    }

    /// "60: The "user version" … 68: The "Application ID" set by PRAGMA application_id."
    private func set(_ pragma: String, headerOffset: Int) throws(StoreError) {
        let bits = UInt32(source.header?.integer(at: headerOffset, byteCount: 4) ?? 0)
        try handle.run("PRAGMA \(pragma) = \(Int32(bitPattern: bits))")
    }

    // MARK: Tables

    private func makeTable(_ entry: SalvagedSchema.Entry) throws(StoreError) {
        tables.append(SalvageReport.Table(name: entry.name))
        roots.append(entry.rootPage)
        made.append(nil)
        // SQLite makes it with the first table that needs it.
        guard entry.name != Self.sequence else { return }
        try attempt("the table \(entry.name)") { () throws(StoreError) in
            guard let sql = entry.sql, sql.hasPrefix("CREATE TABLE") else {
                throw StoreError(.sql, "its definition is not one that SQLite writes")
            }
            try CopyStatement(handle, sql).run()
            made[made.count - 1] = try SalvagedTable(entry.name, handle, schema.encoding)
        }
    }

    /// Notes a definition that the engine refuses, and goes on.
    private func attempt(_ what: String, _ work: () throws(StoreError) -> Void) throws(StoreError) {
        do throws(StoreError) {
            try work()
        } catch  where error.code == .sql || error.code == .constraint {
            problems.append("\(what) could not be made again: \(error.message)")
        }
    }

    private func copyRows(of table: Int) throws(StoreError) {
        let isIndex = made[table].map { !$0.hasRowIDs } ?? walk.isIndex(roots[table])
        let losses = try walk.walk(roots[table], isIndex: isIndex) { (row) throws(StoreError) in
            try keep(row, in: table, root: roots[table])
        }
        let tree = Tree(table: table, losses: losses)
        if isIndex { indexTrees.append(tree) } else { rowTrees.append(tree) }
        for loss in losses.pages {
            tables[table].gaps.append(SalvageReport.Gap(loss))
        }
        if losses.cellCount > 0 {
            problems.append(
                "\(losses.cellCount) rows of \(tables[table].name) lie outside their pages")
        }
    }

    /// Walks the indexes, so that their pages are not taken for rows of a table.
    private func takeIndexes() throws(StoreError) {
        for entry in schema.entries where entry.type == "index" && entry.rootPage > 0 {
            let losses = try walk.walk(entry.rootPage, isIndex: true) { _ throws(StoreError) in }
            indexTrees.append(Tree(table: nil, losses: losses))
        }
    }

    // MARK: Rows

    private func keep(
        _ row: TreeWalk.Row, in table: Int?, root: Int, isIndex: Bool = false
    ) throws(StoreError) {
        count += 1
        if count % CopyMonitor.interval == 0 {
            try monitor.report(.copyingRows, count, of: max(count, walk.rowCount))
        }
        let name = table.map { tables[$0].name }
        guard let record = StoredRecord(row.bytes, of: row.byteCount) else {
            if let table { tables[table].cutRowCount += 1 }
            problems.append("a row of page \(row.page) is cut off before its first value")
            return
        }
        let reason: String
        if !record.isWhole {
            if let table { tables[table].cutRowCount += 1 }
            reason = "cut short: the rest was in a lost page"
        } else if let table, name == Self.sequence {
            return try setSequence(record, table)
        } else if let table, let made = made[table] {
            guard let refusal = try made.insert(record, rowID: row.rowID) else {
                tables[table].rowCount += 1
                return
            }
            tables[table].refusedRowCount += 1
            reason = "refused by its table: \(refusal)"
        } else if table != nil {
            reason = "its table could not be made again"
        } else {
            reason =
                isIndex
                ? "an entry of an unknown index, or a row of an unknown table WITHOUT ROWID"
                : "of an unknown table"
        }
        try lost.insert(
            row, record, LostAndFound.Origin(reason: reason, table: name, rootPage: root))
    }

    /// Keeps row ids that were given once from being given again.
    private func setSequence(_ record: StoredRecord, _ table: Int) throws(StoreError) {
        guard record.values.count == 2, case .text = record.values[0] else { return }
        let isMade = try handle.firstInteger(
            "SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_sequence'")
        guard isMade > 0 else { return }
        for sql in [
            "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
            "INSERT INTO sqlite_sequence(name, seq) SELECT ?1, ?2 "
                + "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
        ] {
            let statement = try CopyStatement(handle, sql)
            try statement.bind(record.values[0], at: 1, schema.encoding)
            try statement.bind(record.values[1], at: 2, schema.encoding)
            try statement.run()
        }
        tables[table].rowCount += 1
    }

    // MARK: Orphans

    private func adoptOrphans(isIndex: Bool) throws(StoreError) {
        let trees = isIndex ? indexTrees : rowTrees
        let lacking = trees.filter(\.losses.hasLostBranch)
        // Entries of indexes are made again from the rows.
        guard !schema.isWhole || lacking.contains(where: { $0.table != nil }) else { return }
        let orphans = try walk.orphans(isIndex: isIndex)
        let isCertain = schema.isWhole && walk.isFreeListWhole && lacking.count == 1
        let owner = isCertain ? lacking[0].table : nil
        var isAllFound = !orphans.isEmpty && !contents.values.contains(.unknown)
        for orphan in orphans {
            let losses = try walk.walk(orphan, isIndex: isIndex) { (row) throws(StoreError) in
                try keep(row, in: owner, root: orphan, isIndex: isIndex)
            }
            if !losses.pages.isEmpty || losses.cellCount > 0 { isAllFound = false }
        }
        // An interior page of a table has no rows of its own, and everything below it was found.
        guard let owner, isAllFound, !isIndex else { return }
        let branches = lacking[0].losses.lostBranches.map(SalvageReport.Gap.init)
        tables[owner].gaps.removeAll { branches.contains($0) }
    }

    // MARK: Other definitions

    /// Makes an index, view, trigger or virtual table.
    private func makeRest(_ entry: SalvagedSchema.Entry) throws(StoreError) {
        guard let sql = entry.sql, entry.type != "table" || entry.rootPage == 0 else { return }
        try attempt("the \(entry.type) \(entry.name)") { () throws(StoreError) in
            guard entry.type == "table" else {
                let starts = [
                    "CREATE INDEX", "CREATE UNIQUE INDEX", "CREATE VIEW", "CREATE TRIGGER",
                ]
                guard starts.contains(where: sql.hasPrefix) else {
                    throw StoreError(.sql, "its definition is not one that SQLite writes")
                }
                return try CopyStatement(handle, sql).run()
            }
            // Its rows are in ordinary tables, and its module is not needed.
            guard sql.hasPrefix("CREATE VIRTUAL TABLE"), try CopyStatement.compiles(handle, sql)
            else { throw StoreError(.sql, "its definition is not one that SQLite writes") }
            let insert = try CopyStatement(
                handle,
                "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) "
                    + "VALUES ('table', ?, ?, 0, ?)")
            for (index, text) in [entry.name, entry.table, sql].enumerated() {
                try insert.bind(text, at: Int32(index + 1))
            }
            try insert.run()
        }
    }

    private func noteLosses() throws(StoreError) {
        if !schema.isWhole {
            problems.append(
                "definitions of tables are lost: rows of unknown tables are in "
                    + (lost.name ?? "no readable page"))
        }
        if source.header == nil {
            problems.append(
                "page 1 is lost, and with it the list of free pages, user_version, and the "
                    + "encoding of texts, which are taken for UTF-8")
        } else if !walk.isFreeListWhole, lost.rowCount > 0 {
            problems.append(
                "the list of free pages is damaged: rows of \(lost.name ?? "") may be deleted ones")
        }
        if tables.contains(where: { $0.name == Self.sequence && !$0.isWhole }) {
            problems.append("numbers of AUTOINCREMENT are lost: ids of deleted rows may come again")
        }
        if source.hasForeignWAL {
            problems.append("no page in the -wal file opens with the key; it was left out")
        }
        if lost.foreignTextCount > 0 {
            problems.append(
                "\(lost.foreignTextCount) texts of \(lost.name ?? "") are not UTF-8: BLOBs have "
                    + "their bytes")
        }
        if !source.isExclusive {
            problems.append(
                "the store could not be locked, because this user may not write it: a program "
                    + "that had it open was not noticed; of a copy with its -wal this cannot happen"
            )
        }
        noteLossesOfWAL()
        try noteMissingParents()
    }

    private func noteLossesOfWAL() {
        guard let log = source.log else { return }
        if log.namelessCount > 0 {
            problems.append(
                "\(log.namelessCount) damaged frames of the WAL do not say which page they hold")
        }
        guard log.rest.frameCount > 0 else { return }
        let count = "frames of the WAL after its last readable commit: \(log.rest.frameCount)"
        problems.append(
            log.rest.hasCommit
                ? "\(count), one of which commits: the last commit may be missing"
                : "\(count), none of which commits: a transaction was not committed, or the last "
                    + "commit is missing")
    }

    private func noteMissingParents() throws(StoreError) {
        var counts: [String: Int] = [:]
        do throws(StoreError) {
            let rows = try CopyStatement(handle, "PRAGMA foreign_key_check")
            while try rows.step() { counts[try rows.text(0) ?? "", default: 0] += 1 }
        } catch  where error.code == .sql || error.code == .constraint {
            // A parent without the key that the child names: the damaged store had it as well.
            problems.append("foreign keys could not be checked: \(error.message)")
        }
        for (table, count) in counts.sorted(by: { $0.key < $1.key }) {
            problems.append("\(count) rows of \(table) refer to rows that are missing")
        }
    }
}

extension SalvageReport.Gap {
    init(_ loss: TreeWalk.Loss) {
        let first = loss.below.map { $0 == .max ? $0 : $0 + 1 }
        self.init(page: loss.page, firstRowID: first, lastRowID: loss.last)
    }
}
