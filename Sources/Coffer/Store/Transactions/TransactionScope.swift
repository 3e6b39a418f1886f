import Synchronization

/// The state of a running transaction; opaque to users.
///
/// It ends with its body. Every verb asks it for the connection. It enforces the rules that the
/// compiler cannot: only the innermost open savepoint may work, and a cancelled task stops between
/// two statements.
final class TransactionScope {
    private let transactionConnection: Connection
    /// The connection's handle, which stays the same while its transaction is open. It is `nil` if
    /// the connection was not open yet: then each verb asks the connection.
    private var handle: Handle?
    private let stop: StopSignal
    private let cancellation: Cancellation?
    private let isWholeRun: Bool
    /// Depth of the innermost open savepoint: 0 for the transaction, 1 for a savepoint in it, ….
    private(set) var level = 0
    private var isEnded = false
    /// Why the transaction must not commit although its body returned.
    private var refusal: StoreError?
    /// The depths of the savepoints that are to be undone at their end.
    private var undoneLevels: Set<Int> = []
    /// The statements that the body has prepared; `nil` if it has prepared none.
    private var statements: BodyStatements?
    /// The work to run after the commit.
    private(set) var afterCommit = AfterCommit()

    /// Thrown at the end of a savepoint that asked to be undone, and caught outside of it.
    struct Undone: Error {}

    /// Begins the scope of one body on the connection; it lasts until `end()`.
    ///
    /// - Parameters:
    ///   - stop: Says whether the body must end; its reason is then thrown by the next verb.
    ///   - cancellation: The cancellation of the body's task; `nil` without a task.
    ///   - isWholeRun: Whether `stop` begins and ends with this body. Otherwise its owner does
    ///     that.
    init(
        _ connection: Connection, stop: StopSignal, cancellation: Cancellation?,
        isWholeRun: Bool = true
    ) {
        transactionConnection = connection
        handle = try? connection.current()
        self.stop = stop
        self.cancellation = cancellation
        self.isWholeRun = isWholeRun
        if isWholeRun { stop.begin(connection.interruptHandle) }
    }

    /// Runs the body of the transaction, and returns what it returns.
    ///
    /// - Throws: What `body` throws. If `body` returned although one of its verbs was refused
    ///   because it must stop, the reason of that refusal. If it returned although it was
    ///   cancelled, `.cancelled`: one of its statements may have been interrupted, and `body` may
    ///   have ignored that error.
    func run<T>(_ body: () throws -> T) throws -> T {
        let value = try body()
        if let refusal { throw refusal }
        if let reason = cancellation?.reason { throw reason }
        return value
    }

    /// Replaces the error of an interrupt by the reason for the interrupt. An interrupt appears as
    /// the end of a statement (`.cancelled`) or of the whole transaction (`.rolledBack`).
    ///
    /// - Returns: The reason why the body must stop, if there is one and the error has one of these
    ///   codes; otherwise the error itself.
    func explained(_ error: any Error) -> any Error {
        guard let known = error as? StoreError, [.cancelled, .rolledBack].contains(known.code)
        else { return error }
        return stop.reason ?? cancellation?.reason ?? error
    }

    /// The connection, for the savepoint at this depth; 0 is the transaction itself.
    ///
    /// - Throws: `.misuse` if an inner savepoint is open or the body has ended; the reason if the
    ///   body must stop (`.cancelled`, `.suspended`, `.snapshotExpired`); `.rolledBack` if SQLite
    ///   ended the transaction by itself.
    func connection(level: Int) throws(StoreError) -> Connection {
        // The fast path: usually all that must be checked before a verb.
        if !isEnded, level == self.level, !stop.hasReason, cancellation?.isCancelled != true,
            handle?.isFreeInTransaction == true
        {
            return transactionConnection
        }
        return try checkedConnection(level: level)
    }

    /// Does what `connection(level:)` does, without its fast path, and remembers a reason to stop
    /// as `refusal`.
    ///
    /// - Throws: As `connection(level:)`.
    @inline(never)
    private func checkedConnection(level: Int) throws(StoreError) -> Connection {
        guard !isEnded else {
            throw StoreError(
                .misuse, "the transaction has ended", hint: "Use it only inside its body.")
        }
        guard level == self.level else {
            throw StoreError(
                .misuse, "an inner savepoint of this transaction is open",
                hint: "Use the transaction that the innermost body was given.")
        }
        if let reason = stop.reason ?? cancellation?.reason {
            // The body may ignore this error and return with half of its work done.
            refusal = reason
            throw reason
        }
        guard try transactionConnection.current().isInTransaction else {
            throw Connection.rolledBack(cause: nil)
        }
        return transactionConnection
    }

    /// Runs `body` one level deeper, in a savepoint, and returns what it returns. The savepoint is
    /// undone if `body` throws or asked for it by `undo(level:)`; work for after the commit is then
    /// dropped.
    ///
    /// - Throws: What `body` throws; the errors of `connection(level:)` and of the savepoint.
    func inSavepoint<T>(level: Int, _ body: (_ level: Int) throws -> T) throws -> T {
        let connection = try connection(level: level)
        let count = afterCommit.count
        var undone: T?
        do {
            return try connection.savepoint {
                self.level += 1
                defer {
                    statements?.end(from: self.level)
                    self.level -= 1
                }
                let value = try body(self.level)
                if isUndone(level: self.level) {
                    undone = value
                    throw Undone()
                }
                return value
            }
        } catch {
            afterCommit.cut(to: count)
            undoneLevels.remove(level + 1)
            if error is Undone, let undone { return undone }
            throw error
        }
    }

    /// Marks the transaction or savepoint at this depth: it is undone when its body returns.
    ///
    /// - Throws: As `connection(level:)`.
    func undo(level: Int) throws(StoreError) {
        _ = try checkedConnection(level: level)
        undoneLevels.insert(level)
    }

    func isUndone(level: Int) -> Bool { undoneLevels.contains(level) }

    /// Keeps work to run once the whole transaction is durable.
    ///
    /// - Throws: As `connection(level:)`.
    func afterCommit(level: Int, _ work: @escaping @Sendable () -> Void) throws(StoreError) {
        _ = try checkedConnection(level: level)
        afterCommit.append(work)
    }

    /// Runs `work` with the reason when the body must stop, for example because the store is
    /// suspended. See `StopSignal.whenStopped(_:)`.
    func whenStopped(_ work: @escaping @Sendable (StoreError) -> Void) { stop.whenStopped(work) }

    /// Ends a statement with the body of the savepoint at this depth.
    func keep(_ statement: Statement, level: Int) {
        let kept = statements ?? BodyStatements()
        kept.add(statement, level: level)
        statements = kept
    }

    func end() {
        statements?.end(from: 0)
        isEnded = true
        handle = nil
        if isWholeRun { stop.end() }
    }
}

/// Statements that end with the body that has prepared them, or before it when the body drops them.
/// An object, so that a body without any pays nothing for them.
private final class BodyStatements {
    /// By the depth of the savepoint: 0 for the transaction itself.
    private var links: [StatementLinks] = []

    func add(_ statement: Statement, level: Int) {
        while links.count <= level { links.append(StatementLinks()) }
        links[level].add(statement)
    }

    /// Finalizes the statements of savepoints at this depth and below.
    func end(from level: Int) {
        while links.count > level {
            var last = links.removeLast()
            for statement in last.removeAll() { statement.finalize() }
        }
    }
}
