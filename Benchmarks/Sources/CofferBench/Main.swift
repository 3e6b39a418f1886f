import Coffer
import Workloads

/// Coffer, layer by layer: `coffer-record`, `coffer-fast`, `coffer-connection`, `coffer-bucket`;
/// `coffer-ungrouped`, whose writes share no commit; `coffer-cached`, which keeps decoded values;
/// and `coffer-keyring`, which a key file opens.
@main struct Main {
    static func main() throws {
        let run = Run()
        switch (run.system, run.workload) {
        case ("coffer-record", "W1"), ("coffer-fast", "W1"), ("coffer-keyring", "W1"):
            try StoreRecords(run).insert()
        case ("coffer-record", "W2"), ("coffer-record", "W2d"), ("coffer-fast", "W2"),
            ("coffer-fast", "W2d"):
            try StoreRecords(run).fetch()
        case ("coffer-record", "W3"), ("coffer-fast", "W3"): try StoreRecords(run).find()
        case ("coffer-record", "W3-many"), ("coffer-fast", "W3-many"):
            try StoreRecords(run).findMany()
        case ("coffer-record", "W4"), ("coffer-fast", "W4"): try StoreRecords(run).update()
        case ("coffer-record", "W2-borrow"): try StoreRecords(run).scan()
        case ("coffer-record", "W6-single"), ("coffer-keyring", "W6-single"):
            try StoreRecords(run).insertDurably()
        case ("coffer-record", "W6-async64"), ("coffer-ungrouped", "W6-async64"):
            Run.wait { try await StoreRecords(run).insertAtOnce() }
        case ("coffer-record", "W6-latency"):
            Run.wait { try await StoreRecords(run).insertAndFindAtOnce() }
        case ("coffer-record", "W6-beside"): try Queue(run).writeBesideRead()
        case ("coffer-record", "W6-beside-4mb"):
            try Queue(run).writeBesideRead(walByteCount: 4 << 20)
        case ("coffer-record", "read-one"): try Queue(run).readOne()
        case ("coffer-record", "read-empty"): try Queue(run).readNothing()
        case ("coffer-record", "watch-nobody"): try watched(run, .nobody)
        case ("coffer-record", "watch-value"): try watched(run, .value)
        case ("coffer-record", "watch-changes"): try watched(run, .changes)
        case ("coffer-record", "watch-log"): try watched(run, .log)
        case ("coffer-record", "observers-1000"):
            Run.wait { try await Observers(run).write() }
        case ("coffer-record", "idle"): try Queue(run).holdIdle()
        case ("coffer-record", "open-raw"), ("coffer-keyring", "open-raw"):
            try Files(run).open(run.storeKey, readers: 0)
        case ("coffer-record", "open-passphrase"):
            try Files(run).open(.passphrase(Run.passphrase), readers: 0)
        case ("coffer-record", "open-pool-raw"), ("coffer-keyring", "open-pool-raw"):
            try Files(run).open(run.storeKey, readers: 4)
        case ("coffer-record", "open-pool-passphrase"):
            try Files(run).open(.passphrase(Run.passphrase), readers: 4)
        case ("coffer-keyring", "rotate"): try Rotation(run).rotate()
        case ("coffer-keyring", "serve-rotating"):
            Run.wait { try await Rotation(run).serve() }
        case ("coffer-record", "rekey"): try Files(run).rekey()
        case ("coffer-record", "verify"): try Files(run).verify()
        case ("coffer-record", "compact"): try Files(run).compact()
        case ("coffer-record", "growth-insert"): try Growth(run).insert()
        case ("coffer-record", "growth-get"): try Growth(run).get()
        case ("coffer-record", "growth-scan"): try Growth(run).scan()
        case ("coffer-record", "growth-open"): try Growth(run).open()
        case ("coffer-record", "growth-index"): try Growth(run).findByName()
        case ("coffer-record", "growth-range"): try Growth(run).findRanges()
        case ("coffer-record", "growth-group"): try Growth(run).group()
        case ("coffer-record", "growth-verify"): try Growth(run).verify()
        case ("coffer-record", "flights-import"), ("coffer-fast", "flights-import"):
            try Flights(run).insert()
        case ("coffer-record", "flights-fetch"), ("coffer-fast", "flights-fetch"):
            try Flights(run).fetch()
        case ("coffer-record", "flights-questions"), ("coffer-fast", "flights-questions"):
            try Flights(run).ask()
        case ("coffer-record", "refs-left"), ("coffer-fast", "refs-left"):
            try References(run).join()
        case ("coffer-record", "refs-all"), ("coffer-fast", "refs-all"):
            try References(run).include()
        case ("coffer-record", "refs-group"), ("coffer-fast", "refs-group"):
            try References(run).group()
        case ("coffer-record", let name) where name.hasPrefix("price"),
            ("coffer-fast", let name) where name.hasPrefix("price"):
            try Prices(run).fetch()
        case ("coffer-connection", "W1"): try ConnectionRecords(run).insert()
        case ("coffer-connection", "W2"), ("coffer-connection", "W2d"):
            try ConnectionRecords(run).fetch()
        case ("coffer-connection", "W1-bind"): try BorrowedRows(run).insert()
        case ("coffer-connection", "W2-borrow"): try BorrowedRows(run).scan()
        case ("coffer-connection", "W3"): try ConnectionRecords(run).find()
        case ("coffer-connection", "W4"): try ConnectionRecords(run).update()
        case ("coffer-connection", "W6-single"): try ConnectionRecords(run).insertDurably()
        case ("coffer-connection", "W5-put"): try ConnectionEntries(run).put()
        case ("coffer-connection", "W5-get"): try ConnectionEntries(run).get()
        case ("coffer-bucket", "W5-put"): try StoreEntries(run).put()
        case ("coffer-bucket", "W5-get"): try StoreEntries(run).get()
        case ("coffer-bucket", "W5-get-each"), ("coffer-cached", "W5-get-each"):
            try StoreEntries(run).getEach()
        case ("coffer-bucket", "W5-get-default"): try StoreEntries(run).get()
        case ("coffer-bucket", "W5-get-bytes"): try StoreEntries(run).getBytes()
        case ("coffer-bucket", "W5-get-integers"): try StoreEntries(run).getIntegers()
        case ("coffer-bucket", "W6-set64"):
            Run.wait { try await StoreEntries(run).setAtOnce() }
        case ("coffer-bucket", "sweep-beside"): try Sweep(run).measure()
        case ("coffer-bucket", "W5-get-many"): try StoreEntries(run).getMany()
        case ("coffer-bucket", "W5-keys"): try StoreEntries(run).scanKeys()
        case ("coffer-bucket", "W5-entries"): try StoreEntries(run).scan()
        case ("coffer-bucket", "blob-in"): try StoreEntries(run).putBlobs()
        case ("coffer-bucket", "blob-out"): try StoreEntries(run).getBlobs()
        case ("coffer-bucket", "attach-in"): Run.wait { try await Attachments(run).put() }
        case ("coffer-bucket", "attach-out"): Run.wait { try await Attachments(run).get() }
        default: run.skip("not a workload of this layer")
        }
    }
}

