import CSQLCipher

// Removing the rows of many keys, a few hundred in each run of one statement.

extension WriteTransaction {
    /// Removes the rows with these keys, in any order; returns how many keys had a row.
    func deleteEach<R: Record, S: Sequence>(
        _ type: R.Type, keys: S
    ) throws -> Int where S.Element: ValueConvertible {
        if let count = try keys.withIntegers({ try deleteEach(type, integers: $0) }) ?? nil {
            return count
        }
        var count = 0
        var rest = keys.makeIterator()
        while let first = rest.next() {
            let table = try RecordTable.of(type, connection())
            var block = KeyBlock()
            block.fill(first, &rest, table)
            // Making the keys may have changed the schema.
            count += try delete(block.keys, RecordTable.of(type, connection()))
            if let failure = block.failure { throw failure }
        }
        return count
    }

    /// As `deleteEach(_:keys:)`; `nil` if the column needs its keys in another form.
    private func deleteEach<R: Record>(
        _ type: R.Type, integers keys: UnsafeBufferPointer<Int64>
    ) throws -> Int? {
        guard !keys.isEmpty else { return 0 }
        let table = try RecordTable.of(type, connection())
        guard table.integerKeyParameter > 0 else { return nil }
        var count = 0
        for start in stride(from: 0, to: keys.count, by: KeyBlock.maximumCount) {
            let end = Swift.min(start + KeyBlock.maximumCount, keys.count)
            let block = UnsafeBufferPointer(rebasing: keys[start..<end])
            let isMany = block.count >= RecordTable.leastKeysAtOnce
            if isMany, let statement = try table.manyDeletion(connection()) {
                count += try delete(KeyList(integers: block), table, statement) {
                    .integer(block[$0])
                }
            } else {
                for key in block where try delete(.integer(key), table) { count += 1 }
            }
        }
        return count
    }

    /// Removes the rows with these keys, which are as `RecordTable.key(_:)` returns them.
    private func delete(_ keys: [Value], _ table: RecordTable) throws -> Int {
        var count = 0
        var start = 0
        if keys.count >= RecordTable.leastKeysAtOnce,
            let statement = try table.manyDeletion(connection())
        {
            let stored = table.storedKeys(keys)
            count = try delete(KeyList(stored), table, statement) { keys[$0] }
            start = stored.count
        }
        // The first of them may be a key that the column refuses: a single deletion explains it.
        for key in keys[start...] where try delete(key, table) { count += 1 }
        return count
    }

    /// Removes the rows of a list.
    ///
    /// - Parameter key: The key at a place of the list, as `RecordTable.key(_:)` returns it.
    private func delete(
        _ list: KeyList, _ table: RecordTable, _ statement: Statement, key: (Int) -> Value
    ) throws -> Int {
        // The statement would keep the last keys in memory.
        defer { statement.forgetArguments() }
        var (count, start) = (0, 0)
        while list.count - start >= RecordTable.leastKeysAtOnce {
            let end = Swift.min(start + RecordTable.mostKeysAtOnce, list.count)
            let deleted = try table.delete(start..<end, of: list, statement, connection())
            guard let deleted else {
                // A single deletion explains why, after those of the keys before it.
                for index in 0..<list.askedCount where try delete(key(index), table) { count += 1 }
                return count
            }
            count += deleted
            start = end
        }
        for index in start..<list.count where try delete(key(list.places[index]), table) {
            count += 1
        }
        return count
    }

    private func delete(_ key: Value, _ table: RecordTable) throws -> Bool {
        try table.delete(key: key, connection())
    }
}

/// Keys that are sorted together.
private struct KeyBlock {
    /// So many keys take little memory, and are mostly enough to read each page once.
    static let maximumCount = 10_000
    private static let maximumByteCount = 1 << 20

    private(set) var keys: [Value] = []
    /// The error of the first key that has no value.
    private(set) var failure: StoreError?

    /// Takes keys until the block is full.
    mutating func fill<I: IteratorProtocol>(
        _ first: I.Element, _ rest: inout I, _ table: RecordTable
    ) where I.Element: ValueConvertible {
        var next = Optional(first)
        var byteCount = 0
        while let key = next {
            do throws(StoreError) {
                keys.append(try table.key(key))
            } catch {
                failure = error
                return
            }
            switch keys[keys.count - 1] {
            case .text(let text): byteCount += text.utf8.count
            case .blob(let bytes): byteCount += bytes.count
            case .null, .integer, .real: break
            }
            guard keys.count < Self.maximumCount, byteCount < Self.maximumByteCount else { return }
            next = rest.next()
        }
    }
}

