import Synchronization

/// One encrypted file, or a database in memory, shared by any number of tasks and threads.
///
/// ```swift
/// let store = try await Store(path: "notes.db", key: .passphrase(text))
/// try await store.write { tx in try tx.insert(note) }
/// let notes = try await store.read { tx in try tx.fetch(Note.all) }
/// ```
///
/// Every verb has a synchronous and an `async` form. A synchronous body runs on the caller's
/// thread, an asynchronous one on one of Coffer's threads; neither may `await`. Writes run one
/// at a time, first in, first out. Reads run alongside them on their own connections, each on one
/// snapshot.
public final class Store: Sendable {
    let core: StoreCore

    init(core: StoreCore) {
        self.core = core
    }

    /// Opens or creates a store.
    ///
    /// A passphrase is derived once, however many connections are opened.
    ///
    /// - Parameters:
    ///   - path: The file. SQLite keeps `-wal` and `-shm` next to it while the store is open.
    ///   - key: The key of the file, or of the file to create. Never empty.
    ///   - mode: What to do about the file's existence.
    ///   - configuration: How to open it.
    /// - Throws: `StoreError` `.wrongKey` if the key does not open the file; `.notEncrypted` for a
    ///   plaintext SQLite database; `.notAStore` for something that cannot be a store, such as a
    ///   folder; `.truncated` for a file that is empty or shorter than its first page states;
    ///   `.damaged` if the key is right but the first page or the schema cannot be read, if only
    ///   the WAL or the journal of a missing file exists, or if it has another page size than the
    ///   file; `.needsNewerEngine` for a format that needs SQLCipher 4, `.needsUpgrade` for that of
    ///   SQLCipher 1 or 2; `.engine` if the linked library is not an SQLCipher that Coffer can use;
    ///   `.notFound` if `mode` creates no file and there is none; `.readOnly` if the file cannot be
    ///   written; `.busy` if another process holds the lock for longer than `busyTimeout`; `.full`,
    ///   `.io`, `.tooManyFiles`; `.unsupported` for a file with a plaintext header; `.alreadyOpen`
    ///   if this process has a store on the file; `.misuse` for an empty key, a raw key of a wrong
    ///   size, or a configured page size that the file does not have.
    public init(
        path: String, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) throws {
        core = try StoreCore(path: path, key: key, mode: mode, configuration: configuration)
    }

    /// Opens or creates a store without blocking a thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - path: The file. SQLite keeps `-wal` and `-shm` next to it while the store is open.
    ///   - key: The key of the file, or of the file to create. Never empty.
    ///   - mode: What to do about the file's existence.
    ///   - configuration: How to open it.
    /// - Throws: As the synchronous initialiser.
    public init(
        path: String, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) async throws {
        let key = KeyBox(key.copy())
        core = try await Self.offPool { () throws(StoreError) in
            try StoreCore(path: path, key: key.key, mode: mode, configuration: configuration)
        }
    }

    // MARK: Transactions

    /// Runs `body` in a transaction: returned means durable, thrown means nothing happened.
    ///
    /// Inside a write body of the same store, the call joins that transaction as a savepoint. A
    /// write may share its commit with other writes, see ``Configuration/GroupCommit``, and returns
    /// with them. So a body must not wait for anything that another caller of `write` may hold
    /// until that call returns: a lock, the main thread, a semaphore.
    ///
    /// - Parameters:
    ///   - mode: Which locks to take first. Only `.immediate` writes share a commit.
    ///   - timeout: How long to wait in the queue; `nil` waits indefinitely. The wait for another
    ///     process's lock is bounded by `Configuration.busyTimeout`.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    ///   - body: The work. Runs on this thread, once the queue admits it.
    /// - Returns: What `body` returns, after the commit.
    /// - Throws: What `body` throws, after the rollback; `StoreError` `.busy` after `timeout` or if
    ///   another process holds the lock; `.constraint`, `.full`, `.io` or `.damaged` if the work of
    ///   `body` could not be committed; `.rolledBack` if SQLite undid the transaction for another
    ///   write that shared it. Errors of a shared commit replace what `body` threw.
    ///   `.wouldDeadlock` in the body of another store, if the wait would close a cycle of waits;
    ///   `.closed`, `.suspended`; `.readOnly` for a store that was opened for reading only;
    ///   `.misuse` inside a read of the same store.
    @discardableResult
    public func write<T>(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        fileID: StaticString = #fileID, line: UInt = #line,
        _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        let caller = Caller(fileID: fileID, line: line)
        let request = WriteQueue.Request(mode: mode, timeout: timeout, caller: caller)
        if let tracer = core.tracer { return try core.write(tracedBy: tracer, request, body) }
        return try core.write(request, body)
    }

