import CSQLCipher

/// Compiled statements by their SQL text; the least recently used one is evicted first.
///
/// A statement that a caller holds is never handed to a second caller: nested queries with the
/// same SQL get a statement each.
struct StatementCache {
    private struct Entry {
        let statement: Statement
        var lastUse: UInt64
    }

    let maximumCount: Int
    private var entries: [SQLText: Entry] = [:]
    private var clock: UInt64 = 0

    init(maximumCount: Int) {
        self.maximumCount = maximumCount
    }

    var count: Int { entries.count }

    /// A statement for the SQL text that nobody uses, from the cache or compiled by `compile`.
    ///
    /// - Parameter compile: `persistent` is false for a second statement of a text in use, which
    ///   the cache does not keep.
    /// - Throws: Errors of `compile`.
    /// - Complexity: O(1) for a cached text; otherwise the cost of compiling it.
    mutating func take(
        _ sql: String, compile: (_ persistent: Bool) throws(StoreError) -> Statement
    ) throws(StoreError) -> Statement {
        clock += 1
        let key = SQLText(sql)
        if let statement = entries[key]?.statement {
            // A nested use of the same text gets a separate statement, dropped when it ends.
            if statement.isTaken { return try compile(false) }
            entries[key]?.lastUse = clock
            return statement
        }
        let statement = try compile(true)
        // Control statements are rare, and some (VACUUM) must not linger.
        guard maximumCount > 0, !statement.isControl else { return statement }
        if entries.count >= maximumCount { evictOldest() }
        entries[key] = Entry(statement: statement, lastUse: clock)
        return statement
    }

    /// Forgets all statements; those in use live until their users release them.
    mutating func removeAll() {
        entries.removeAll()
    }

    /// O(*count*), and only when a new text meets a full cache: compiling costs far more.
    private mutating func evictOldest() {
        let oldest = entries.min { $0.value.lastUse < $1.value.lastUse }
        if let oldest { entries.removeValue(forKey: oldest.key) }
    }
}

/// A text that is compared byte for byte.
///
/// `String` counts texts as equal that differ in Unicode normalisation, but `'é'` and `'é'` are
/// two values to SQL.
struct SQLText: Hashable, Sendable {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    static func == (left: SQLText, right: SQLText) -> Bool {
        let isEqual = left.text.utf8.withContiguousStorageIfAvailable { left in
            right.text.utf8.withContiguousStorageIfAvailable { right in
                left.count == right.count
                    && coffer_is_equal(left.baseAddress, right.baseAddress, left.count)
            }
        }
        return isEqual.flatMap { $0 } ?? left.text.utf8.elementsEqual(right.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable {
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
        if isHashed == nil { for byte in text.utf8 { hasher.combine(byte) } }
    }
}
