import Synchronization

/// The connections of a store: one that writes, and readers opened on demand.
///
/// Who may touch which is decided by the gates of `StoreCore`: the writer belongs to the holder of
/// the write gate, a reader to the one who took it from the idle list.
final class ConnectionPool: @unchecked Sendable {
    // @unchecked: everything but the connections is constant or under a mutex. The writer is used
    // by the holder of the write gate only, a reader by who took it out of `idle` only. The
    // writer's key is read by readers that open, and changes only while nobody can be reading:
    // `StoreCore.alone` holds every permit of both gates.

    let writer: Connection
    let file: FileLocation
    let profile: CipherProfile
    let configuration: Configuration
    let mode: OpenMode
    private let readers = Mutex(Readers())

    private struct Readers {
        var idle: [Reader] = []
        /// With those that somebody reads with.
        var openCount = 0
    }

    /// A connection that moves between threads, one at a time.
    private struct Reader: @unchecked Sendable {
        // @unchecked: whoever takes it out of the idle list is its only user.
        let connection: Connection
    }

    init(
        opened: consuming Opened, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        file = opened.file
        profile = opened.profile
        self.configuration = configuration
        self.mode = mode
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

    /// A reader that is idle, or a new one under the store's key: no derivation.
    func takeReader() throws(StoreError) -> Connection {
        if let reader = readers.withLock({ $0.idle.popLast() }) { return reader.connection }
        let open = try writer.fileState()
        let physical = PhysicalOpen(
            file: file, profile: open.profile, configuration: configuration,
            role: mode == .readOnly ? .readOnly : .reader,
            cacheByteCount: Self.cacheByteCount(configuration))
        let handle = try physical.open(key: open.key)
        let state = Connection.FileState(
            handle: handle, key: open.key.copy(), file: file, profile: open.profile)
        let reader = Connection(
            pooling: state, mode: .readOnly, configuration: configuration,
            cacheByteCount: Self.cacheByteCount(configuration))
        try reader.prepareHandle()
        readers.withLock { $0.openCount += 1 }
        return reader
    }

    func giveBack(_ connection: Connection) {
        let reader = Reader(connection: connection)
        let isOpen = connection.isOpen
        readers.withLock { readers in
            // One that could not be rolled back was closed.
            if isOpen { readers.idle.append(reader) } else { readers.openCount -= 1 }
        }
    }

    func closeReaders() {
        let idle = readers.withLock { readers in
            defer {
                readers.openCount -= readers.idle.count
                readers.idle.removeAll()
            }
            return readers.idle
        }
        for reader in idle { reader.connection.close() }
    }

    /// How many readers are open, and how many of them wait for work.
    var readerCounts: (open: Int, idle: Int) {
        readers.withLock { ($0.openCount, $0.idle.count) }
    }
}
