// Looking up many keys in the order in which the file has them.

extension RecordTable {
    /// The records with these keys, in their order, looked up in that of the file.
    func find<R: Record>(
        _ type: R.Type, keys: [Value], _ connection: Connection
    ) throws -> [R] {
        let statement = try findStatement(connection)
        let found = try [R](unsafeUninitializedCapacity: keys.count) { memory, count in
            guard let start = memory.baseAddress else { return }
            var isFound = [Bool](repeating: false, count: keys.count)
            // After an error too: the array frees what was made.
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
        // Where most keys have none, memory for all of them is not kept.
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
        // Most keys are integers, which are compared many times faster.
        guard integers.count == count else {
            return indices.sorted { self[$0].isStored(before: self[$1]) }
        }
        return zip(integers, indices).sorted { $0.0 < $1.0 }.map(\.1)
    }
}

extension UnsafeMutableBufferPointer {
    /// Moves what is initialised to the front, in its order.
    ///
    /// - Parameter isInitialized: Of each place, whether something is there.
    /// - Returns: How much that is.
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
    /// The order of SQLite's indexes: numbers, texts by their UTF-8, blobs.
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
