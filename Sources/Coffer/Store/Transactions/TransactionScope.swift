import Synchronization

/// The inside of a running transaction; opaque to users.
///
/// It outlives no body. Every verb asks it for the connection, and here the rules are kept that
/// the compiler cannot: the innermost open part alone may work, and a cancelled task stops between
/// two statements.
public final class TransactionScope {
    private let transactionConnection: Connection
    /// The connection's, which stays the same while its transaction is open; `nil` if it was not
    /// open yet: the connection is asked each time.
    private var handle: Handle?
    private let stop: StopSignal
    private let cancellation: Cancellation?
    private let isWholeRun: Bool
    /// Depth of the innermost open part: 0 for the transaction, 1 for a savepoint in it, ….
    private(set) var level = 0
    private var isEnded = false
    /// Why the transaction must not commit although its body returned.
    private var refusal: StoreError?
    /// The depths of the parts that are to be undone at their end.
    private var undoneLevels: Set<Int> = []
    /// What is to be done after the commit.
    private(set) var afterCommit = AfterCommit()

    /// Thrown at the end of a part that asked to be undone, and caught outside its savepoint.
    struct Undone: Error {}

    /// - Parameter isWholeRun: Whether what the signal stops begins and ends with this body.
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

    /// Runs the body of the transaction.
    ///
    /// - Throws: What it throws; why one of its verbs was refused, if it was told to stop.
    func run<T>(_ body: () throws -> T) throws -> T {
        let value = try body()
        if let refusal { throw refusal }
        return value
    }

    /// The error of the whole run: an interrupt shows as the end of a statement or of the whole
    /// transaction, and the caller wants to know what for.
    func explained(_ error: any Error) -> any Error {
        guard let known = error as? StoreError, [.cancelled, .rolledBack].contains(known.code)
        else { return error }
        return stop.reason ?? cancellation?.reason ?? error
    }

    /// The connection, for the part of the transaction at this depth.
    ///
    /// - Throws: `.misuse` if an inner part is open or the body has ended, `.cancelled`,
    ///   `.rolledBack` if SQLite ended the transaction by itself.
    func connection(level: Int) throws(StoreError) -> Connection {
        // All that mostly has to be asked before a verb.
        if !isEnded, level == self.level, !stop.hasReason, cancellation?.isCancelled != true,
            handle?.isFreeInTransaction == true
        {
            return transactionConnection
        }
        return try checkedConnection(level: level)
    }

    /// The same with the reason why not.
    @inline(never)
    private func checkedConnection(level: Int) throws(StoreError) -> Connection {
        guard !isEnded else {
            throw StoreError(
                .misuse, "the transaction has ended", hint: "Use it inside its body only.")
        }
        guard level == self.level else {
            throw StoreError(
                .misuse, "an inner part of this transaction is open",
                hint: "Use the transaction that the innermost body was given.")
        }
        if let reason = stop.reason ?? cancellation?.reason {
            // A body that goes on after this verb has done half of its work.
            refusal = reason
            throw reason
        }
        guard try transactionConnection.current().isInTransaction else {
            throw Connection.rolledBack(cause: nil)
        }
        return transactionConnection
    }

    /// Runs `body` one level deeper, in a savepoint.
    func inSavepoint<T>(level: Int, _ body: (_ level: Int) throws -> T) throws -> T {
        let connection = try connection(level: level)
        let count = afterCommit.count
        var undone: T?
        do {
            return try connection.savepoint {
                self.level += 1
                defer { self.level -= 1 }
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

    /// Marks the part at this depth: it is undone when its body returns.
    func undo(level: Int) throws(StoreError) {
        _ = try checkedConnection(level: level)
        undoneLevels.insert(level)
    }

    func isUndone(level: Int) -> Bool { undoneLevels.contains(level) }

    /// Remembers what to do once the whole transaction is durable.
    func afterCommit(level: Int, _ work: @escaping @Sendable () -> Void) throws(StoreError) {
        _ = try checkedConnection(level: level)
        afterCommit.append(work)
    }

    /// Runs `work` once the body is told to stop, as by a pause of the store.
    func whenStopped(_ work: @escaping @Sendable (StoreError) -> Void) { stop.whenStopped(work) }

    func end() {
        isEnded = true
        handle = nil
        if isWholeRun { stop.end() }
    }
}
