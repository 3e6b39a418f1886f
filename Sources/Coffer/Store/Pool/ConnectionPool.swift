import Synchronization

/// The connections of a store: one that writes, and readers opened on demand.
///
/// `StoreCore`'s gates decide which thread may use which connection. The writer belongs to the
/// holder of the write gate, a reader to the caller that took it from the idle list.
final class ConnectionPool: @unchecked Sendable {
    // @unchecked: everything but the connections is constant or guarded by a mutex. Only the holder
    // of the write gate uses the writer, and only the caller that took a reader out of `idle` uses
    // it.

    let writer: Connection
    let writerStop = StopSignal()
    /// `nil` in memory: then the writer is the only connection to the data.
    let file: StoreFile?
    let profile: CipherProfile
    let configuration: Configuration
    let mode: OpenMode
    let events: StoreEvents
    let metrics: StoreMetrics
    private let readers = Mutex(Readers())

    private struct Readers {
        var idle: [Reader] = []
        /// The stop signals of all open readers, including those in use.
        var signals: [StopSignal] = []
        var cache = CacheCounts()

        mutating func forget(_ reader: Reader) {
            signals.removeAll { $0 === reader.stop }
        }
    }

    /// A connection that moves between threads, one at a time.
    struct Reader: @unchecked Sendable {
        // @unchecked: the caller that takes it out of the idle list is its only user.
        let connection: Connection
        let stop = StopSignal()
    }

    /// - Throws: `.alreadyOpen` if a store of this process has the file.
    init(
        opened: OpenFile, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        file = try StoreFile(opened, mode: mode, configuration: configuration)
        events = StoreEvents(configuration.logger, path: opened.file.path)
        profile = opened.profile
        metrics = StoreMetrics(store: configuration.metricsLabel ?? opened.file.name)
        self.configuration = configuration
        self.mode = mode
        writer = Connection(
            pooling: opened, mode: mode,
            configuration: configuration, cacheByteCount: Self.cacheByteCount(configuration))
        try writer.prepareHandle()
    }

    /// - Parameter location: In memory, or temporary.
    init(without location: Location, configuration: Configuration) throws(StoreError) {
        writer = try Connection(pooling: location, configuration: configuration)
        profile = try writer.ownProfile()
        file = nil
        events = StoreEvents(configuration.logger, path: "")
        metrics = StoreMetrics(store: configuration.metricsLabel ?? "")
        mode = .createIfMissing
        self.configuration = configuration
    }

    /// How SQLite keeps a transaction until it is committed.
    var journalMode: Configuration.JournalMode {
        file == nil ? .memory : configuration.journalMode
    }

    /// Whether reads run on readers, alongside the writer. They do in WAL, where reads and writes
    /// do not wait for each other, and in a read-only store, which has no writes.
    var hasReaders: Bool { journalMode == .wal || mode == .readOnly }

    /// Bytes of page cache for each connection while no other store shares the budget.
    static func cacheByteCount(_ configuration: Configuration) -> Int {
        configuration.maximumCacheByteCount / (configuration.maximumReaderCount + 1)
    }

    // MARK: Readers

    /// Runs `body` with a reader, or with the writer where readers would wait for it.
    func withReader<T>(_ body: (Connection, StopSignal) throws -> T) throws -> T {
        guard hasReaders else { return try body(openWriter(), writerStop) }
        let reader = try takeReader()
        defer { giveBack(reader) }
        return try body(reader.connection, reader.stop)
    }

    /// An idle reader, or a new one under the store's key: no derivation.
    ///
    /// Closes idle readers of a file at rest that has changed. The new one reads with locks if it
    /// can by now, for example because the disk has room again.
    func takeReader() throws(StoreError) -> Reader {
        while let reader = readers.withLock({ $0.idle.popLast() }) {
            guard reader.connection.isOutdated else { return reader }
            reader.connection.close()
            readers.withLock { $0.forget(reader) }
        }
        do throws(StoreError) {
            return try openReader()
        } catch {
            events.failed(error)
            throw error
        }
    }

    /// - Parameter isCounted: Whether it is one of the readers, and will be given back.
    func openReader(isCounted: Bool = true) throws(StoreError) -> Reader {
        let file = try requireFile("there is no second connection to it")
        let cacheByteCount = file.cache.connectionByteCount
        let connection = Connection(
            pooling: try file.openReader(cacheByteCount: cacheByteCount), mode: .readOnly,
            configuration: configuration, cacheByteCount: cacheByteCount)
        try connection.prepareHandle()
        let reader = Reader(connection: connection)
        if isCounted { readers.withLock { $0.signals.append(reader.stop) } }
        return reader
    }