extension RecordTable {
    /// One run of `manyDeletion` costs as much as this number of keys saves.
    static var leastKeysAtOnce: Int { 100 }

    /// The number of parameters of `manyDeletion`.
    ///
    /// SQLite first sorts the keys of a run in memory. The memory costs as much to make as deleting
    /// ten rows. More keys save little then.
    static var mostKeysAtOnce: Int { 250 }

    /// Removes the rows of some keys of a list, and returns how many there were; `nil` if a key
    /// cannot be bound: then no row is removed.
    ///
    /// - Throws: Errors of the statement, which may have removed some of the rows.
    func delete(
        _ range: Range<Int>, of list: KeyList, _ statement: Statement, _ connection: Connection
    ) throws(StoreError) -> Int? {
        guard (try? statement.bind(range, of: list)) != nil else { return nil }
        do throws(StoreError) {
            try statement.runToEnd()
        } catch {
            throw try explain(error, connection, isWriting: true)
        }
        return Int(coffer_changes(statement.handle.db))
    }

    /// The first keys as their column stores them, up to one that it refuses.
    func storedKeys(_ keys: [Value]) -> [Value] {
        var stored: [Value] = []
        stored.reserveCapacity(keys.count)
        for key in keys {
            guard let value = try? encoder.checked(key: key, at: plan.keyPositions[0]) else {
                break
            }
            stored.append(value)
        }
        return stored
    }

    // MARK: Preparing

    /// The DELETE of the rows of `mostKeysAtOnce` keys; `nil` if only deleting them one by one is
    /// certain to be the same.
    ///
    /// A key has one row at most, so the number of rows is that of the keys that had one. Nothing
    /// runs between two rows or refuses one, so their order and the statement's end do not matter.
    ///
    /// - Throws: Errors of reading the schema and of compiling.
    func manyDeletion(_ connection: Connection) throws(StoreError) -> Statement? {
        let handle = try connection.current()
        // A deleted row has no key that an observer could read.
        guard handle.touchObserver?.wantedKey(of: plan.table) == nil else { return nil }
        if let deletingMany { return deletingMany }
        guard canDeleteMany else { return nil }
        return try makeManyDeletion(handle, connection)
    }

    @inline(never)
    private func makeManyDeletion(
        _ handle: Handle, _ connection: Connection
    ) throws(StoreError) -> Statement? {
        // Foreign keys that are off now may be on in the next transaction.
        guard handle.maximumArgumentCount >= Self.mostKeysAtOnce,
            try handle.firstInteger("PRAGMA foreign_keys") != 0
        else { return nil }
        canDeleteMany = false
        guard plan.keyPositions.count == 1, try RecordSchema(plan, connection).hasOneRowForEachKey()
        else { return nil }
        do throws(StoreError) {
            // A deletion of two keys runs the same triggers, foreign keys and functions as one of
            // 250, and EXPLAIN of it is shorter.
            let short = try connection.compile(plan.deleteManySQL(2), persistent: false)
            defer { short.finalize() }
            let sql = plan.deleteManySQL(Self.mostKeysAtOnce)
            guard try short.footprint(on: connection).changesRowsAlone,
                try !readsWholeTable(sql, connection)
            else { return nil }
            deletingMany = try connection.compile(sql, persistent: true)
        } catch {
            // A single deletion explains what the table lacks.
            guard error.code == .sql else { throw try explain(error, connection, isWriting: true) }
        }
        canDeleteMany = deletingMany != nil
        return deletingMany
    }
}

extension Statement {
    /// Binds some keys of a list; the other arguments are NULL.
    ///
    /// - Throws: As `bind(_:)` of all arguments.
    fileprivate func bind(_ range: Range<Int>, of list: KeyList) throws(StoreError) {
        let raw = try pointer()
        try endRun()
        if range.count < parameterCount { sqlite3_clear_bindings(raw) }
        if let integers = list.integers {
            for (index, place) in range.enumerated() {
                let code = sqlite3_bind_int64(raw, Int32(index + 1), integers[place])
                guard code == SQLITE_OK else { throw bindingFailure(code) }
            }
        } else {
            for (index, place) in range.enumerated() {
                try bindArgument(list.values[place], to: raw, at: Int32(index + 1))
            }
        }
    }
}
