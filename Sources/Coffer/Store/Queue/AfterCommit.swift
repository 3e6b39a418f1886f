/// The work that a write wants done once it is durable.
struct AfterCommit: Sendable {
    private var work: [@Sendable () -> Void] = []

    var count: Int { work.count }

    mutating func append(_ next: @escaping @Sendable () -> Void) {
        work.append(next)
    }

    /// Keeps the first `count` pieces of work, and drops the later ones, which an undone savepoint
    /// added.
    mutating func cut(to count: Int) {
        work.removeSubrange(count...)
    }

    func run() {
        for next in work { next() }
    }
}