    func giveBack(_ reader: Reader) {
        let isOpen = reader.connection.isOpen
        let cache = reader.connection.takeCacheCounts()
        metrics.add(cache)
        let byteCount = isOpen ? fitCache(of: reader.connection) : 0
        readers.withLock { readers in
            readers.cache += cache
            // A reader whose rollback failed was closed.
            if isOpen { readers.idle.append(reader) } else { readers.forget(reader) }
        }
        file?.cache.trimIfSmaller(than: byteCount)
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

    /// The readers' cache hits and misses, up to the last read that has ended.
    var readerCache: CacheCounts { readers.withLock { $0.cache } }

    /// When the oldest running read began.
    var oldestReadBeginning: ContinuousClock.Instant? {
        readers.withLock { $0.signals }.compactMap(\.beginning).min()
    }

    // MARK: All connections

    /// Asks the bodies that run on readers, and began no later than `beginning`, to stop.
    ///
    /// - Returns: How many were asked and had not been asked before.
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
        let file = try requireFile("there is nothing to open again")
        let cacheByteCount = file.cache.connectionByteCount
        try writer.replace(with: file.openWriter(cacheByteCount: cacheByteCount))
        writer.cacheByteCount = cacheByteCount
    }

    /// The writer, opened again if it had to be closed because a rollback failed.
    ///
    /// Only for the holder of the write gate.
    func openWriter() throws(StoreError) -> Connection {
        if let loss { throw loss }
        if !writer.isOpen { try reopenWriter() }
        return writer
    }

    /// Fits a connection's cache to its share of the page caches; only for its user, outside a
    /// transaction.
    ///
    /// - Returns: The share, in bytes. Another thread may change it concurrently.
    @discardableResult
    func fitCache(of connection: Connection) -> Int {
        guard let file else { return 0 }
        let byteCount = file.cache.connectionByteCount
        connection.fitCache(to: byteCount)
        return byteCount
    }

    /// Fits one idle reader's cache to its share; only for a holder of a permit of the read gate.
    ///
    /// - Returns: `false` if no other reader is left to fit.
    func fitCacheOfIdleReader() -> Bool {
        guard let byteCount = file?.cache.connectionByteCount else { return false }
        let reader: Reader? = readers.withLock { readers in
            let index = readers.idle.firstIndex { $0.connection.cacheByteCount != byteCount }
            return index.map { readers.idle.remove(at: $0) }
        }
        guard let reader else { return false }
        reader.connection.fitCache(to: byteCount)
        let isFitted = reader.connection.cacheByteCount == byteCount
        readers.withLock { $0.idle.insert(reader, at: 0) }
        return isFitted
    }

    /// Why nothing can be read or written: a rollback failed in a store without a file.
    var loss: StoreError? {
        guard file == nil, !writer.isOpen else { return nil }
        return StoreError(
            .closed, "a rollback failed; its connection was closed, and the data in memory is lost",
            hint: "Open a new store.")
    }

    // MARK: File

    /// The store's file.
    ///
    /// - Parameter reason: Why the caller needs a file; becomes part of the error's message.
    /// - Throws: `.unsupported` for a store without a file.
    func requireFile(_ reason: String) throws(StoreError) -> StoreFile {
        guard let file else {
            throw StoreError(
                .unsupported, "the store has no file: \(reason)",
                hint: "Copy it into one with backup(to:key:).")
        }
        return file
    }

    /// Changes the key of the file. Closes all readers, which have the old key; new ones open on
    /// demand.
    func rekey(to newKey: borrowing StoreKey) -> Result<RekeyReport, RekeyFailure> {
        Result { () throws(RekeyFailure) in
            let writer = try RekeyFailure.wrapping { () throws(StoreError) in
                try openOnlyWriter()
            }
            let change = try writer.changeKey(to: newKey)
            file?.rememberKey(of: change.file)
            return change.report
        }
    }

    /// Moves the pages that a key change left in the WAL, and counts the pages that still have
    /// another key.
    func finishRekey() throws(StoreError) -> RekeyReport {
        try openOnlyWriter().finishRekey()
    }

    /// Closes all readers of this store and returns its writer, which it opens again if the writer
    /// was closed. Does not lock the file: other processes keep their connections. Throws
    /// `.unsupported` for a store without a file, and errors of opening.
    private func openOnlyWriter() throws(StoreError) -> Connection {
        _ = try requireFile("its key is random, and nobody knows it")
        closeReaders()
        return try openWriter()
    }

    /// Replaces all connections with connections under another key; if that fails, the old ones
    /// stay.
    func reopen(with key: borrowing StoreKey) throws(StoreError) {
        let file = try requireFile("its key is random, and nobody knows it")
        let cacheByteCount = file.cache.connectionByteCount
        let state = try file.open(with: key, cacheByteCount: cacheByteCount)
        try writer.replace(with: state)
        writer.cacheByteCount = cacheByteCount
        closeReaders()
        file.rememberKey(of: state)
    }
}
