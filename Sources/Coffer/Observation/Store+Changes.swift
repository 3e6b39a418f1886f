extension Store {
    /// What commits insert, update and delete in these tables, row by row.
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
    /// Every commit is one event, in the order of the commits, and tells each row once: what became
    /// of it from before the commit to after it, be it by a statement, a trigger, a foreign key,
    /// REPLACE or a DELETE of all rows. What was rolled back, or undone by a savepoint or by a
    /// failed statement, is not told.
    ///
    /// Where rows cannot be told one by one, there is a `.rescan` with the reason, never silence:
    /// after commits of other processes, changes of the schema, and for a loop that falls behind.
    /// Now and then one comes although nothing changed.
    ///
    /// Observing begins with the loop: first begin it, then read what there is. While it lasts, a
    /// write pays for each row of these tables with an insert into memory and a look at each of
    /// the table's unique keys. The loop keeps the store open, and is ended
    /// by leaving it or by cancelling its task.
    ///
    /// The loop throws `StoreError` `.closed` when the store is closed; `.cancelled`;
    /// `.unsupported` for a view, a virtual table, a primary key of more than 16 columns, or
    /// columns that hide every name of the row id. A table that does not exist may come later.
    ///
    /// - Parameters:
    ///   - tables: Their names; any case of ASCII letters, as in SQL.
    ///   - waitingRowCountMax: How many rows may wait for the loop; beyond, it gets one `.rescan`
    ///     in their place.
    /// - Complexity: O(*waitingRowCountMax*) memory.
    public func changes(
        in tables: String..., waitingRowCountMax: Int = 10_000
    ) -> ObservedChanges {
        ObservedChanges(core: core, tables: tables, waitingRowCountMax: waitingRowCountMax)
    }

    /// What commits insert, update and delete in the table of a record type, row by row.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - waitingRowCountMax: As for tables by name, which also says all else.
    public func changes<R: Record>(
        in type: R.Type, waitingRowCountMax: Int = 10_000
    ) -> ObservedChanges {
        changes(in: R.table, waitingRowCountMax: waitingRowCountMax)
    }

    /// What commits insert, update and delete in a bucket, by key.
    ///
    /// - Parameters:
    ///   - bucket: The bucket; a change's key is its key.
    ///   - waitingRowCountMax: As for tables by name, which also says all else.
    public func changes<K, V>(
        in bucket: Bucket<K, V>, waitingRowCountMax: Int = 10_000
    ) -> ObservedChanges {
        changes(in: bucket.table, waitingRowCountMax: waitingRowCountMax)
    }
}

/// What commits change, one after the other. See `Store.changes(in:waitingRowCountMax:)`.
public struct ObservedChanges: AsyncSequence, Sendable {
    let core: StoreCore
    let tables: [String]
    let waitingRowCountMax: Int

    /// Begins to observe: every commit whose write begins from now on counts.
    public func makeAsyncIterator() -> Iterator {
        Iterator(loop: Loop(self))
    }

    /// One loop over the changes.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: Loop

        /// Waits for the next event; `nil` after an error was thrown.
        ///
        /// - Throws: As `Store.changes(in:waitingRowCountMax:)` says.
        public func next() async throws -> ChangeEvent? {
            try await loop.next()
        }
    }

    /// Stops to observe when the loop lets it go.
    fileprivate final class Loop {
        private let changes: ObservedChanges
        private let queue: ChangeQueue
        private var isChecked = false
        private var hasFailed = false

        init(_ changes: ObservedChanges) {
            self.changes = changes
            queue = ChangeQueue(
                tables: TableSet(Set(changes.tables.map(\.asciiLowercased))),
                rowCountMax: Swift.max(1, changes.waitingRowCountMax))
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
                throw error
            }
        }

        /// - Returns: `false` while the store is suspended: its end is an event.
        /// - Throws: `.unsupported` for what has no rows that can be told.
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
