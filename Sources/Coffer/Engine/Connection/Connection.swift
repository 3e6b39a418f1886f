import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One connection to one encrypted file: what FMDB's database object is, with the truth about it.
///
/// ```swift
/// let connection = try Connection(path: "notes.db", key: .passphrase(text))
/// try connection.execute("CREATE TABLE IF NOT EXISTS note(title TEXT)")
/// try connection.transaction { try connection.execute("INSERT INTO note VALUES (\(title))") }
/// ```
///
/// It belongs to one thread at a time (it is not `Sendable`) and never to a `Store`: for many
/// tasks and threads use `Store`. The corresponding C type is `sqlite3`.
public final class Connection {
    let configuration: Configuration
    /// Where the database is.
    public let location: Location
    let mode: OpenMode
    /// Bytes of decrypted pages that its handle keeps at most.
    var cacheByteCount: Int
    private(set) var state = State.unkeyed
    /// The cipher settings of a database without a file.
    private var privateProfile: CipherProfile?

    enum State {
        /// Made, without a key: nothing is open yet.
        case unkeyed
        /// With what belongs to the file; `nil` for a database that has none.
        case open(Handle, FileState?)
        case closed
    }

    /// What to do when another connection holds a lock; `Configuration.busyTimeout` at first.
    ///
    /// It can be set before the key is, and holds for as long as the connection lives. On a handle
    /// of another owner's it counts once it is set.
    public var busyPolicy: BusyPolicy {
        didSet { if let handle { busyPolicy.install(on: handle) } }
    }
    /// Stops what this connection runs, from any thread.
    public let interruptHandle = InterruptHandle()
    var settings = HandleSettings()
    var cache: StatementCache
    /// Statements that must end before the handle may close; those that died are swept out.
    private(set) var statements: [ObjectIdentifier: StatementLink] = [:]
    private var statementCountToSweep = 64
    /// The transaction around statements that the user runs outside one.
    var implicit = ImplicitTransaction()
    var lastImplicitID = 0
    /// True while the body of `transaction(_:_:)` runs: its end is Coffer's to write.
    var isInBody = false {
        didSet { handle?.authorizer.isInBody = isInBody }
    }
    var savepointDepth = 0
    /// What other rooms keep per connection, such as a record type's statements.
    /// Whose SQL runs on it; the same on every handle that it gets.
    private var scope = Authorizer.Scope.connection
    private let attachments = Attachments()
    /// The schema that the attachments were made for, and whether it was asked for since the
    /// transaction began or changed the schema itself.
    private var schemaVersion: Int64?
    var isSchemaChecked = false

