import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One connection to one encrypted file, comparable to FMDB's database object but hiding no damage.
///
/// ```swift
/// let connection = try Connection(path: "notes.db", key: .passphrase(text))
/// try connection.execute("CREATE TABLE IF NOT EXISTS note(title TEXT)")
/// try connection.transaction { try connection.execute("INSERT INTO note VALUES (\(title))") }
/// ```
///
/// Use it from one thread at a time (it is not `Sendable`). It never belongs to a `Store`: for many
/// tasks and threads use `Store`. The corresponding C type is `sqlite3`.
public final class Connection {
    let configuration: Configuration
    /// Where the database is.
    public let location: Location
    let mode: OpenMode
    /// The most bytes of decrypted pages that its handle keeps.
    var cacheByteCount: Int
    private(set) var state = State.unkeyed
    /// The cipher settings of a database without a file.
    private var privateProfile: CipherProfile?

    enum State {
        /// No key is set yet, and nothing is open.
        case unkeyed
        /// With the state of the file; `nil` for a database without a file and for an adopted
        /// handle.
        case open(Handle, OpenFile?)
        case closed
    }

    /// The reaction when another connection holds a lock; initially `Configuration.busyTimeout`.
    ///
    /// It can be set before the key, and holds for as long as the connection lives. On an adopted
    /// handle it takes effect once it is set.
    public var busyPolicy: BusyPolicy {
        didSet { if let handle { busyPolicy.install(on: handle) } }
    }
    /// Stops what this connection runs, from any thread.
    public let interruptHandle = InterruptHandle()
    var settings = HandleSettings()
    var cache: StatementCache
    /// Statements that must end before the handle may close.
    private(set) var statements = StatementLinks()
    var transactionState = TransactionState()
    /// The rules for SQL that runs on it; the same on every handle that it gets.
    private var scope = Authorizer.Scope.connection
    /// Objects that other parts of Coffer keep per connection, such as a record type's statements.
    private let attachments = Attachments()
    /// How many closures a store has run on it: see `Preparations`.
    var preparationCount = 0
    /// Called when an entry gets a time of expiry; only the writer of a store has it.
    var willExpire: (@Sendable (ExpiryWork) -> Void)?

    /// Creates a connection that opens with `setKey(_:)`.
    ///
    /// - Parameters:
    ///   - path: The file's path. Nothing is touched before the key is set.
    ///   - mode: Whether the file must exist, may be created, or is only read.
    ///   - configuration: How to open it.
    public convenience init(
        path: String, mode: OpenMode = .createIfMissing, configuration: Configuration = .init()
    ) {
        self.init(at: .file(path), mode: mode, configuration: configuration)
    }

    init(at location: Location, mode: OpenMode, configuration: Configuration) {
        self.location = location
        self.mode = mode
        self.configuration = configuration
        busyPolicy = .timeout(configuration.busyTimeout)
        cacheByteCount = configuration.maximumCacheByteCount
        cache = StatementCache(maximumCount: configuration.maximumStatementCount)
    }

    /// Opens a file with its key.
    ///
    /// - Throws: As `setKey(_:)`.
    public convenience init(
        path: String, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) throws {
        self.init(path: path, mode: mode, configuration: configuration)
        try setKey(key)
    }

    /// Creates a connection of a store, around an open handle whose key is known to fit.
    init(
        pooling state: OpenFile, mode: OpenMode, configuration: Configuration,
        cacheByteCount: Int
    ) {
        self.cacheByteCount = cacheByteCount
        location = .file(state.file.path)
        self.mode = mode
        self.configuration = configuration
        busyPolicy = .timeout(configuration.busyTimeout)
        self.state = .open(state.handle, state)
        cache = StatementCache(maximumCount: configuration.maximumStatementCount)
        scope = .body
        state.handle.authorizer.scope = .body
    }

    /// Creates the only connection of a store without a file, and opens an empty database with a
    /// random key.
    ///
    /// - Throws: Errors of `PrivateDatabase.open` and of the configuration's `prepare`.
    convenience init(
        pooling location: Location, configuration: Configuration
    ) throws(StoreError) {
        self.init(at: location, mode: .createIfMissing, configuration: configuration)
        scope = .body
        try openPrivate()
    }

    /// Creates a connection on a handle owned by someone else, whose database is known to be
    /// encrypted. Replaces the handle's authorizer, and runs the configuration's `prepare`.
    ///
    /// - Throws: Errors of `prepare`.
    init(adopting handle: Handle, configuration: Configuration) throws(StoreError) {
        cacheByteCount = configuration.maximumCacheByteCount
        location = .of(handle)
        mode = .mustExist
        self.configuration = configuration
        busyPolicy = .timeout(configuration.busyTimeout)
        cache = StatementCache(maximumCount: configuration.maximumStatementCount)
        state = .open(handle, nil)
        handle.authorizer.install(on: handle.db)
        try prepareHandle()
    }

