/// The reference from a connection's list to a statement, until the statement ends.
///
/// It is not a weak reference. Counting the references to an object with weak ones takes some
/// eighty instructions each time, and a lookup by key counts its statement's references.
final class StatementLink {
    /// Proof that it never dangles: only the statement sets it. The statement clears it when it is
    /// finalized or at the start of its deinit. Until then connection, link and statement belong to
    /// one thread at a time.
    unowned(unsafe) var statement: Statement?
}

/// Links to statements, of which those that have ended are swept out now and then.
struct StatementLinks {
    private var links: [StatementLink] = []
    private var countToSweep = 64

    /// The statements that have not ended, in the order in which they were added.
    var live: some Sequence<Statement> { links.lazy.compactMap(\.statement) }

    /// - Complexity: O(1) on average.
    mutating func add(_ statement: Statement) {
        if links.count >= countToSweep {
            links.removeAll { $0.statement == nil }
            countToSweep = max(64, links.count * 2)
        }
        links.append(statement.link)
    }

    /// Forgets all of them, and returns those that have not ended. The caller finalizes them after
    /// this call, because code of the program that runs meanwhile may add others.
    mutating func removeAll() -> [Statement] {
        defer { links.removeAll() }
        return Array(live)
    }
}
