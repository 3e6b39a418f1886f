/// Records what one transaction on a store's writer changes, from BEGIN to COMMIT.
///
/// A failure to record does not fail the write: the recording then counts as everything. Only an
/// error for which SQLite ends the whole transaction fails the write as well.
final class CommitRecording: CommitRecorder, TouchObserver {
    private let connection: Connection
    /// The number of loops at the start of the transaction; later loops have a greater one.
    let generation: Int
    /// Tables that statements may have written to.
    private(set) var writes = TableSet()
    private var followed = RowRecorder.Followed()
    /// Tables in which REPLACE may have deleted rows without a trigger firing.
    private var replaced: Set<SQLText> = []
    private let wanted: Set<SQLText>
    /// Why something could not be recorded.
    private(set) var failure: StoreError?
    private var schemaVersion: Int64?
    private(set) var result = Result(rows: [], rescans: [:])

    /// What loops that follow rows get.
    struct Result {
        var rows: [ChangedRow]
        /// By table, in lower case; under `nil` for all tables.
        var rescans: [SQLText?: ChangeEvent.Reason]
    }

    /// Begins to record the transaction that is open on this connection. A failure goes into
    /// `failure`.
    ///
    /// - Parameters:
    ///   - wanted: The tables whose rows are followed, in lower case of ASCII.
    ///   - generation: The number of loops that observe by now.
    init(_ connection: Connection, wanted: Set<SQLText>, generation: Int) {
        self.connection = connection
        self.generation = generation
        self.wanted = wanted
        attempt { () throws(StoreError) in
            schemaVersion = try connection.current().schemaVersion()
            followed = try RowRecorder(connection).install(wanted)
        }
        connection.handle?.touchObserver = self
    }

    /// Completes `writes` and `result`, right before COMMIT, and stops observing the connection.
    ///
    /// If anything could not be recorded, `writes` becomes everything and `result` a rescan of all
    /// tables.
    func finish() {
        stop()
        attempt { () throws(StoreError) in
            if let rows = try RowRecorder(connection).take(followed.tables) {
                result.rows = rows
                for row in rows { writes.insert(row.table.asciiLowercased) }
            } else {
                result.rescans[nil] = .tooManyRows
            }
            for table in replaced { result.rescans[table] = .unknown }
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
        if let handle = connection.handle, handle.touchObserver === self {
            handle.touchObserver = nil
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
            writes.formUnion(footprint.writes)
            guard footprint.mentionsReplace else { return }
            for table in followed.tables where table.hasHiddenUniqueKeys {
                let name = table.name.asciiLowercased
                if footprint.writes.intersects(TableSet([name])) {
                    replaced.insert(SQLText(name))
                }
            }
        }
    }

    func willWrite(_ cell: BlobCell, on connection: Connection) {
        guard cell.schema.asciiLowercased == "main" else { return }
        let name = cell.table.asciiLowercased
        writes.insert(name)
        let followed = followed.tables.first {
            SQLText($0.name.asciiLowercased) == SQLText(name)
        }
        guard let table = followed else { return }
        let handle = connection.handle
        handle?.touchObserver = nil
        defer { handle?.touchObserver = self }
        attempt { () throws(StoreError) in
            try RowRecorder(connection).note(row: cell.row, of: table)
        }
    }
}
