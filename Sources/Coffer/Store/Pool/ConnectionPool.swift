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
    private let preparations = Preparations()
    /// The generation of the writer's key. Only the holder of the write gate uses it.
    private var writerKeyGeneration = 0
    let rotations = ForeignRotations()

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
        /// The generation of its key: see `StoreFile.keyGeneration`.
        let keyGeneration: Int
        let stop = StopSignal()
    }

    /// Makes a pool whose writer is the open file; readers open on demand.
    ///
    /// - Throws: `.alreadyOpen` if a store of this process has the file, `.notFound` if the file
    ///   was removed; errors of setting up the connection.
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

    /// Makes a pool with one connection, to a database that has no file.
    ///
    /// - Parameter location: In memory, or temporary.
    /// - Throws: Errors of opening the database.
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

    /// Begins a read transaction on a reader, or on the writer if the pool has no readers, and runs
    /// `body` with the connection and its stop signal. `body` ends the transaction.
    ///
    /// A store with a keyring reads the schema first, which shows whether another process has
    /// rotated the key: `body` then gets a connection under the new key. No body runs twice.
    ///
    /// - Throws: What `body` throws; the errors of opening the connection and of beginning.
    func withRead<T>(
        _ cancellation: Cancellation?, _ body: (Connection, StopSignal) throws -> T
    ) throws -> T {
        guard hasReaders else {
            let writer = try withCurrentKey(cancellation) { () throws(StoreError) in
                let writer = try openWriter()
                try beginRead(on: writer)
                return writer
            }
            return try body(writer, writerStop)
        }
        let reader = try takeReading(cancellation)
        defer { giveBack(reader) }
        return try body(reader.connection, reader.stop)
    }

    /// Takes a reader and begins a transaction on it.
    private func takeReading(_ cancellation: Cancellation?) throws(StoreError) -> Reader {
        var isTaken = false
        do throws(StoreError) {
            return try withCurrentKey(cancellation) { () throws(StoreError) in
                isTaken = false
                let reader = try takeReader()
                isTaken = true
                do throws(StoreError) {
                    try beginRead(on: reader.connection)
                } catch {
                    giveBack(reader)
                    throw error
                }
                return reader
            }
        } catch {
            if isTaken { events.failed(error) }
            throw error
        }
    }

    /// Begins a transaction, whose first page is read at once if the key may have been rotated.
    private func beginRead(on connection: Connection) throws(StoreError) {
        if file?.hasKeyring != true {
            try connection.beginShared(.deferred)
        } else {
            try connection.beginSnapshot()
        }
    }

    /// Begins a transaction on the writer, under the key that the file has now.
    ///
    /// Only for the holder of the write gate.
    ///
    /// - Throws: As `openWriter()` and `Connection.beginShared`.
    func beginWrite(
        _ mode: TransactionMode, pausesForeignKeys: Bool, _ cancellation: Cancellation?
    ) throws(StoreError) {
        if let keyring = file?.keyring { rotations.standBack(for: keyring) }
        try withCurrentKey(cancellation) { () throws(StoreError) in
            let writer = try openWriter()
            try writer.beginShared(mode, pausesForeignKeys: pausesForeignKeys)
            // The other modes read the first page when they take their lock.
            if mode == .deferred, file?.hasKeyring == true { try writer.requireSchema() }
        }
    }

    /// The writer, under the key that the file has now.
    ///
    /// Only for the holder of the write gate, outside a transaction.
    ///
    /// - Throws: As `openWriter()`; `.busy` if another connection keeps the file from being read.
    func currentWriter() throws(StoreError) -> Connection {
        guard file?.hasKeyring == true else { return try openWriter() }
        return try withCurrentKey { () throws(StoreError) in
            let writer = try openWriter()
            try writer.beginSnapshot()
            writer.undoShared()
            return writer
        }
    }

    /// Runs `work`, which begins something on a connection. In a store with a keyring, runs it
    /// again if another process has rotated the key, or while one does.
    ///
    /// - Throws: What `work` throws; as `StoreFile.followRotation`; the reason of `stopWaiting`.
    func withCurrentKey<T>(
        _ cancellation: Cancellation? = nil, _ work: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        guard let file, let keyring = file.keyring else { return try work() }
        let deadline = ContinuousClock.now + configuration.rotationTimeout
        var followCount = 0
        var isExtended = false
        while true {
            let generation = file.keyGeneration
            do throws(StoreError) {
                return try work()
            } catch {
                if let reason = cancellation?.reason { throw reason }
                guard ContinuousClock.now < deadline else { throw error }
                switch error.code {
                case .busy where rotations.isForeign(keyring):
                    if let reason = rotations.reasonToStop { throw reason }
                    sleepBriefly()
                case .busy where !isExtended && file.isRotated(since: generation):
                    // A rotation that has just ended took a part of the time for waiting.
                    isExtended = true
                case .wrongKey where followCount < Self.maximumFollowCount,
                    .damaged
                where followCount < Self.maximumFollowCount && file.isRotated(since: generation):
                    // A process that rotates again and again may be faster.
                    if followCount > 0 { sleepBriefly() }
                    followCount += 1
                    try follow(file, since: generation, after: error)
                default: throw error
                }
            }
        }
    }

    /// How many rotations one read or write follows.
    private static let maximumFollowCount = 100

    private func follow(
        _ file: StoreFile, since generation: Int, after refusal: StoreError
    ) throws(StoreError) {
        do throws(StoreError) {
            let epoch = try file.followRotation(
                since: generation, after: refusal, isOwn: rotations.isOwn)
            guard let epoch else { return }
            rotations.didFollow()
            metrics.heals.increment()
            events.followedRotation(epoch: epoch)
        } catch {
            events.failed(error)
            throw error
        }
    }

    /// Takes an idle reader, or opens a new one with the store's key, which is not derived again.
    /// The caller must give it back with `giveBack(_:)`.
    ///
    /// Closes idle readers of a file at rest that has changed. The new one reads with locks if it
    /// can by now, for example because the disk has room again.
    ///
    /// - Throws: `.notFound` if the file no longer exists; otherwise the errors of opening, such as
    ///   `.wrongKey`.
    func takeReader() throws(StoreError) -> Reader {
        while let reader = readers.withLock({ $0.idle.popLast() }) {
            if !reader.connection.isOutdated, hasCurrentKey(reader), isPrepared(reader) {
                return reader
            }
            reader.connection.close()
            readers.withLock { $0.forget(reader) }
        }
        do throws(StoreError) {
            return try openReader()
        } catch {
            // A key that another process has rotated is followed.
            if file?.hasKeyring != true || error.code != .wrongKey { events.failed(error) }
            throw error
        }
    }

    /// Whether the reader has the key that the store knows as that of the file.
    func hasCurrentKey(_ reader: Reader) -> Bool {
        file.map { $0.keyGeneration == reader.keyGeneration } ?? true
    }

    /// Opens a new reader with the store's key.
    ///
    /// - Parameter isCounted: Whether it counts as one of the readers, which `stopReaders` reaches
    ///   and `giveBack(_:)` takes back.
    /// - Throws: `.unsupported` for a store without a file; otherwise as `takeReader()`.
    func openReader(isCounted: Bool = true) throws(StoreError) -> Reader {
        let file = try requireFile("there is no second connection to it")
        let cacheByteCount = file.cache.connectionByteCount
        // Before the key is read, so that it is never too new.
        let keyGeneration = file.keyGeneration
        let opened = try withCurrentKey { () throws(StoreError) in
            try file.openReader(cacheByteCount: cacheByteCount)
        }
        let connection = Connection(
            pooling: opened, mode: .readOnly,
            configuration: configuration, cacheByteCount: cacheByteCount)
        try connection.prepareHandle()
        // One that is not counted only makes checkpoints.
        if isCounted { try preparations.apply(to: connection) }
        let reader = Reader(connection: connection, keyGeneration: keyGeneration)
        if isCounted { readers.withLock { $0.signals.append(reader.stop) } }
        return reader
    }

    /// Opens a connection that copies the store into a file attached to it. It has every function
    /// and collation, is not one of the readers, and belongs to the caller, who closes it. The
    /// caller must not write the store through it.
    ///
    /// - Throws: As `openReader(isCounted:)`.
    func openForCopy(cacheByteCount: Int) throws(StoreError) -> Connection {
        let reader = try openReader(isCounted: false)
        do throws(StoreError) {
            try preparations.apply(to: reader.connection)
            let handle = try reader.connection.current()
            try handle.setCacheByteCount(cacheByteCount)
            try HostileDefence.complete(handle)
            // It would hold for attached files too.
            try handle.run("PRAGMA query_only = OFF")
        } catch {
            reader.connection.close()
            throw error
        }
        return reader.connection
    }

    /// Runs the closures that an idle reader has not run yet.
    ///
    /// - Returns: `false` if one of them failed; the reader must then be closed.
    private func isPrepared(_ reader: Reader) -> Bool {
        guard reader.connection.preparationCount != preparations.count else { return true }
        return (try? preparations.apply(to: reader.connection)) != nil
    }

    /// Runs a closure on the writer, and on each reader before its next use.
    ///
    /// Only for the holder of the write gate.
    ///
    /// - Throws: What `body` throws on the writer or on a reader; the other readers then do not run
    ///   it.
    func prepare(_ body: @escaping @Sendable (Connection) throws -> Void) throws {
        try body(currentWriter())
        // A closure that only the writer can run would make every later read fail.
        if file != nil, hasReaders {
            let reader = try openReader(isCounted: false)
            defer { reader.connection.close() }
            try body(reader.connection)
        }
        preparations.append(body)
    }

    func giveBack(_ reader: Reader) {
        if !hasCurrentKey(reader) { reader.connection.close() }
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

    /// Asks the bodies that run on readers, and began no later than `beginning`, to stop with this
    /// reason.
    ///
    /// - Returns: How many bodies were asked that had not been asked before.
    @discardableResult
    func stopReaders(
        _ reason: StoreError, since beginning: ContinuousClock.Instant = .now
    ) -> Int {
        readers.withLock { $0.signals }.count { $0.stop(reason, since: beginning) }
    }

    /// Closes the writer and all idle readers, and lets another store of this process open the
    /// file. The key stays in memory.
    ///
    /// Only for a caller that keeps everything else from using the store.
    func closeConnections() {
        func close() {
            closeReaders()
            writer.close()
        }
        if let file { file.endClaim(close) } else { close() }
    }

    /// Opens the writer again with the store's key; readers open on demand.
    ///
    /// - Throws: `.unsupported` for a store without a file, `.notFound` if the file no longer
    ///   exists, `.alreadyOpen` if another store of this process has it; otherwise the errors of
    ///   opening, such as `.wrongKey`.
    func reopenWriter() throws(StoreError) {
        let file = try requireFile("there is nothing to open again")
        try withCurrentKey { () throws(StoreError) in
            _ = try replaceWriter(in: file) { (cacheByteCount) throws(StoreError) in
                try file.openWriter(cacheByteCount: cacheByteCount)
            }
        }
    }

    /// Claims the file at the path, opens it, and makes that connection the writer.
    ///
    /// The claim comes first: opening may change the journal mode, and another store of this
    /// process may have the file.
    ///
    /// - Throws: What `open` throws; `.alreadyOpen` and `.notFound` as `StoreFile.newClaim()`;
    ///   `.busy` if other files take the path again and again; as `Connection.replace(with:)`. The
    ///   writer, and the claim of the store, then stay as they were.
    @discardableResult
    private func replaceWriter(
        in file: StoreFile, open: (_ cacheByteCount: Int) throws(StoreError) -> OpenFile
    ) throws(StoreError) -> OpenFile {
        let cacheByteCount = file.cache.connectionByteCount
        for _ in 0..<StoreError.replacementTryCount {
            let claim = try file.newClaim()
            let keyGeneration = file.keyGeneration
            let state = try open(cacheByteCount)
            guard try file.isAtPath(claim) else {
                state.handle.close()
                continue
            }
            if !file.holds(claim) { closeReaders() }
            try writer.replace(with: state)
            writerKeyGeneration = keyGeneration
            writer.cacheByteCount = cacheByteCount
            file.keep(claim)
            return state
        }
        throw StoreError(
            .busy, "other files take the place of \(file.location.path) again and again",
            hint: "Try again when the program that replaces it has ended.")
    }

    /// Returns the writer, and opens it again if it had to be closed because a rollback failed.
    ///
    /// Only for the holder of the write gate.
    ///
    /// - Throws: `.closed` if that happened in a store without a file, whose data is then lost;
    ///   otherwise the errors of `reopenWriter()`.
    func openWriter() throws(StoreError) -> Connection {
        if let loss { throw loss }
        if !writer.isOpen || (file.map { $0.keyGeneration != writerKeyGeneration } ?? false) {
            try reopenWriter()
        }
        return writer
    }

    /// Fits a connection's cache to its share of the page caches; only for the connection's user,
    /// outside a transaction.
    ///
    /// - Returns: The share, in bytes; 0 for a store without a file. Another thread may change it
    ///   concurrently.
    @discardableResult
    func fitCache(of connection: Connection) -> Int {
        guard let file else { return 0 }
        let byteCount = file.cache.connectionByteCount
        connection.fitCache(to: byteCount)
        return byteCount
    }

    /// Fits the cache of one idle reader that has another size to its share; only for a holder of a
    /// permit of the read gate.
    ///
    /// - Returns: `true` if a reader was fitted. `false` without a file, if every idle reader has
    ///   that size, or if this one could not be fitted.
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

    /// The key that a connection was opened with, which a rotation may have replaced since; `nil`
    /// for a store without a file.
    func cipher(of connection: Connection) throws(StoreError) -> FileCipher? {
        guard file != nil else { return nil }
        let open = try connection.fileState()
        return FileCipher(key: open.key.copy(), profile: open.profile)
    }

    /// Returns the store's file, for work that cannot be done without one.
    ///
    /// - Parameter reason: Why a store without a file cannot do it; part of the error's message.
    /// - Throws: `.unsupported` if the store has no file.
    func requireFile(_ reason: String) throws(StoreError) -> StoreFile {
        guard let file else {
            throw StoreError(
                .unsupported, "the store has no file: \(reason)",
                hint: "Copy it into one with backup(to:key:).")
        }
        return file
    }

    /// Changes the key of the file, and makes the new key that of the store. Closes all readers,
    /// which have the old key; new ones open on demand.
    ///
    /// Only for a caller that keeps everything else from using the store.
    ///
    /// - Returns: The report; otherwise the error, and which key is valid.
    func rekey(
        to newKey: borrowing StoreKey, _ keyring: Rekey.KeyringPolicy
    ) -> Result<RekeyReport, RekeyFailure> {
        Result { () throws(RekeyFailure) in
            let writer = try RekeyFailure.wrapping { () throws(StoreError) in
                try openOnlyWriter()
            }
            let change = try writer.changeKey(to: newKey, keyring)
            file?.rememberKey(of: change.file)
            writerKeyGeneration = file?.keyGeneration ?? 0
            return change.report
        }
    }

    /// Changes the key of the file to that of another epoch. Running reads go on under the old key,
    /// and their connections close when they end.
    ///
    /// Only for the holder of the write gate, while no checkpoint of this store runs.
    ///
    /// - Parameter epoch: Higher than every epoch that the store has had.
    /// - Returns: The report, before the WAL is moved; otherwise the error, and which key is valid.
    func rotate(
        to epoch: UInt32, of keyring: OpenKeyring, under root: borrowing RootKey
    ) throws(RekeyFailure) -> RekeyReport {
        let file = try RekeyFailure.wrapping { () throws(StoreError) in
            try requireFile("it has no keyring")
        }
        let writer = try RekeyFailure.wrapping { () throws(StoreError) in try currentWriter() }
        let key = root.dataKey(epoch: epoch, id: file.cipher.key.salt).storeKey()
        let next = keyring.inEpoch(epoch, rootID: root.id(for: file.cipher.key.salt))
        let report = try file.rotate(to: next) { () throws(RekeyFailure) in
            try writer.changeKey(to: key, .keep)
        }
        writerKeyGeneration = file.keyGeneration
        closeReaders()
        return report
    }

    /// Closes all readers, and does what `Connection.finishRekey()` does on the writer: moves the
    /// pages that a key change left in the WAL, and counts those that still have another key.
    ///
    /// - Throws: `.unsupported` for a store without a file; otherwise as
    ///   `Connection.finishRekey()`.
    func finishRekey() throws(StoreError) -> RekeyReport {
        try openOnlyWriter().finishRekey()
    }

    /// Closes all readers, and returns the writer, opened again if necessary.
    ///
    /// - Throws: `.unsupported` for a store without a file; otherwise as `openWriter()`.
    private func openOnlyWriter() throws(StoreError) -> Connection {
        _ = try requireFile("its key is random, and nobody knows it")
        closeReaders()
        return try openWriter()
    }

    /// Opens the writer again with another key, closes all readers, and makes that key the store's.
    ///
    /// - Throws: `.unsupported` for a store without a file; `.alreadyOpen` if another store of
    ///   this process has the file; `.wrongKey` and other errors of opening. The old connections
    ///   and the old key then stay.
    func reopen(with key: borrowing StoreKey) throws(StoreError) {
        let file = try requireFile("its key is random, and nobody knows it")
        let state = try replaceWriter(in: file) { (cacheByteCount) throws(StoreError) in
            try file.open(with: key, cacheByteCount: cacheByteCount)
        }
        closeReaders()
        file.rememberKey(of: state)
        writerKeyGeneration = file.keyGeneration
    }
}
