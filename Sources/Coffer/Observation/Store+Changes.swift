extension Store {
    /// The rows that commits insert, update and delete in these tables.
    ///
    /// ```swift
    /// for try await event in store.changes(in: "note") {
    ///     switch event {
    ///     case .commit(let rows): try index.update(rows.map { try $0.key(as: UUID.self) })
    ///     case .rescan: index.rebuild()
    ///     }
    /// }
    /// ```
    ///
    /// Each commit is one event, in the order of the commits, and lists each changed row once: what
    /// happened to it from before the commit to after it. The cause may be a statement, a trigger,
    /// a foreign key, REPLACE or a DELETE of all rows. Changes that were rolled back, or undone by
    /// a savepoint or by a failed statement, are not listed.
    ///
    /// Where rows cannot be listed, there is a `.rescan` with the reason, never silence: after
    /// commits of other processes, changes of the schema, and for a loop that falls behind.
    /// Occasionally a `.rescan` comes although nothing changed.
    ///
    /// Observing begins with the loop: begin the loop first, then read the existing rows. The loop
    /// keeps the store open. It ends when you leave it or cancel its task.
    ///
    /// Following a table usually costs little: SQLite's update hook and Coffer's verbs report the
    /// changed rows. Some statements need temporary triggers: REPLACE, FAIL, a constraint with a
    /// conflict clause, an UPDATE of a key, a DELETE of all rows, and SQL that writes to a table
    /// WITHOUT ROWID. After the first such statement the table keeps its triggers as long as a loop
    /// follows it. Each changed row then costs an insert into a temporary table and a lookup in
    /// each unique key.
    ///
    /// While a loop runs, do not set an update hook on the connection that writes: Coffer uses it.
    /// Writes of a module of virtual tables that your program has registered by the engine's own
    /// functions are listed only as far as that hook is told of them.
    ///
    /// The loop throws `StoreError` `.closed` when the store is closed; `CancellationError`;
    /// `.unsupported` for a view, a virtual table, a primary key of more than 16 columns, or
    /// columns that hide every name of the row id. A table that does not exist may be created
    /// later.
    ///
    /// - Parameters:
    ///   - tables: The names of the tables; any case of ASCII letters, as in SQL.
    ///   - maximumWaitingRowCount: How many rows may wait for the loop; if more wait, one `.rescan`
    ///     replaces all of them.
    /// - Returns: The sequence of events; each loop over it observes separately.
    /// - Complexity: O(*maximumWaitingRowCount*) memory.
    public func changes(
        in tables: String..., maximumWaitingRowCount: Int = 10_000
    ) -> ObservedChanges {
        ObservedChanges(core: core, tables: tables, maximumWaitingRowCount: maximumWaitingRowCount)
    }

    /// The rows that commits insert, update and delete in the table of a record type.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - maximumWaitingRowCount: As for tables by name; all else there applies here as well.
    public func changes<R: Record>(
        in type: R.Type, maximumWaitingRowCount: Int = 10_000
    ) -> ObservedChanges {
        changes(in: R.table, maximumWaitingRowCount: maximumWaitingRowCount)
    }

    /// The keys that commits insert, update and delete in a bucket.
    ///
    /// - Parameters:
    ///   - bucket: The bucket; a change's key is its key.
    ///   - maximumWaitingRowCount: As for tables by name; all else there applies here as well.
    public func changes<K, V>(
        in bucket: Bucket<K, V>, maximumWaitingRowCount: Int = 10_000
    ) -> ObservedChanges {
        changes(in: bucket.table, maximumWaitingRowCount: maximumWaitingRowCount)
    }

    /// The keys of attachments that commits add, replace, add to and remove.
    ///
    /// - Parameters:
    ///   - bucket: The bucket; a change's key is its key.
    ///   - maximumWaitingRowCount: As for tables by name; all else there applies here as well.
    public func changes<K>(
        in bucket: AttachmentBucket<K>, maximumWaitingRowCount: Int = 10_000
    ) -> ObservedChanges {
        changes(in: bucket.entries, maximumWaitingRowCount: maximumWaitingRowCount)
    }
}

/// The changes of commits, one after the other. See `Store.changes(in:maximumWaitingRowCount:)`.
public struct ObservedChanges: AsyncSequence, Sendable {
    let core: StoreCore
    let tables: [String]
    let maximumWaitingRowCount: Int

    /// Begins to observe, and returns the loop. It lists the rows of every commit whose write
    /// begins from now on; a write that runs now leads to a `.rescan` if it writes to one of the
    /// tables.
    public func makeAsyncIterator() -> Iterator {
        Iterator(loop: Loop(self))
    }

    /// One loop over the changes.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: Loop

        /// Waits for the next event, and returns it. Once a call has thrown an error, later calls
        /// return `nil`.
        ///
        /// - Throws: See `Store.changes(in:maximumWaitingRowCount:)`.
        public func next() async throws -> ChangeEvent? {
            try await loop.next()
        }
    }

    /// Stops observing when the loop releases it.
    fileprivate final class Loop {
        private let changes: ObservedChanges
        private let queue: ChangeQueue
        private var isChecked = false
        private var hasFailed = false

        init(_ changes: ObservedChanges) {
            self.changes = changes
            queue = ChangeQueue(
                tables: TableSet(Set(changes.tables.map(\.asciiLowercased))),
                maximumRowCount: Swift.max(1, changes.maximumWaitingRowCount))
            changes.core.observation.add(queue, changes.core)
        }

        deinit {
            changes.core.observation.remove(ObjectIdentifier(queue))
        }

        func next() async throws -> ChangeEvent? {
            guard !hasFailed else { return nil }
            do {
                if !isChecked { isChecked = try await check() }
                return try await queue.next()
            } catch {
                hasFailed = true
                changes.core.observation.remove(ObjectIdentifier(queue))
                throw error.ofTask
            }
        }

        /// Checks that the changed rows of all tables can be identified; a table may be missing.
        ///
        /// - Returns: `false` if the store is suspended, so that nothing was checked. The end of
        ///   the pause is an event.
        /// - Throws: `.unsupported` for a table whose changed rows cannot be identified; otherwise
        ///   as `StoreCore.read`.
        private func check() async throws -> Bool {
            let tables = changes.tables
            do {
                try await changes.core.read { tx in
                    for table in tables { _ = try KeyedTable(table, tx.connection()) }
                }
                return true
            } catch let error as StoreError where error.code == .suspended {
                return false
            }
        }
    }
}
