import Synchronization

/// The inside of a running transaction; opaque to users.
///
/// It outlives no body. Every verb asks it for the connection, and here the rules are kept that
/// the compiler cannot: the innermost open part alone may work, and a cancelled task stops between
/// two statements.
public final class TransactionScope {
    private let transactionConnection: Connection
    private let cancellation: Cancellation?
    /// Depth of the innermost open part: 0 for the transaction, 1 for a savepoint in it, ….
    private(set) var level = 0
    private var isEnded = false
    /// Why the transaction must not commit although its body returned.
    private var refusal: StoreError?

    init(_ connection: Connection, cancellation: Cancellation?) {
        transactionConnection = connection
        self.cancellation = cancellation
    }

    /// The connection, for the part of the transaction at this depth.
    ///
    /// - Throws: `.misuse` if an inner part is open or the body has ended, `.cancelled`,
    ///   `.rolledBack` if SQLite ended the transaction by itself.
    func connection(level: Int) throws(StoreError) -> Connection {
        guard !isEnded else {
            throw StoreError(
                .misuse, "the transaction has ended", hint: "Use it inside its body only.")
        }
        guard level == self.level else {
            throw StoreError(
                .misuse, "an inner part of this transaction is open",
                hint: "Use the transaction that the innermost body was given.")
        }
        if let cancellation, cancellation.isCancelled {
            let error = StoreError(.cancelled, "the task was cancelled; its work is undone")
            // A body that goes on after this verb has done half of its work.
            refusal = error
            throw error
        }
        guard try transactionConnection.current().isInTransaction else {
            throw Connection.rolledBack(cause: nil)
        }
        return transactionConnection
    }

    /// Runs `body` one level deeper, in a savepoint.
    func inSavepoint<T>(level: Int, _ body: (_ level: Int) throws -> T) throws -> T {
        let connection = try connection(level: level)
        return try connection.savepoint {
            self.level += 1
            defer { self.level -= 1 }
            return try body(self.level)
        }
    }

    /// - Throws: `.cancelled` if a verb of the body was refused for it.
    func requireWhole() throws(StoreError) {
        if let refusal { throw refusal }
    }

    func end() {
        isEnded = true
    }
}

/// Set when the task of a body is cancelled; looked at between statements.
final class Cancellation: Sendable {
    private let flag = Atomic(false)

    var isCancelled: Bool { flag.load(ordering: .relaxed) }

    func cancel() {
        flag.store(true, ordering: .relaxed)
    }
}
