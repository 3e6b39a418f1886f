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
    /// Statements that must end before the handle may close; links to deallocated ones are swept
    /// out.
    private(set) var statements: [ObjectIdentifier: StatementLink] = [:]
    private var statementCountToSweep = 64
    var transactionState = TransactionState()
    /// The rules for SQL that runs on it; the same on every handle that it gets.
    private var scope = Authorizer.Scope.connection
    /// Objects that other parts of Coffer keep per connection, such as a record type's statements.
    private let attachments = Attachments()

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

    /// Creates a connection of a store, around a handle that is open and proven.
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

    /// Creates the only connection of a store without a file.
    convenience init(
        pooling location: Location, configuration: Configuration
    ) throws(StoreError) {
        self.init(at: location, mode: .createIfMissing, configuration: configuration)
        scope = .body
        try openPrivate()
    }

    /// Creates a connection on a handle owned by someone else, which was proven to be encrypted.
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

    /// Opens the file with a key, proves both, and configures the connection.
    ///
    /// A passphrase is derived here (about 22 ms for SQLCipher 3's rounds, 100 ms for SQLCipher
    /// 4's); a raw key costs under 1 ms. After a failure it can be called again.
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
        for entry in statements.values { entry.statement?.finalize() }
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

    /// The open handle, or the reason why nothing is open.
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

    /// The state of the open file.
    ///
    /// - Throws: `.unsupported` for a database that is not in a file that Coffer opened.
    func fileState() throws(StoreError) -> OpenFile {
        _ = try current()
        guard case .open(_, let file?) = state else {
            throw StoreError(.unsupported, "the database is not in a file that Coffer opened")
        }
        return file
    }

    /// The cipher settings of a database that Coffer opened.
    ///
    /// - Throws: `.unsupported` for a handle owned by someone else.
    func ownProfile() throws(StoreError) -> CipherProfile {
        _ = try current()
        guard let profile else {
            throw StoreError(
                .unsupported, "Coffer does not copy the pages of a handle that it did not open",
                hint: "Open the file with Connection(path:key:).")
        }
        return profile
    }

    /// Replaces the current handle with another one and closes it; every statement ends.
    ///
    /// - Throws: Errors of setting up the new handle. The old one then stays, if it was open.
    func replace(with open: OpenFile) throws(StoreError) {
        try exchange(for: open.handle, open)
    }

    /// The same for a database without a file.
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

    /// Compiles a statement of this connection.
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
        if statements.count >= statementCountToSweep {
            statements = statements.filter { $0.value.statement != nil }
            statementCountToSweep = max(64, statements.count * 2)
        }
        statements[ObjectIdentifier(statement)] = statement.link
    }

    func finalizeStatements() {
        for entry in statements.values { entry.statement?.finalize() }
        statements.removeAll()
        cache.removeAll()
        forgetAttachments()
        transactionState.reset()
    }

    /// Resets every statement that has a current row. The next step of such a statement throws
    /// `.cancelled` instead of beginning again; the step after that begins again.
    func abandonRunningStatements() {
        for case let statement? in statements.values.map(\.statement) where statement.isRunning {
            statement.rewind()
            statement.wasAbandoned = true
        }
        transactionState.endImplicit()
    }

    /// The object that another part of Coffer keeps for the current schema; `nil` if there is none
    /// or it was made for another schema.
    @inline(__always)
    func attachment(_ id: ObjectIdentifier) throws(StoreError) -> AnyObject? {
        if !attachments.isChecked { try checkSchema() }
        return attachments[id]
    }

    func attach(_ value: AnyObject, as id: ObjectIdentifier) {
        attachments[id] = value
    }

    /// Must follow a rollback too: a later change may give the schema the same number again.
    func forgetAttachments() {
        attachments.removeAll()
    }

    /// Must be called when a transaction begins: the attachments may be for an earlier schema.
    func schemaMayHaveChanged() {
        attachments.isChecked = false
    }

    @inline(never)
    private func checkSchema() throws(StoreError) {
        attachments.check(against: try current().schemaVersion())
    }

    /// - Throws: `.damaged` if a page read in this transaction failed authentication.
    func probe() throws(StoreError) {
        if let failure = try current().probeFailure() { throw failure }
    }
}