    /// Makes a connection that opens with `setKey(_:)`.
    ///
    /// - Parameters:
    ///   - path: The file's path. Nothing is touched before the key is set.
    ///   - mode: What to do about the file's existence.
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
        cacheByteCount = configuration.cacheByteCountMax
        cache = StatementCache(countMax: configuration.statementCountMax)
    }

    /// Opens a file with its key.
    ///
    /// - Throws: As `setKey(_:)`.
    public convenience init(
        path: String, key: consuming StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) throws {
        self.init(path: path, mode: mode, configuration: configuration)
        try setKey(key)
    }

    /// A connection of a store, around a handle that is open and proven.
    init(
        pooling state: FileState, mode: OpenMode, configuration: Configuration,
        cacheByteCount: Int
    ) {
        self.cacheByteCount = cacheByteCount
        location = .file(state.file.path)
        self.mode = mode
        self.configuration = configuration
        busyPolicy = .timeout(configuration.busyTimeout)
        self.state = .open(state.handle, state)
        cache = StatementCache(countMax: configuration.statementCountMax)
        scope = .body
        state.handle.authorizer.scope = .body
    }

    /// The only connection of a store without a file.
    convenience init(
        pooling location: Location, configuration: Configuration
    ) throws(StoreError) {
        self.init(at: location, mode: .createIfMissing, configuration: configuration)
        scope = .body
        try openPrivate()
    }

    /// A connection on a handle of another owner's, which was proven to be encrypted.
    init(adopting handle: Handle, configuration: Configuration) throws(StoreError) {
        cacheByteCount = configuration.cacheByteCountMax
        location = .of(handle)
        mode = .mustExist
        self.configuration = configuration
        busyPolicy = .timeout(configuration.busyTimeout)
        cache = StatementCache(countMax: configuration.statementCountMax)
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
    ///   `.damaged`, `.needsNewerEngine`, `.engine`, `.notFound`, `.readOnly`, `.busy`, `.full`,
    ///   `.io`; `.unsupported` for a file with a plaintext header; `.misuse` for an empty key or if
    ///   a key was set before; `.closed` after `close()`.
    /// - Note: The corresponding C functions are `sqlite3_open_v2` and `sqlite3_key_v2`.
    public func setKey(_ key: consuming StoreKey) throws {
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
        let opened = FileState(try opening.open(key: key))
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

    private func begin(with handle: Handle, _ file: FileState?) throws(StoreError) {
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
        // Statements that others still hold may not look for the connection any more.
        for entry in statements.values { entry.statement?.finalize() }
        handle?.close()
    }

    /// Ends all statements, rolls back what is open, and closes the file. Safe to call twice.
    /// In a function or trace of its own it takes effect when the statement that runs has ended.
    /// The corresponding C function is `sqlite3_close_v2`.
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

    /// Whether a transaction is open, as SQLite itself knows it.
    public var isInTransaction: Bool {
        handle.map { $0.isInTransaction && !implicit.isOpen } ?? false
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
        hint: "It gets its arguments; what else it needs, give it before.")

    /// The open handle, `nil` if nothing is open.
    var handle: Handle? {
        if case .open(let handle, _) = state { handle } else { nil }
    }

    /// The open handle, or the reason why nothing is open.
    func current() throws(StoreError) -> Handle {
        switch state {
        case .open(let handle, _):
            guard !handle.isInCallback else { throw Self.inCallback }
            return handle
        case .unkeyed:
            throw StoreError(.misuse, "no key is set", hint: "Call setKey(_:) first.")
        case .closed: throw Self.closed
        }
    }

    /// What belongs to the open file.
    ///
    /// - Throws: `.unsupported` for a database that has no file of Coffer's.
    func fileState() throws(StoreError) -> FileState {
        _ = try current()
        guard case .open(_, let file?) = state else {
            throw StoreError(.unsupported, "the database is not in a file that Coffer opened")
        }
        return file
    }

    /// The cipher settings of a database that Coffer opened.
    ///
    /// - Throws: `.unsupported` for a handle of another owner's.
    func ownProfile() throws(StoreError) -> CipherProfile {
        _ = try current()
        guard let profile else {
            throw StoreError(
                .unsupported, "the pages of a handle that Coffer did not open are not copied",
                hint: "Open the file with Connection(path:key:).")
        }
        return profile
    }

    /// Puts another handle in place of the one there is, and closes that; every statement ends.
    ///
    /// - Throws: What setting up the new handle threw. The old one then stays, if it was open.
    func replace(with open: FileState) throws(StoreError) {
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

    private func exchange(for new: Handle, _ file: FileState?) throws(StoreError) {
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
        // A schema pragma is compiled from what the connection knows of the schema and never
        // notices that another connection has changed it; any SELECT does.
        if sql.isPragma { try handle.noticeSchemaChange() }
        let statement = try Statement(
            handle: handle, sql: sql, persistent: persistent)
        adopt(statement)
        return statement
    }

    /// Remembers a statement, without keeping it, to end it before the file closes.
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
        implicit = ImplicitTransaction()
        savepointDepth = 0
    }

    /// Ends every statement that stands at a row; its next step says so.
    func abandonRunningStatements() {
        for case let statement? in statements.values.map(\.statement) where statement.isRunning {
            statement.rewind()
            statement.wasAbandoned = true
        }
        implicit = ImplicitTransaction()
    }

    /// What another room keeps for the schema as it is now; `nil` if it was made for another one.
    @inline(__always)
    func attachment(_ id: ObjectIdentifier) throws(StoreError) -> AnyObject? {
        if !isSchemaChecked { try checkSchema() }
        return attachments[id]
    }

    func attach(_ value: AnyObject, as id: ObjectIdentifier) {
        attachments[id] = value
    }

    /// After a rollback too: a later change may give the schema the number that was taken back.
    func forgetAttachments() {
        attachments.removeAll()
        isSchemaChecked = false
    }

    @inline(never)
    private func checkSchema() throws(StoreError) {
        let version = try current().schemaVersion()
        if version != schemaVersion { attachments.removeAll() }
        schemaVersion = version
        isSchemaChecked = true
    }

    /// - Throws: `.damaged` if a page read in this transaction failed authentication.
    func probe() throws(StoreError) {
        if let failure = try current().probeFailure() { throw failure }
    }
}
