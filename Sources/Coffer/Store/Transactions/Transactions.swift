/// Operations of both reads and writes, on a consistent view of the store.
///
/// Other parts of Coffer add their verbs to it: `rows(_:)` here, `fetch(_:)` for records, `get` for
/// buckets. Write functions over both kinds as `func titles(_ tx: borrowing some Reading &
/// ~Copyable) throws -> [String]`.
public protocol Reading: ~Copyable {
    /// What the verbs use; opaque.
    var access: TransactionAccess { get }
}

/// Permission to use the connection of a running transaction; opaque.
public struct TransactionAccess {
    let scope: TransactionScope
    /// The savepoint depth: 0 for the transaction itself.
    let level: Int
    /// Whether changes are refused.
    let isReadOnly: Bool

    /// The connection of the transaction.
    ///
    /// - Throws: As `TransactionScope.connection(level:)`.
    func connection() throws(StoreError) -> Connection {
        try scope.connection(level: level)
    }
}

/// A transaction that reads: one snapshot of the store, from its first read to its end.
///
/// It changes nothing, even inside a write.
public struct ReadTransaction: ~Copyable, Reading {
    /// What the verbs use; opaque.
    public let access: TransactionAccess

    init(scope: TransactionScope, level: Int) {
        access = TransactionAccess(scope: scope, level: level, isReadOnly: true)
    }
}

/// A transaction that reads and writes: returned means durable, thrown means nothing happened.
public struct WriteTransaction: ~Copyable, Reading {
    /// What the verbs use; opaque.
    public let access: TransactionAccess

    init(scope: TransactionScope, level: Int) {
        access = TransactionAccess(scope: scope, level: level, isReadOnly: false)
    }
}

extension Reading where Self: ~Copyable {
    /// The connection of the transaction.
    ///
    /// - Throws: As `TransactionScope.connection(level:)`.
    func connection() throws(StoreError) -> Connection {
        try access.connection()
    }

    var isReadOnly: Bool { access.isReadOnly }

    /// All rows of one SELECT.
    ///
    /// ```swift
    /// let rows = try tx.rows("SELECT title FROM note WHERE author = \(author)")
    /// ```
    ///
    /// - Parameter sql: One statement; `\( )` binds and never splices.
    /// - Returns: The rows, in the order of the SQL.
    /// - Throws: `StoreError` `.sql` if the SQL cannot be compiled or run; `.damaged` if a page
    ///   fails authentication; `.readOnly` for a change in a read; `.misuse` for SQL that would end
    ///   the transaction or change the connection, or if an inner savepoint is open or the body has
    ///   ended; `.cancelled` if the task was cancelled; `.rolledBack` if SQLite ended the
    ///   transaction.
    /// - Complexity: O(*rows*) memory.
    public func rows(_ sql: SQL) throws -> [Row] {
        try connection().rows(sql, isReadOnly: isReadOnly)
    }

    /// The first row of one SELECT, `nil` if there is none.
    ///
    /// - Throws: As `rows(_:)`.
    public func firstRow(_ sql: SQL) throws -> Row? {
        try connection().firstRow(sql, isReadOnly: isReadOnly)
    }
}

extension WriteTransaction {
    /// Runs one statement to its end; rows, if any, are dropped.
    ///
    /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed; else 0.
    /// - Throws: `StoreError` `.constraint` if a constraint refuses the change; `.full` if the disk
    ///   is full; `.io` if the file cannot be read or written; otherwise as `rows(_:)`.
    @discardableResult
    public func execute(_ sql: SQL) throws -> Int {
        try connection().execute(sql)
    }

    /// Runs `body` in a savepoint of the transaction: throwing undoes only the savepoint.
    ///
    /// ```swift
    /// try? tx.savepoint { part in try part.insert(note) }
    /// ```
    ///
    /// While `body` runs, only the transaction it is given can be used; using the outer one does
    /// not compile.
    ///
    /// - Returns: What `body` returns. It is durable when the whole transaction is.
    /// - Throws: What `body` throws, after its savepoint is undone; `StoreError` `.misuse` if an
    ///   inner savepoint is open or the body has ended, `.cancelled` if the task was cancelled,
    ///   `.rolledBack` if SQLite ended the whole transaction (full disk, I/O error, ON CONFLICT
    ///   ROLLBACK).
    @discardableResult
    public mutating func savepoint<T>(
        _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        let scope = access.scope
        return try scope.inSavepoint(level: access.level) { level in
            var inner = WriteTransaction(scope: scope, level: level)
            return try body(&inner)
        }
    }

    /// Undoes this transaction, or this savepoint: not now, but when its body returns.
    ///
    /// ```swift
    /// let price = try store.write { tx in      // what would it cost?
    ///     try tx.execute("UPDATE …")
    ///     try tx.rollback()
    ///     return try total(tx)
    /// }
    /// ```
    ///
    /// The body's value is returned as always, and no error is thrown.
    ///
    /// - Throws: `StoreError` `.misuse` if an inner savepoint is open or the body has ended;
    ///   `.cancelled` if the task was cancelled; `.rolledBack` if SQLite ended the transaction.
    public func rollback() throws {
        try access.scope.undo(level: access.level)
    }

    /// Runs `work` once the whole transaction is durable, right before `write` returns. It never
    /// runs if the transaction, or the savepoint that asks for it, is undone.
    ///
    /// Work runs outside the transaction, in the order of the calls: on the caller's thread, or in
    /// its task.
    ///
    /// - Throws: `StoreError` `.misuse` if an inner savepoint is open or the body has ended;
    ///   `.cancelled` if the task was cancelled; `.rolledBack` if SQLite ended the transaction.
    public func afterCommit(_ work: @escaping @Sendable () -> Void) throws {
        try access.scope.afterCommit(level: access.level, work)
    }
}
