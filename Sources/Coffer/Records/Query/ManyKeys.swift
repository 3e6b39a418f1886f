// Looking up many keys in the order in which the file has them.

extension RecordTable {
    /// The records with these keys, in the order of the keys. Lookups are in the file's order.
    func find<R: Record, K: ValueConvertible>(
        _ type: R.Type, keys: some Sequence<K>, _ connection: Connection
    ) throws -> [R] {
        _ = try plan.singleKey(for: "find")
        if integerKeyParameter > 0, let list = keys.integerKeys(), list.count > Self.fewKeys,
            let statement = try joinStatement(connection)
        {
            return try find(type, list, statement, connection)
        }
        let values = try keys.map { try key($0) }
        guard values.count > Self.fewKeys, let statement = try joinStatement(connection) else {
            return try findEach(type, values, connection)
        }
        return try find(type, keyList(values), statement, connection)
    }

    /// Up to this number, single lookups are faster than a join.
    private static var fewKeys: Int { 4 }

    private func findEach<R: Record>(
        _ type: R.Type, _ keys: [Value], _ connection: Connection
    ) throws -> [R] {
        guard let statement = try findStatement(connection) else { return [] }
        return try placed(type, count: keys.count) { start, isFound throws(StoreError) in
            for index in KeyList(keys).placesInOrder() {
                try bind(key: keys[index], to: statement)
                defer { statement.rewind() }
                do throws(StoreError) {
                    isFound[index] = try decoder.first(into: start + index, statement)
                } catch {
                    throw try explain(error, connection)
                }
            }
        }
    }

    /// All keys in one run of one statement, without binding, reset and first step for each.
    private func find<R: Record>(
        _ type: R.Type, _ list: KeyList, _ statement: Statement, _ connection: Connection
    ) throws -> [R] {
        let collects = try decoder.collects(on: connection)
        return try placed(type, count: list.askedCount) { start, isFound throws(StoreError) in
            do throws(StoreError) {
                if collects {
                    try decoder.collect(into: start, &isFound, list, statement)
                } else {
                    try decoder.decode(into: start, &isFound, list, statement)
                }
            } catch {
                throw try explain(error, connection)
            }
        }
    }

    /// The values that `make` makes in uninitialised memory, in their order. The array frees them
    /// after an error, too.
    private func placed<R: Record>(
        _ type: R.Type, count expectedCount: Int,
        _ make: (UnsafeMutablePointer<R>, inout [Bool]) throws(StoreError) -> Void
    ) throws -> [R] {
        let found = try [R](unsafeUninitializedCapacity: expectedCount) { memory, count in
            guard let start = memory.baseAddress else { return }
            var isFound = [Bool](repeating: false, count: expectedCount)
            // Must run after an error too, so that the array frees the records made so far.
            defer { count = memory.closeUp(isFound) }
            try make(start, &isFound)
        }
        // If most keys have no record, a copy frees the memory reserved for all of them.
        return found.count < expectedCount / 2 ? found.map { $0 } : found
    }

    /// The keys as the column stores them.
    ///
    /// - Throws: As `bind(key:to:)`, for each key.
    private func keyList(_ keys: [Value]) throws(StoreError) -> KeyList {
        var stored: [Value] = []
        stored.reserveCapacity(keys.count)
        for key in keys {
            stored.append(try encoder.checked(key: key, at: plan.keyPositions[0]))
        }
        return KeyList(stored)
    }

    // MARK: Preparing

    /// The SELECT that joins the table with `KeyTable`; `nil` if only single lookups are certain to
    /// be right.
    ///
    /// The scan's position tells which key a row belongs to. That is proven for a table: the keys
    /// are the outer loop of a CROSS JOIN, which SQLite never reorders
    /// (<https://www.sqlite.org/optoverview.html#manual_control_of_query_plans_using_cross_join>),
    /// and nothing sorts the rows. The ORDER BY of a view may become that of the join.
    private func joinStatement(_ connection: Connection) throws(StoreError) -> Statement? {
        if let joining { return joining }
        guard canJoin else { return nil }
        return try makeJoinStatement(connection)
    }

    @inline(never)
    private func makeJoinStatement(_ connection: Connection) throws(StoreError) -> Statement? {
        canJoin = try RecordSchema(plan, connection).isTableAlone()
        guard canJoin else { return nil }
        let collects = try decoder.collects(on: connection)
        do throws(StoreError) {
            joining = try prepareKeys(
                collects ? plan.collectJoinedSQL : plan.joinedSQL, connection)
        } catch {
            // A single lookup explains what the table lacks.
            guard error.code == .sql else { throw try explain(error, connection) }
        }
        canJoin = joining != nil
        return joining
    }

    /// - Returns: `nil` if an object of the file has the name of the keys' table, and hides it, or
    ///   if SQLite would not look each key up by an index.
    private func prepareKeys(
        _ sql: String, _ connection: Connection
    ) throws(StoreError) -> Statement? {
        guard try connection.readsKeyTable(), try !readsWholeTable(sql, connection) else {
            return nil
        }
        return try connection.compile(sql, persistent: true)
    }

    /// Whether SQLite would read the whole table for a statement that has keys.
    ///
    /// 1. It scans the table if ANALYZE has counted few rows in it, which may be many by now. A
    ///    single key is looked up all the same.
    /// 2. If the key has no index, it makes one of all rows for the join: in memory, and in an
    ///    order in which another of several rows with one key may come first. See
    ///    <https://www.sqlite.org/optoverview.html#automatic_query_time_indexes>.
    func readsWholeTable(_ sql: String, _ connection: Connection) throws(StoreError) -> Bool {
        let handle = try connection.current()
        // SQLite counts EXPLAIN of a write as a write, and an observer would record it.
        let observer = handle.touchObserver
        handle.touchObserver = nil
        defer { handle.touchObserver = observer }
        let plan = try connection.compile("EXPLAIN QUERY PLAN \(sql)", persistent: false)
        defer { plan.finalize() }
        while try plan.advance() {
            let step = try plan.column(3, as: String.self)
            let isScan = step.contains("SCAN") && !step.contains("VIRTUAL TABLE")
            if isScan || step.contains("AUTOMATIC") { return true }
        }
        return false
    }
}

extension Sequence {
    /// The elements as keys, if they are integers of 64 bits that are next to each other in memory.
    ///
    /// Making a `Value` of each would cost as much as a third of a lookup.
    fileprivate func integerKeys() -> KeyList? { withIntegers { KeyList(integers: $0) } }

    /// Calls `body` with the elements, if they are integers of 64 bits that are next to each other
    /// in memory; otherwise returns `nil`.
    func withIntegers<T>(_ body: (UnsafeBufferPointer<Int64>) throws -> T) rethrows -> T? {
        guard Element.self == Int64.self || Element.self == Int.self,
            MemoryLayout<Element>.size == MemoryLayout<Int64>.size
        else { return nil }
        return try withContiguousStorageIfAvailable { elements in
            // Both types have the same bits.
            try elements.withMemoryRebound(to: Int64.self) { try body($0) }
        }
    }
}

extension UnsafeMutableBufferPointer {
    /// Moves the initialised elements to the front, in their order.
    ///
    /// - Parameter isInitialized: Whether each element is initialised.
    /// - Returns: The number of initialised elements.
    func closeUp(_ isInitialized: [Bool]) -> Int {
        var count = 0
        for (index, isHere) in isInitialized.enumerated() where isHere {
            if index > count { initializeElement(at: count, to: moveElement(from: index)) }
            count += 1
        }
        return count
    }
}