    /// Opens or creates the file, checks that the key fits, and configures the connection.
    ///
    /// A passphrase is derived here (about 22 ms for SQLCipher 3's rounds, 100 ms for SQLCipher
    /// 4's); a raw key costs under 1 ms. If opening fails, the connection has no key, and `setKey`
    /// can be called again.
    ///
    /// - Parameter key: The key of the file, or of the file to make. Never empty.
    /// - Throws: `StoreError` `.wrongKey`, `.notEncrypted`, `.notAStore`, `.truncated`,
    ///   `.damaged`, `.needsNewerEngine`, `.needsUpgrade`, `.engine`, `.notFound`, `.readOnly`,
    ///   `.busy`, `.full`, `.io`, `.tooManyFiles`; `.unsupported` for a file with a plaintext
    ///   header; `.misuse` for an empty key or if a key was set before; `.closed` after `close()`.
    /// - Note: The corresponding C functions are `sqlite3_open_v2` and `sqlite3_key_v2`.
    public func setKey(_ key: borrowing StoreKey) throws {
        switch state {
        case .unkeyed: break
        case .open:
            throw StoreError(
                .misuse, "the key is set already", hint: "Use rekey(to:) to change it.")
        case .closed: throw Self.closed
        }
        guard case .file(let path) = location.kind else { throw Self.closed }
        var configuration = configuration
        if let timeout = busyPolicy.timeout { configuration.busyTimeout = timeout }
        let opening = try Opening(
            path: path, mode: mode, configuration: configuration,
            cacheByteCount: cacheByteCount)
        let opened = try opening.open(key: key)
        try begin(with: opened.handle, opened)
        try EngineNotice.log(to: configuration.logger)
    }

    func openPrivate() throws(StoreError) {
        let (handle, profile) = try PrivateDatabase.open(
            location, profile: configuration.profile, configuration: configuration,
            cacheByteCount: cacheByteCount)
        privateProfile = profile
        try begin(with: handle, nil)
        try EngineNotice.log(to: configuration.logger)
    }

    private func begin(with handle: Handle, _ file: OpenFile?) throws(StoreError) {
        handle.authorizer.scope = scope
        state = .open(handle, file)
        do throws(StoreError) {
            try prepareHandle()
        } catch {
            handle.close()
            state = .unkeyed
            throw error
        }
    }

    deinit {
        // Statements that others still hold must no longer use the connection.
        for statement in statements.removeAll() { statement.finalize() }
        handle?.close()
    }

    /// Ends all statements, rolls back an open transaction, and closes the file. Safe to call
    /// twice. Inside a function or trace of this connection it takes effect when the running
    /// statement has ended. The corresponding C function is `sqlite3_close_v2`.
    public func close() {
        finalizeStatements()
        handle?.close()
        state = .closed
    }

    /// Whether the connection can be used.
    public var isOpen: Bool {
        if case .open(let handle, _) = state { !handle.isClosed } else { false }
    }

    /// The file's cipher settings, once it is open.
    public var profile: CipherProfile? {
        if case .open(_, let file) = state { file?.profile ?? privateProfile } else { nil }
    }

    /// The id of the key that the file is open with.
    ///
    /// - Throws: `StoreError` `.unsupported` for a database that is not in a file that Coffer
    ///   opened; `.misuse` before the key is set, `.closed`.
    /// - Complexity: O(1).
    public func keyID() throws -> KeyID {
        try fileState().key.id()
    }

    /// The file's URL; `nil` for a database without a file.
    public var url: URL? { location.url }

    /// Whether a transaction is open, as SQLite itself knows it; Coffer's implicit ones do not
    /// count.
    public var isInTransaction: Bool {
        handle.map { $0.isInTransaction && !transactionState.isImplicit } ?? false
    }

