// Looking up many keys in the order in which the file has them.

extension RecordTable {
    /// The records with these keys, in the order of the keys. Lookups are in the file's order.
    func find<R: Record>(
        _ type: R.Type, keys: [Value], _ connection: Connection
    ) throws -> [R] {
        guard let statement = try findStatement(connection) else { return [] }
        let found = try [R](unsafeUninitializedCapacity: keys.count) { memory, count in
            guard let start = memory.baseAddress else { return }
            var isFound = [Bool](repeating: false, count: keys.count)
            // Must run after an error too, so that the array frees the records made so far.
            defer { count = memory.closeUp(isFound) }
            for index in keys.orderInIndex() {
                try bind(key: keys[index], to: statement)
                defer { statement.rewind() }
                do throws(StoreError) {
                    isFound[index] = try decoder.first(into: start + index, statement)
                } catch {
                    throw try explain(error, connection)
                }
            }
        }
        // If most keys have no record, a copy frees the memory reserved for all of them.
        return found.count < keys.count / 2 ? found.map { $0 } : found
    }
}

extension [Value] {
    /// The positions of the keys, in the order in which an index has them.
    ///
    /// - Complexity: O(*n* log *n*).
    func orderInIndex() -> [Int] {
        let integers = compactMap { key -> Int64? in
            if case .integer(let integer) = key { integer } else { nil }
        }
        // Most keys are integers, and comparing integers alone is many times faster.
        guard integers.count == count else {
            return indices.sorted { self[$0].isStored(before: self[$1]) }
        }
        return zip(integers, indices).sorted { $0.0 < $1.0 }.map(\.1)
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

extension Value {
    /// The order of SQLite's indexes: NULL, numbers, texts by their UTF-8, blobs.
    fileprivate func isStored(before other: Value) -> Bool {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left < right
        case (.real(let left), .real(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.blob(let left), .blob(let right)): left.lexicographicallyPrecedes(right)
        default: rank < other.rank
        }
    }

    private var rank: Int {
        switch self {
        case .null: 0
        case .integer, .real: 1
        case .text: 2
        case .blob: 3
        }
    }
}