    /// Runs `body` in a transaction: returned means durable, thrown means nothing happened.
    ///
    /// A task that is cancelled while it waits in the queue never starts. A task that is cancelled
    /// inside its body is stopped at the next verb and undone.
    ///
    /// - Parameters:
    ///   - mode: Which locks to take first. Only `.immediate` writes share a commit.
    ///   - timeout: How long to wait in the queue; `nil` waits indefinitely.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    ///   - body: The work. Runs on one of Coffer's threads, once the queue admits it.
    /// - Returns: What `body` returns, after the commit.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func write<T: Sendable>(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        fileID: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> T
    ) async throws -> T {
        let caller = Caller(fileID: fileID, line: line)
        let request = WriteQueue.Request(mode: mode, timeout: timeout, caller: caller)
        if let tracer = core.tracer { return try await core.write(tracedBy: tracer, request, body) }
        return try await core.write(request, body)
    }

    /// Runs `body` in a transaction, for a body without a result.
    ///
    /// It does what the form with a result does. Swift chooses it where a closure's only expression
    /// has a result that may be discarded, such as the row id of `insert`:
    ///
    /// ```swift
    /// group.addTask { try await store.write { tx in try tx.insert(note) } }
    /// ```
    ///
    /// - Parameters:
    ///   - mode: Which locks to take first. Only `.immediate` writes share a commit.
    ///   - timeout: How long to wait in the queue; `nil` waits indefinitely.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    ///   - body: The work. Runs on one of Coffer's threads, once the queue admits it.
    /// - Throws: As the form with a result.
    public func write(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        fileID: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
    ) async throws {
        let caller = Caller(fileID: fileID, line: line)
        let request = WriteQueue.Request(mode: mode, timeout: timeout, caller: caller)
        if let tracer = core.tracer { return try await core.write(tracedBy: tracer, request, body) }
        try await core.write(request, body)
    }

    /// Runs `body` in a transaction, for a body without a result.
    ///
    /// - Parameters:
    ///   - mode: Which locks to take first. Only `.immediate` writes share a commit.
    ///   - timeout: How long to wait in the queue; `nil` waits indefinitely.
    ///   - fileID: The caller's file, for ``StoreStatistics/runningWrite``.
    ///   - line: The caller's line.
    ///   - body: The work. Runs on this thread, once the queue admits it.
    /// - Throws: As the form with a result.
    public func write(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        fileID: StaticString = #fileID, line: UInt = #line,
        _ body: (inout WriteTransaction) throws -> Void
    ) throws {
        let caller = Caller(fileID: fileID, line: line)
        let request = WriteQueue.Request(mode: mode, timeout: timeout, caller: caller)
        if let tracer = core.tracer { return try core.write(tracedBy: tracer, request, body) }
        try core.write(request, body)
    }

    /// Runs `body` on one snapshot of the store.
    ///
    /// Inside a body of the same store, `body` sees what that transaction sees.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for a connection; `Configuration.waitTimeout` for `nil`.
    ///   - body: The work. Runs on this thread.
    /// - Returns: What `body` returns, after every page that it read has passed authentication.
    /// - Throws: What `body` throws; `StoreError` `.damaged` if a page failed authentication,
    ///   `.busy` if no connection became free in time, `.snapshotExpired` if the read kept its
    ///   snapshot beyond the bounds of the configuration, `.wrongKey` if another process changed
    ///   the key: see `reopen(with:)`; `.wouldDeadlock` in the body of another store, if the wait
    ///   would close a cycle of waits; `.closed`, `.suspended`.
    public func read<T>(
        timeout: Duration? = nil, _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        if let tracer = core.tracer {
            return try core.read(tracedBy: tracer, timeout: timeout, body)
        }
        return try core.read(timeout: timeout, body)
    }

    /// Runs `body` on one snapshot of the store.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for a connection; `Configuration.waitTimeout` for `nil`.
    ///   - body: The work. Runs on one of Coffer's threads.
    /// - Returns: What `body` returns, after every page that it read has passed authentication.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func read<T: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> T {
        if let tracer = core.tracer {
            return try await core.read(tracedBy: tracer, timeout: timeout, body)
        }
        return try await core.read(timeout: timeout, body)
    }

    // MARK: Facts

    /// The file's absolute path; empty for a store without a file.
    public var path: String { core.pool.file?.location.path ?? "" }

    /// The file's cipher settings.
    public var profile: CipherProfile { core.pool.profile }

    /// The file's journal mode, as found or as configured; `memory` for a store without a file.
    public var journalMode: Configuration.JournalMode { core.pool.journalMode }

    /// What the store's connections do at this moment.
    public var statistics: StoreStatistics { core.statistics }

    /// How many writes wait in the queue behind the running one.
    var waitingWriteCount: Int { core.waitingWriteCount }

    private static let wholeStores = Gate(permitCount: 64)

    /// Runs blocking work on a thread that may block, and returns its result or throws its error.
    /// At most 64 such calls run at once. Use it for opening, closing and copying whole stores,
    /// which is rare. Work that many tasks may wait for has a `Gate`, where they hold no thread.
    static func offPool<T: Sendable, E: Error>(
        _ work: @escaping @Sendable () throws(E) -> T
    ) async throws(E) -> T {
        let order = ResumptionOrder()
        let held = HeldWork(work)
        let result = await withCheckedContinuation { continuation in
            wholeStores.run {
                // Runs once, so there is work. The work is released before the task resumes, which
                // may at once open what the work held.
                guard let result = held.take().map({ work in Result(catching: work) }) else {
                    return
                }
                order.mark()
                continuation.resume(returning: result)
            }
        }
        order.mark()
        return try result.get()
    }

    /// Runs blocking work as `offPool` does, and does not wait for it.
    static func inBackground(_ work: @escaping @Sendable () -> Void) {
        wholeStores.run(work)
    }

    /// Runs blocking work as `offPool` does, and tells it when the task is cancelled.
    ///
    /// - Throws: What `work` throws; `CancellationError` for its `.cancelled`.
    static func cancellableOffPool<T: Sendable>(
        _ work: @escaping @Sendable (Cancellation) throws -> T
    ) async throws -> T {
        let cancellation = Cancellation()
        do {
            return try await withTaskCancellationHandler {
                try await offPool { try work(cancellation) }
            } onCancel: {
                cancellation.cancel()
            }
        } catch {
            throw error.ofTask
        }
    }
}

/// Work that is released by the thread that runs it.
private final class HeldWork<T: Sendable, E: Error>: Sendable {
    typealias Work = @Sendable () throws(E) -> T

    private let work: Mutex<Work?>

    init(_ work: @escaping Work) {
        self.work = Mutex(work)
    }

    /// Removes and returns the work.
    ///
    /// - Returns: `nil` if it was taken before.
    func take() -> Work? {
        work.withLock { work in
            defer { work = nil }
            return work
        }
    }
}