    /// Row id of the last inserted row of this connection, 0 if there is none.
    /// The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 {
        handle.map { sqlite3_last_insert_rowid($0.db) } ?? 0
    }

    // MARK: Inside

    static let closed = StoreError(.closed, "the connection was closed")
    static let inCallback = StoreError(
        .misuse, "a function or trace of a connection may not use it",
        hint: "It receives its arguments. Compute everything else before the statement runs.")

    /// The open handle, `nil` if nothing is open.
    var handle: Handle? {
        if case .open(let handle, _) = state { handle } else { nil }
    }

    /// The open handle.
    ///
    /// - Throws: `.misuse` before the key is set, and inside a function or trace that a statement
    ///   of this connection runs; `.closed` after `close()`.
    func current() throws(StoreError) -> Handle {
        switch state {
        case .open(let handle, _):
            guard !handle.callback.isRunning else { throw Self.inCallback }
            return handle
        case .unkeyed:
            throw StoreError(.misuse, "no key is set", hint: "Call setKey(_:) first.")
        case .closed: throw Self.closed
        }
    }

    /// The open file with its handle, key and profile.
    ///
    /// - Throws: `.unsupported` for a database in memory, a temporary one, and an adopted handle;
    ///   otherwise as `current()`.
    func fileState() throws(StoreError) -> OpenFile {
        _ = try current()
        guard case .open(_, let file?) = state else {
            throw StoreError(.unsupported, "the database is not in a file that Coffer opened")
        }
        return file
    }

    /// The cipher settings of a database that Coffer opened.
    ///
    /// - Throws: `.unsupported` for a handle owned by someone else; otherwise as `current()`.
    func ownProfile() throws(StoreError) -> CipherProfile {
        _ = try current()
        guard let profile else {
            throw StoreError(
                .unsupported, "Coffer does not copy the pages of a handle that it did not open",
                hint: "Open the file with Connection(path:key:).")
        }
        return profile
    }

    /// Makes `open` the connection's file, and closes the previous handle. Every statement of the
    /// connection ends, even after an error.
    ///
    /// - Throws: Errors of setting up the new handle, such as those of the configuration's
    ///   `prepare`. The new handle is then closed. The previous one stays if it was open;
    ///   otherwise the connection is closed.
    func replace(with open: OpenFile) throws(StoreError) {
        try exchange(for: open.handle, open)
    }

    /// Makes `handle`, of a database without a file, the connection's handle, and closes the
    /// previous one. Everything else is as with `replace(with:)`, also what it throws.
    func replace(with handle: Handle, profile: CipherProfile) throws(StoreError) {
        let oldProfile = privateProfile
        privateProfile = profile
        do throws(StoreError) {
            try exchange(for: handle, nil)
        } catch {
            privateProfile = oldProfile
            throw error
        }
    }

    private func exchange(for new: Handle, _ file: OpenFile?) throws(StoreError) {
        let (oldState, old) = (state, handle)
        finalizeStatements()
        new.authorizer.scope = scope
        state = .open(new, file)
        do throws(StoreError) {
            try prepareHandle()
        } catch {
            finalizeStatements()
            new.close()
            if let old, !old.isClosed {
                state = oldState
                interruptHandle.aim(at: old)
            } else {
                state = .closed
            }
            throw error
        }
        old?.close()
    }

    /// Compiles one statement, which ends when the connection closes.
    ///
    /// - Parameter persistent: Whether the statement will be used many times.
    /// - Throws: `.sql` if the text does not compile or is not one statement; `.misuse` for SQL
    ///   that is not allowed; `.damaged` if the schema is damaged; otherwise as `current()`.
    func compile(_ sql: String, persistent: Bool) throws(StoreError) -> Statement {
        let handle = try current()
        try handle.followOwner()
        // A schema pragma is compiled from the schema in memory and never notices a change by
        // another connection; any SELECT does.
        if sql.isPragma { try handle.noticeSchemaChange() }
        let statement = try Statement(
            handle: handle, sql: sql, persistent: persistent)
        adopt(statement)
        return statement
    }

    /// Remembers a statement weakly, to end it before the file closes.
    func adopt(_ statement: Statement) {
        statement.belong(to: self)
        statements.add(statement)
    }

    func finalizeStatements() {
        for statement in statements.removeAll() { statement.finalize() }
        cache.removeAll()
        forgetAttachments()
        transactionState.reset()
    }

    /// Resets every statement that has a current row, whose next step then throws `.cancelled`.
    /// Also ends the implicit transaction in `transactionState`, without a COMMIT or ROLLBACK.
    func abandonRunningStatements() {
        for statement in statements.live where statement.isRunning {
            statement.rewind()
            statement.wasAbandoned = true
        }
        transactionState.endImplicit()
    }

    /// The object that `attach(_:as:)` has set for this id; `nil` if there is none, or if the
    /// schema has changed since then.
    ///
    /// - Throws: Errors of reading the version of the schema, which the first call in a
    ///   transaction does.
    @inline(__always)
    func attachment(_ id: ObjectIdentifier) throws(StoreError) -> AnyObject? {
        if !attachments.isChecked { try checkSchema() }
        return attachments[id]
    }

    func attach(_ value: AnyObject, as id: ObjectIdentifier) {
        attachments[id] = value
    }

    /// Removes every object that `attach(_:as:)` has set. Must follow a change of the schema, and
    /// a rollback too: a later change may give the schema the same number again.
    func forgetAttachments() {
        attachments.removeAll()
    }

    /// Makes the next `attachment(_:)` compare the version of the schema. Must be called when a
    /// transaction begins: the attachments may be for an earlier schema.
    func schemaMayHaveChanged() {
        attachments.isChecked = false
    }

    @inline(never)
    private func checkSchema() throws(StoreError) {
        attachments.check(against: try current().schemaVersion())
    }

    /// Checks the pages that the open transaction has read.
    ///
    /// - Throws: `.damaged` if the MAC of one does not fit; the other errors of
    ///   `Handle.probeFailure()`; otherwise as `current()`.
    func probe() throws(StoreError) {
        if let failure = try current().probeFailure() { throw failure }
    }
}
