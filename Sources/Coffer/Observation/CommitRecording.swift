/// What one transaction of a store's writer touches, from its begin to its commit.
///
/// It does not fail the write that it looks at: what could not be written down counts for
/// everything. Only an error for which SQLite ends the whole transaction is that of the write too.
final class CommitRecording: CommitRecorder, TouchObserver {
    private let connection: Connection
    /// Those who began to observe later find this too small.
    let generation: Int
    /// Tables that statements may have written to.
    private(set) var writes = TableSet()
    private var followed = RowRecorder.Followed()
    /// Tables of which rows may have gone that nothing tells of.
    private var replaced: Set<String> = []
    private let wanted: Set<String>
    /// Why something could not be written down.
    private(set) var failure: StoreError?
    private var schemaVersion: Int64?
    private(set) var result = Result(rows: [], rescans: [:])

    /// What those get to know who follow rows.
    struct Result {
        var rows: [ChangedRow]
        /// By table, in lower case; under `nil` for all of them.
        var rescans: [String?: ChangeEvent.Reason]
    }

    /// Begins in an open transaction.
    ///
    /// - Parameter wanted: The tables whose rows are followed.
    init(_ connection: Connection, wanted: Set<String>, generation: Int) {
        self.connection = connection
        self.generation = generation
        self.wanted = wanted
        attempt { () throws(StoreError) in
            schemaVersion = try connection.current().schemaVersion()
            followed = try RowRecorder(connection).install(wanted)
        }
        connection.handle?.touchObserver = self
    }

    /// Looks at the transaction for the last time: before its COMMIT, when its work is done.
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

    /// Ends without a commit, or before it.
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
        // A change of the schema shows in its version.
        guard !statement.isReadOnly, !statement.changesSchema else { return }
        attempt { () throws(StoreError) in
            let footprint = try statement.footprint(on: connection)
            writes.formUnion(footprint.writes)
            guard footprint.mentionsReplace else { return }
            for table in followed.tables where table.hasHiddenUniqueKeys {
                let name = table.name.asciiLowercased
                if footprint.writes.intersects(TableSet([name])) { replaced.insert(name) }
            }
        }
    }

    func willWrite(_ cell: BlobCell, on connection: Connection) {
        guard cell.schema.asciiLowercased == "main" else { return }
        let name = cell.table.asciiLowercased
        writes.insert(name)
        let followed = followed.tables.first { $0.name.asciiLowercased == name }
        guard let table = followed else { return }
        let handle = connection.handle
        handle?.touchObserver = nil
        defer { handle?.touchObserver = self }
        attempt { () throws(StoreError) in
            try RowRecorder(connection).note(row: cell.row, of: table)
        }
    }
}
