import Synchronization

/// The connections of a store: one that writes, and readers opened on demand.
///
/// Who may touch which is decided by the gates of `StoreCore`: the writer belongs to the holder of
/// the write gate, a reader to the one who took it from the idle list.
final class ConnectionPool: @unchecked Sendable {
    // @unchecked: everything but the connections is constant or under a mutex. The writer is used
    // by who has the turn in the write queue only, a reader by who took it out of `idle` only.

    let writer: Connection
    let writerStop = StopSignal()
    let file: FileLocation
    let profile: CipherProfile
    let configuration: Configuration
    let mode: OpenMode
    let events: StoreEvents
    private let readers = Mutex(Readers())
    /// The key of all connections. It changes only while nothing else uses the store.
    private let key: Mutex<RawKeyBox>

    private struct Readers {
        var idle: [Reader] = []
        /// Of every open reader, also of those that somebody reads with.
        var signals: [StopSignal] = []
        var cache = CacheCounts()

        mutating func forget(_ reader: Reader) {
            signals.removeAll { $0 === reader.stop }
        }
    }

    /// A connection that moves between threads, one at a time.
    struct Reader: @unchecked Sendable {
        // @unchecked: whoever takes it out of the idle list is its only user.
        let connection: Connection
        let stop = StopSignal()
    }

    init(
        opened: consuming Opened, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        file = opened.file
        events = StoreEvents(configuration.logger, path: file.path)
        profile = opened.profile
        self.configuration = configuration
        self.mode = mode
        key = Mutex(RawKeyBox(opened.key.copy()))
        writer = Connection(
            pooling: Connection.FileState(opened), mode: mode,
            configuration: configuration, cacheByteCount: Self.cacheByteCount(configuration))
        try writer.prepareHandle()
    }

    /// Whether reads may run beside the writer: only in WAL do they not wait for each other.
    var hasReaders: Bool { configuration.journalMode == .wal || mode == .readOnly }

    /// Bytes of page cache for each connection.
    static func cacheByteCount(_ configuration: Configuration) -> Int {
        configuration.cacheByteCountMax / (configuration.readerCountMax + 1)
    }

    // MARK: Readers

    /// Runs `body` with a reader, or with the writer where readers would wait for it.
    func withReader<T>(_ body: (Connection, StopSignal) throws -> T) throws -> T {
        guard hasReaders else { return try body(writer, writerStop) }
        let reader = try takeReader()
        defer { giveBack(reader) }
        return try body(reader.connection, reader.stop)
    }

    /// A reader that is idle, or a new one under the store's key: no derivation.
    func takeReader() throws(StoreError) -> Reader {
        if let reader = readers.withLock({ $0.idle.popLast() }) { return reader }
        do throws(StoreError) {
            return try openReader()
        } catch {
            events.failed(error)
            throw error
        }
    }

    /// - Parameter isCounted: Whether it is one of the readers, to be given back.
    func openReader(isCounted: Bool = true) throws(StoreError) -> Reader {
        let state = try physicalOpen(mode == .readOnly ? .readOnly : .reader, key: currentKey.key)
        let connection = Connection(
            pooling: state, mode: .readOnly, configuration: configuration,
            cacheByteCount: Self.cacheByteCount(configuration))
        try connection.prepareHandle()
        let reader = Reader(connection: connection)
        if isCounted { readers.withLock { $0.signals.append(reader.stop) } }
        return reader
    }

    private var currentKey: RawKeyBox { key.withLock { $0 } }

    func giveBack(_ reader: Reader) {
        let isOpen = reader.connection.isOpen
        let cache = reader.connection.takeCacheCounts()
        readers.withLock { readers in
            readers.cache += cache
            // One that could not be rolled back was closed.
            if isOpen { readers.idle.append(reader) } else { readers.forget(reader) }
        }
    }

    func closeReaders() {
        let idle = readers.withLock { readers in
            let idle = readers.idle
            readers.idle.removeAll()
            for reader in idle { readers.forget(reader) }
            return idle
        }
        for reader in idle { reader.connection.close() }
    }

    /// How many readers are open, and how many of them wait for work.
    var readerCounts: (open: Int, idle: Int) {
        readers.withLock { ($0.signals.count, $0.idle.count) }
    }

    /// What readers found in their caches, up to the last read that has ended.
    var readerCache: CacheCounts { readers.withLock { $0.cache } }

    /// When the oldest of the reads that run now began.
    var oldestReadBeginning: ContinuousClock.Instant? {
        readers.withLock { $0.signals }.compactMap(\.beginning).min()
    }

    // MARK: All connections

    /// Tells the bodies that run on readers, and began before `beginning`, to stop.
    ///
    /// - Returns: How many there were.
    @discardableResult
    func stopReaders(
        _ reason: StoreError, since beginning: ContinuousClock.Instant = .now
    ) -> Int {
        readers.withLock { $0.signals }.count { $0.stop(reason, since: beginning) }
    }

    /// Closes all connections; the key stays.
    func closeConnections() {
        closeReaders()
        writer.close()
    }

    /// Opens the writer again; readers open on demand.
    func reopenWriter() throws(StoreError) {
        try writer.replace(
            with: physicalOpen(mode == .readOnly ? .readOnly : .writer, key: currentKey.key))
    }

    /// Changes the key of the file. All readers are of the old key: new ones open on demand.
    func rekey(to newKey: borrowing StoreKey) throws(StoreError) {
        closeReaders()
        try writer.changeKey(to: newKey)
        try rememberKey()
    }

    private func rememberKey() throws(StoreError) {
        let box = RawKeyBox(try writer.fileState().key.copy())
        key.withLock { $0 = box }
    }

    /// Puts a writer under another key in place of all connections.
    func exchange(for opened: consuming Opened) throws(StoreError) {
        guard opened.profile == profile else {
            opened.handle.close()
            throw StoreError(
                .misuse, "the file has other cipher settings now",
                hint: "Close the store and open it again.")
        }
        closeReaders()
        writer.close()
        try writer.replace(with: Connection.FileState(opened))
        try rememberKey()
    }

    private func physicalOpen(
        _ role: PhysicalOpen.Role, key: borrowing RawKey
    ) throws(StoreError) -> Connection.FileState {
        let physical = PhysicalOpen(
            file: file, profile: profile, configuration: configuration, role: role,
            cacheByteCount: Self.cacheByteCount(configuration))
        let handle = try physical.open(key: key)
        return Connection.FileState(
            handle: handle, key: key.copy(), file: file, profile: profile)
    }
}

/// Carries a derived key; wiped when the last holder lets go.
final class RawKeyBox: Sendable {
    let key: RawKey

    init(_ key: consuming RawKey) {
        self.key = key
    }
}
