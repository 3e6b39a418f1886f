/// Records what one transaction on a store's writer changes, from BEGIN to COMMIT.
///
/// A failure to record does not fail the write: the recording then counts as everything. Only an
/// error for which SQLite ends the whole transaction fails the write as well.
final class CommitRecording: CommitRecorder, TouchObserver {
    private let connection: Connection
    /// The handle that is observed; a change of the key gives the connection another one.
    private let handle: Handle?
    /// The number of loops at the start of the transaction; later loops have a greater one.
    let generation: Int
    /// Tables that statements may have written to.
    private(set) var writes = TableSet()
    private var followed = RowRecorder.Followed()
    /// Tables of which rows may have changed that neither a trigger nor a report tells, in lower
    /// case.
    private var untold: Set<SQLText> = []
    /// The tables that had triggers when the transaction began.
    private var triggeredAtStart: Set<Int> = []
    private var log = RowLog()
    private var hook: UpdateHook?
    /// The statement that has begun last.
    private var last: Run?
    private let wanted: Set<SQLText>
    /// Why something could not be recorded.
    private(set) var failure: StoreError?
    private var schemaVersion: Int64?
    private(set) var result = Result(rows: [], rescans: [:])

    /// A statement that runs.
    private struct Run {
        let statement: Statement
        let footprint: StatementFootprint
        /// Whether it may delete rows whose keys can then no longer be read.
        let deletes: Bool
        /// The number of log entries before it.
        var start: Int
    }

    /// What loops that follow rows get.
    struct Result {
        var rows: [ChangedRow]
        /// By table, in lower case; under `nil` for all tables.
        var rescans: [SQLText?: ChangeEvent.Reason]

        /// The changed rows of some tables.
        func rows(in tables: TableSet) -> [ChangedRow] {
            // Rows of one table mostly follow each other, and share its name.
            var last: (name: SQLText, isIn: Bool)?
            func isIn(_ row: ChangedRow) -> Bool {
                if let last, last.name == SQLText(row.table) { return last.isIn }
                let isIn = tables.names.contains(SQLText(row.table.asciiLowercased))
                last = (SQLText(row.table), isIn)
                return isIn
            }
            return rows.allSatisfy(isIn) ? rows : rows.filter(isIn)
        }
    }

    /// Begins to record the transaction that is open on this connection. A failure goes into
    /// `failure`.
    ///
    /// - Parameters:
    ///   - wanted: The tables whose rows are followed, in lower case of ASCII.
    ///   - generation: The number of loops that observe by now.
    init(_ connection: Connection, wanted: Set<SQLText>, generation: Int) {
        self.connection = connection
        handle = connection.handle
        self.generation = generation
        self.wanted = wanted
        attempt { () throws(StoreError) in
            schemaVersion = try connection.current().schemaVersion()
            followed = try RowRecorder(connection).install(wanted)
            triggeredAtStart = followed.triggered
        }
        installHook()
        handle?.touchObserver = self
    }

    deinit {
        stop()
    }

    /// Begins to log the rows that the update hook tells.
    private func installHook() {
        guard let handle, followed.tables.contains(where: { $0.rowID != nil }) else { return }
        let hook = UpdateHook(tables: followed.tables.map(\.name)) {
            [unowned self] kind, table, row in
            guard !followed.triggered.contains(table) else { return }
            // The verb that deletes the row reports its key.
            if kind == .deletion, !followed.tables[table].isKeyedByRowID { return }
            log.append(.row(ChangeTriggers.Mark(kind), table: table, row))
        }
        hook.install(on: handle)
        self.hook = hook
    }

    /// Completes `writes` and `result`, right before COMMIT, and stops observing the connection.
    ///
    /// If anything could not be recorded, `writes` becomes everything and `result` a rescan of all
    /// tables.
    func finish() {
        stop()
        attempt { () throws(StoreError) in
            try resolve()
            if let rows = try RowRecorder(connection).take(followed, log) {
                result.rows = rows
                var last: SQLText?
                for row in rows where SQLText(row.table) != last {
                    last = SQLText(row.table)
                    writes.insert(row.table.asciiLowercased)
                }
            } else {
                result.rescans[nil] = .tooManyRows
            }
            for table in untold { result.rescans[table] = .unknown }
            if !writes.isEmpty {
                for table in followed.refused { result.rescans[table] = .unknown }
            }
            if try connection.current().schemaVersion() != schemaVersion {
                writes.insertEverything()
                result.rescans[nil] = .schema
            }
        }
        guard failure != nil else { return }
        writes.insertEverything()
        result = Result(rows: [], rescans: [nil: .unknown])
    }

    /// Whether no triggers are left on the connection.
    var hasNoTriggers: Bool { wanted.isEmpty && failure == nil }

    /// Stops observing the statements of the connection. Does nothing if another recording observes
    /// them.
    func stop() {
        last = nil
        guard let handle else { return }
        if handle.touchObserver === self { handle.touchObserver = nil }
        guard let hook, !handle.isClosed else { return }
        self.hook = nil
        if !hook.remove(from: handle) {
            failure =
                failure ?? StoreError(.unsupported, "the program has replaced the update hook")
        }
    }