private func watched(_ run: Run, _ watch: Watch) throws {
    Run.wait { try await Queue(run).insertWatched(watch) }
}

/// The same type for both systems: `coffer-fast` asks for its stored properties.
extension Item: Record {
    public static let access: RecordAccess =
        CommandLine.arguments.dropFirst().first == "coffer-fast" ? .storedProperties : .codable
}

extension Run {
    /// The common configuration of all systems: the cache for each connection, and what a commit
    /// survives.
    func configuration(connections: Int) -> Configuration {
        var configuration = Configuration()
        // W5-get-default is the store as it comes.
        if cacheByteCount == 0 { return configuration }
        configuration.maximumReaderCount = max(1, connections - 1)
        configuration.maximumCacheByteCount = cacheByteCount * connections
        configuration.durability = isDurable ? .power : .process
        if system == "coffer-ungrouped" { configuration.groupCommit = .off }
        if system == "coffer-cached" {
            configuration.bucketCache = BucketCache(
                maximumCount: 4 * rows, maximumByteCount: 1 << 30)
        }
        return configuration
    }

    /// The key file of `coffer-keyring`, or a raw key.
    var storeKey: StoreKey {
        let bytes = Self.key
        return system == "coffer-keyring"
            ? .keyring(.keyFile(Array(bytes.prefix(32)))) : .raw(bytes)
    }

    /// A writer and one reader, which is all that one thread uses; or more readers.
    func openStore(
        readers: Int = 1, _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = configuration(connections: 1 + readers)
        change(&configuration)
        let store = try Store(path: path, key: storeKey, configuration: configuration)
        try describe(store)
        return store
    }

    /// Prints how the writer and a reader are set up; the driver fails if they differ.
    func describe(_ store: Store) throws {
        describe("journal_mode", store.journalMode.description)
        try store.write { tx in try describe(tx) }
        try store.read { tx in try describe(tx) }
    }

    private func describe(_ tx: borrowing some Reading & ~Copyable) throws {
        describe("sqlite_version", try tx.firstRow("SELECT sqlite_version()"))
        for name in Tables.settings where name != "journal_mode" {
            describe(name, try tx.firstRow("PRAGMA \(identifier: name)"))
        }
    }

    func openConnection() throws -> Connection {
        let connection = try Connection(
            path: path, key: .raw(Run.key), configuration: configuration(connections: 1))
        describe("sqlite_version", try connection.firstRow("SELECT sqlite_version()"))
        for name in Tables.settings {
            describe(name, try connection.firstRow("PRAGMA \(identifier: name)"))
        }
        return connection
    }

    private func describe(_ key: String, _ row: Row?) {
        guard let value = row?.values.first else { return }
        describe(key, Self.text(value))
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .integer(let integer): "\(integer)"
        case .real(let real): "\(real)"
        case .text(let text): text
        default: ""
        }
    }
}