    private func attempt(_ work: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try work()
        } catch {
            failure = failure ?? error
        }
    }

    // MARK: Touches

    func willRun(_ statement: Statement, on connection: Connection) {
        // `finish` recognises a schema change by the schema's version.
        guard !statement.isReadOnly, !statement.changesSchema else { return }
        attempt { () throws(StoreError) in
            let footprint = try statement.footprint(on: connection)
            // The statement of a loop that writes rows is looked at once.
            if last?.statement !== statement || last?.footprint !== footprint {
                writes.formUnion(footprint.writes)
                try prepare(for: statement, footprint)
                last = Run(
                    statement: statement, footprint: footprint, deletes: deletes(footprint),
                    start: 0)
            }
            if last?.deletes == true { try resolve() }
            last?.start = log.count
        }
    }

    /// Sees to it that each row is told that the statement changes in a followed table.
    ///
    /// - Throws: Errors of reading and of making triggers.
    private func prepare(
        for statement: Statement, _ footprint: StatementFootprint
    ) throws(StoreError) {
        for number in followed.tables.indices {
            let table = followed.tables[number]
            let name = table.lowercasedName
            // The statement of a virtual table writes where EXPLAIN does not show it.
            let mayWrite =
                footprint.writesUnknownTable || footprint.writes.names.contains(name)
                || footprint.rowChanges(of: name) != nil
                || footprint.writes.isEverything && !table.isPlain
            guard mayWrite else { continue }
            if !followed.triggered.contains(number), !table.isTold(of: statement, footprint) {
                try addTriggers(number)
            }
            if followed.triggered.contains(number), footprint.mentionsReplace,
                table.hasHiddenUniqueKeys
            {
                untold.insert(name)
            }
        }
    }

    /// Whether a statement may delete rows of tables whose keys are not row ids.
    private func deletes(_ footprint: StatementFootprint) -> Bool {
        followed.tables.contains {
            !$0.isKeyedByRowID && footprint.rowChanges(of: $0.lowercasedName)?.deletes == true
        }
    }

    private func addTriggers(_ table: Int) throws(StoreError) {
        // The key of a row that a trigger sees deleted could not be read any more.
        try resolve()
        try silently { () throws(StoreError) in
            try RowRecorder(connection).addTriggers(table, to: &followed)
        }
        log.append(.triggers(table: table))
    }

    /// Reads the keys of changed rows whose row id is not the key, while they can be read.
    private func resolve() throws(StoreError) {
        let tables = followed.tables
        let keyed = Set(
            tables.indices.filter { tables[$0].rowID != nil && !tables[$0].isKeyedByRowID })
        guard !keyed.isEmpty else { return }
        try silently { () throws(StoreError) in
            let lost = try log.resolve(keyed) { table, row throws(StoreError) in
                try tables[table].key(ofRow: row, connection)
            }
            for table in lost { untold.insert(tables[table].lowercasedName) }
        }
    }

    /// Runs statements of its own, which change no followed row.
    private func silently<T>(_ work: () throws(StoreError) -> T) throws(StoreError) -> T {
        let observer = handle?.touchObserver
        handle?.touchObserver = nil
        defer { handle?.touchObserver = observer }
        return try work()
    }

    func willWrite(_ cell: BlobCell, on connection: Connection) {
        guard cell.schema.asciiLowercased == "main" else { return }
        let name = cell.table.asciiLowercased
        writes.insert(name)
        let number = followed.tables.firstIndex { $0.lowercasedName == SQLText(name) }
        guard let number else { return }
        guard followed.triggered.contains(number) else {
            log.append(.row(.updated, table: number, cell.row))
            return
        }
        attempt { () throws(StoreError) in
            try silently { () throws(StoreError) in
                try RowRecorder(connection).note(row: cell.row, of: followed.tables[number])
            }
        }
    }

    // MARK: Reports

    func wantedKey(of table: String) -> [String]? {
        number(of: table).map { followed.tables[$0].key }
    }

    func didChange(_ change: ReportedChange) {
        guard let number = number(of: change.table) else { return }
        // The hook has told of it.
        if change.kind != .deletion, followed.tables[number].rowID != nil { return }
        log.append(.key(ChangeTriggers.Mark(change.kind), table: number, change.key))
    }

    /// The number of a table whose rows are identified by what verbs report.
    private func number(of name: String) -> Int? {
        followed.tables.indices.first { number in
            let table = followed.tables[number]
            return !table.isKeyedByRowID && !followed.triggered.contains(number)
                && (SQLText(table.name) == SQLText(name)
                    || table.lowercasedName == SQLText(name.asciiLowercased))
        }
    }

    // MARK: Undone changes

    func didFail(_ statement: Statement, violatesConstraint: Bool) {
        guard let last, last.statement === statement else {
            // Another statement has begun meanwhile: the log cannot tell whose its rows are.
            return doubt(from: 0)
        }
        guard log.count > last.start || log.isFull else { return }
        // SQLite undoes the rows of a statement that violates a constraint. Another failure may
        // leave some of them: SQLite keeps no journal for a statement that cannot violate one.
        if violatesConstraint { log.undo(to: last.start) } else { doubt(from: last.start) }
    }

    /// Notes that entries of the log may have been undone.
    private func doubt(from start: Int) {
        for table in log.tables(from: start) {
            untold.insert(followed.tables[table].lowercasedName)
        }
    }

    var undoPoint: Int { log.count }

    func didUndo(to point: Int) {
        log.undo(to: point)
        last = nil
        // SQLite has removed the triggers that were made since then.
        var triggered = triggeredAtStart
        for case .triggers(let table) in log.entries { triggered.insert(table) }
        followed.triggered = triggered
    }
}
