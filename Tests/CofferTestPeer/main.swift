// The second process of the tests: it holds locks, is killed, runs out of room.
//
// Keys are numbered, so that none is in an argument list: key 3 is 32 bytes of 3.
// It writes one word a line: `ready` when it holds what it should, or an error's code.

import CSQLCipher
import Foundation
import Logging
import Synchronization
import Workload

@testable import Coffer

// nonisolated(unsafe): this program has one thread.
nonisolated(unsafe) var arguments = Array(CommandLine.arguments.dropFirst())

func next() -> String { arguments.isEmpty ? "" : arguments.removeFirst() }
/// Writes a line at once: `print` would keep it in a buffer that a kill throws away.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}

func nextKey() -> StoreKey { .raw([UInt8](repeating: UInt8(next()) ?? 0, count: 32)) }
func waitForInput() { _ = readLine() }

func configuration(_ journalMode: String) -> Configuration {
    var configuration = Configuration()
    configuration.journalMode =
        journalMode == "existing" ? .existing : journalMode == "delete" ? .delete : .wal
    configuration.busyTimeout = .milliseconds(200)
    return configuration
}

/// Prints what the work returns, or the code of its error with the pages.
func report(_ work: () throws -> String) {
    do {
        say(try work())
    } catch let error as StoreError {
        say("\(error.code)")
        FileHandle.standardError.write(Data("\(error)\n".utf8))
    } catch {
        say("unexpected \(error)")
    }
}

/// Prints the error that ends the work, in one line.
func sayError(_ work: () throws -> Void) {
    do {
        try work()
    } catch {
        say("\(error)".replacingOccurrences(of: "\n", with: " "))
    }
}

func connection(_ journalMode: String) throws -> Connection {
    let path = next()
    return try Connection(path: path, key: nextKey(), configuration: configuration(journalMode))
}

/// Holds a lock until a line comes: BEGIN IMMEDIATE, or a row of a SELECT.
func hold(_ mode: TransactionMode, _ sql: SQL) {
    report {
        let connection = try connection(next())
        try connection.transaction(mode) {
            try connection.execute(sql)
            say("ready")
            waitForInput()
        }
        return "released"
    }
}

func limitFileSize(_ byteCount: Int) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: rlim_t(byteCount), rlim_max: rlim_t(byteCount))
    setrlimit(__rlimit_resource_t(UInt32(RLIMIT_FSIZE.rawValue)), &limit)
}

/// Alters a table of whose rows the disk cannot hold a second copy, then prints what is there.
func alterUntilFull() throws -> String {
    let configuration = configuration(next())
    let store = try Store(path: next(), key: nextKey(), configuration: configuration)
    func rows() throws -> [Row] {
        try store.read { tx in try tx.rows("SELECT count(*), total(length(v)) FROM t") }
    }
    let before = try rows().first?.values
    do {
        try store.migrate([
            Migration("m") { tx in try tx.table("t").renameColumn("v", to: "w") }
        ])
        return "no error came"
    } catch let error as StoreError {
        say("\(error.code)")
        return try rows().first?.values == before ? "kept" : "lost"
    }
}

/// Writes until an error comes, then prints what is there.
func writeUntilFull(_ connection: Connection) throws -> String {
    let before = try connection.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self) ?? -1
    do {
        try connection.transaction {
            for _ in 0..<4000 {
                try connection.execute(
                    "INSERT INTO t(v) VALUES (\([UInt8](repeating: 1, count: 4000)))")
            }
        }
        return "no error came"
    } catch let error as StoreError {
        let after = try connection.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self) ?? -2
        say("\(error.code)")
        return before == after ? "kept" : "lost"
    }
}

func copy(_ kind: String, _ path: String, _ target: String) throws {
    switch kind {
    case "encrypt":
        try Store.encrypt(plaintextAt: path, to: target, key: nextKey())
    case "upgrade":
        try Store.upgrade(from: path, key: nextKey(), to: target)
    case "decrypt":
        try Store(path: path, key: nextKey()).decrypt(to: target)
    default:
        try Store(path: path, key: nextKey()).backup(to: target)
    }
}

func rekey(_ connection: Connection) throws -> String {
    let key = nextKey()
    do {
        try connection.rekey(to: key)
        return "rekeyed"
    } catch let error as StoreError {
        let count = try connection.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self) ?? -1
        say("\(error.code)")
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        return "rows \(count)"
    }
}

/// A store that waits for the other process instead of failing.
func patientStore(_ cache: BucketCache? = nil, _ clock: HandClock? = nil) throws -> Store {
    let path = next()
    let key = nextKey()
    var configuration = configuration(next())
    configuration.durability = next() == "power" ? .power : .process
    configuration.busyTimeout = .seconds(20)
    configuration.bucketCache = cache
    if let clock {
        configuration.expirySweepInterval = nil
        configuration.currentDate = { clock.date }
    }
    return try Store(path: path, key: key, mode: .mustExist, configuration: configuration)
}

/// Reads on every core at once, and returns whether tasks go on during that.
func readEndlessly() throws -> String {
    var configuration = configuration(next())
    let coreCount = ProcessInfo.processInfo.activeProcessorCount
    configuration.maximumReaderCount = coreCount
    let store = try Store(
        path: next(), key: nextKey(), mode: .mustExist, configuration: configuration)
    for _ in 0..<coreCount {
        Task {
            try await store.read { tx in
                _ = try tx.rows(
                    """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                    SELECT count(*) FROM n
                    """)
            }
        }
    }
    let isOver = DispatchSemaphore(value: 0)
    Task {
        while store.statistics.readerInUseCount < coreCount {
            try await Task.sleep(for: .milliseconds(1))
        }
        // Enough tasks to reach all threads that tasks have.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 * coreCount {
                group.addTask {
                    for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(1)) }
                }
            }
        }
        isOver.signal()
    }
    return isOver.wait(timeout: .now() + 60) == .success ? "tasks went on" : "tasks stood still"
}

/// Runs its part of each requested history; each begins at a time that both processes know.
func runHistories(_ clients: RegisterClients) {
    say("ready")
    while let line = readLine() {
        let numbers = line.split(separator: " ").compactMap { UInt64($0) }
        guard numbers.count == 3 else { return }
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            let operations = await clients.run(
                seed: numbers[0], operationCount: Int(numbers[1]), from: numbers[2])
            for operation in operations { say(operation.line) }
            say("end")
            isDone.signal()
        }
        isDone.wait()
    }
}

switch next() {
case "ledger":
    // Writes without end, and reports each write that returned; `early` reports before the commit.
    report {
        let tellsEarly = next() == "early"
        let writers = LedgerWriters(store: try patientStore(), tellsEarly: tellsEarly) { entry in
            say("\(entry.worker) \(entry.number)")
        } fail: { error in
            say("unexpected \(error)")
        }
        try writers.start()
        say("ready")
        waitForInput()
        return "released"
    }
case "replicate":
    let tellsEarly = next() == "early"
    let mode = next()
    let path = next()
    report {
        let work = ReplicatorWork(rawValue: next()) ?? .plain
        let store = try Store(path: path, key: work.key(), configuration: configuration(mode))
        return try replicate(store, to: next(), work, tellsEarly: tellsEarly)
    }
case "write-foreign":
    sayError { say(try writeForeign()) }
case "replicate-foreign":
    sayError { say(try replicateForeign()) }
case "replicate-large":
    report { try replicateLarge() }
case "own-log":
    report { try ownLog() }
case "registers":
    report {
        let isStale = next() == "stale"
        let place = RegisterPlace(rawValue: next()) ?? .table
        let cache = next() == "cached" ? BucketCache(maximumCount: 10) : nil
        let clients = RegisterClients(
            store: try patientStore(cache), firstClient: RegisterClients.clientCount, place: place,
            isStale: isStale)
        runHistories(clients)
        return "released"
    }
case "bucket-verbs":
    report {
        let isLying = next() == "lying"
        let isOfTexts = next() == "texts"
        let cache = next() == "cached" ? BucketCache(maximumCount: 12) : nil
        let clock = HandClock()
        let store = try patientStore(cache, clock)
        if isOfTexts {
            try runVerbs(BucketVerbs(BucketModel(.texts), store, clock), isLying: isLying)
        } else {
            try runVerbs(BucketVerbs(BucketModel(.integers), store, clock), isLying: isLying)
        }
        return "released"
    }
case "rotation-writer":
    sayError { try writeWhileRotated() }
case "rotation-reader":
    sayError { try readWhileRotated() }
case "rotation":
    sayError { try rotateWithoutEnd() }
case "replace-root":
    sayError { try replaceRoot() }
case "hold-write":
    hold(.immediate, "SELECT 1")
case "hold-read":
    hold(.deferred, "SELECT count(*) FROM t")
case "hold-schema":
    hold(.deferred, "SELECT count(*) FROM sqlite_master")
case "rekey":
    // The cache is so small that pages reach the disk before the end.
    report {
        var configuration = configuration(next())
        configuration.maximumCacheByteCount = 1
        let path = next()
        let connection = try Connection(path: path, key: nextKey(), configuration: configuration)
        say("ready")
        waitForInput()
        return try rekey(connection)
    }
case "compact":
    report { try compact() }
case "compact-held":
    report { try compactHeld() }
case "compact-stepwise":
    report { try compactStepwise() }
case "compact-struck":
    report { try compactStruck() }
case "vacuum-held":
    report { try vacuumHeld() }
case "sort-on-disk":
    report { try sortOnDisk() }
case "write-limited":
    report {
        let byteCount = Int(next()) ?? 0
        let connection = try connection(next())
        limitFileSize(byteCount)
        return try writeUntilFull(connection)
    }
case "rekey-limited":
    report {
        let byteCount = Int(next()) ?? 0
        let connection = try connection(next())
        limitFileSize(byteCount)
        return try rekey(connection)
    }
case "write-until-full":
    report { try writeUntilFull(try connection(next())) }
case "alter-until-full":
    report { try alterUntilFull() }
case "rekey-with-salt":
    // Changes the key and the salt at once with the engine alone, which Coffer refuses.
    report {
        var configuration = configuration(next())
        configuration.maximumCacheByteCount = 1
        let path = next()
        let connection = try Connection(path: path, key: nextKey(), configuration: configuration)
        say("ready")
        waitForInput()
        let (handle, profile) = (try connection.current(), try connection.ownProfile())
        let salt = [UInt8](repeating: 7, count: RawKey.saltByteCount)
        let key = try KeyDerivation.rawKey(from: nextKey(), salt: salt, profile: profile)
        key.withKeyText { text in
            _ = sqlite3_rekey_v2(handle.db, "main", text.baseAddress, Int32(text.count))
        }
        return "rekeyed"
    }
case "rekey-undone":
    report {
        let path = next()
        let connection = try Connection(
            path: path, key: nextKey(), configuration: configuration("delete"))
        return rekeyUndone(connection, at: path, to: nextKey())
    }
case "temporary-files":
    report {
        var configuration = configuration(next())
        configuration.maximumCacheByteCount = 1
        let path = next()
        let connection =
            path.isEmpty
            ? try Connection(.temporary, configuration: configuration)
            : try Connection(path: path, key: nextKey(), configuration: configuration)
        let files = try temporaryFiles(connection, of: path)
        return "files " + files.sorted().joined(separator: " ")
    }
case "keyring":
    report { try keyringVerb() }
case "restore-killed":
    report { try restoreKilled() }
case "rekey-now":
    report { try rekey(try connection(next())) }
case "open-as-nobody":
    // Root may write every file; `nobody` may not.
    if getuid() == 0 { setuid(65534) }
    report {
        let mode: OpenMode = next() == "read-only" ? .readOnly : .mustExist
        let path = next()
        let store = try Store(
            path: path, key: nextKey(), mode: mode, configuration: configuration(next()))
        let count = try store.read { tx in
            try tx.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self)
        }
        return "rows \(count ?? -1)"
    }
case "derivations":
    report {
        let path = next()
        var configuration = configuration("wal")
        configuration.profile = .sqlcipher3
        for _ in 0..<2 {
            let store = try Store(
                path: path, key: .passphrase("one two three"), configuration: configuration)
            // As many as may run at once: each waits in its body for the others.
            let count = configuration.maximumReaderCount
            let (entered, left) = (DispatchGroup(), DispatchGroup())
            // Counted before the first begins, because an empty group lets everybody through.
            for _ in 0..<count {
                entered.enter()
                left.enter()
            }
            for _ in 0..<count {
                Thread.detachNewThread {
                    defer { left.leave() }
                    do {
                        try store.read { tx in
                            _ = try tx.rows("SELECT 1")
                            entered.leave()
                            entered.wait()
                        }
                    } catch {
                        // The others must not wait for one that never comes.
                        say("\(error)")
                        entered.leave()
                    }
                }
            }
            left.wait()
            let readerCount = store.statistics.openReaderCount
            say("\(readerCount) readers, \(KeyDerivation.derivationCount) derivations")
            try store.close()
        }
        exit(0)
    }
case "open-many":
    // Opens stores in a folder until one cannot be opened, and prints why; then uses the others.
    let mode = next()
    let folder = next()
    var stores: [Store] = []
    do {
        while stores.count < 1000 {
            let path = "\(folder)/\(stores.count).db"
            let key = StoreKey.raw([UInt8](repeating: 1, count: 32))
            stores.append(try Store(path: path, key: key, configuration: configuration(mode)))
        }
    } catch {
        say("\(error)")
    }
    for store in stores.prefix(2) {
        do { _ = try store.read { tx in try tx.rows("SELECT 1") } } catch { say("\(error)") }
    }
    // With room again, the same store opens.
    let count = stores.count
    try stores.popLast()?.close()
    try stores.popLast()?.close()
    report {
        let path = "\(folder)/\(count).db"
        try Store(path: path, key: .raw([UInt8](repeating: 1, count: 32))).close()
        return "opened"
    }
case "tenants":
    // Serves many users through a pool, whose stores are more than may be open.
    report { try withTasks { try await serveTenants() } }
case "measure-tenants":
    report { try withTasks { try await measureTenants() } }
case "locked-memory":
    // Opens two stores under a logger, and prints the second one's statistics.
    report {
        var configuration = configuration("wal")
        configuration.logger = Logger(label: "test") { _ in LogLines() }
        let key = next()
        var isLocked = true
        for path in [next(), next()] {
            let bytes = [UInt8](repeating: UInt8(key) ?? 0, count: 32)
            let store = try Store(path: path, key: .raw(bytes), configuration: configuration)
            isLocked = store.statistics.isKeyMemoryLocked
            try store.close()
        }
        return "locked \(isLocked)"
    }
case "metrics":
    report {
        var configuration = configuration("wal")
        configuration.checkpointPageCount = 1
        // All waiting writes share a commit, however slow the machine is.
        configuration.groupCommit.maximumDuration = .seconds(60)
        let backend = bootstrapMetrics()
        let store = try Store(path: next(), key: nextKey(), configuration: configuration)
        return try compareMetrics(backend, store)
    }
case "stream":
    report {
        var configuration = configuration("wal")
        configuration.maximumCacheByteCount = 1
        let way = next()
        let store = try Store(path: next(), key: nextKey(), configuration: configuration)
        if way == "fill" { return try fillPages(store) }
        return try measureStreaming(store, isStored: way == "stored")
    }
case "keyring-full":
    report { try useKeyringOnFullDisk() }
#if os(Linux)
case "memory-of-keyring":
    report { try lookForSecretsOfKeyring() }
#endif
case "spool":
    report { try streamIntoFullDisk() }
case "upload":
    report { try uploadIntoFullDisk() }
case "read-endlessly":
    report { try readEndlessly() }
case "spill":
    // Changes more than the cache holds, so that pages and a hot journal reach the disk.
    report {
        var configuration = configuration("delete")
        configuration.maximumCacheByteCount = 1
        let path = next()
        let connection = try Connection(path: path, key: nextKey(), configuration: configuration)
        try connection.transaction {
            try connection.execute("UPDATE t SET v = zeroblob(3000)")
            say("ready")
            waitForInput()
        }
        return "released"
    }
case "copy":
    // Makes a copy of any kind in the folder of the second path; prints what is left there.
    report {
        let kind = next()
        let (path, target) = (next(), next())
        defer {
            let folder = URL(filePath: target).deletingLastPathComponent().path
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            say("files \(names.sorted().joined(separator: " "))")
        }
        try copy(kind, path, target)
        return "copied"
    }
case "copy-held":
    report {
        let kind = next()
        let (path, target) = (next(), next())
        return try copyHeld(kind, path, target)
    }
case "write-rows":
    // Writes this many single rows when a line comes; prints each that returned.
    report {
        let store = try patientStore()
        let count = Int(next()) ?? 0
        say("ready")
        waitForInput()
        for number in 0..<count {
            try store.write { tx in
                try tx.execute("INSERT INTO t(v) VALUES (\(1_000_000 + number))")
            }
            if number < count - 1 { say("wrote") }
        }
        return "wrote"
    }
case "execute":
    report {
        let connection = try connection(next())
        try connection.executeScript(next())
        return "executed"
    }
case "insert":
    report {
        let connection = try connection(next())
        try connection.execute("INSERT INTO t(v) VALUES (\(next()))")
        return "inserted"
    }
case "write-reopening":
    // Opens, writes one row, closes, until a line comes; prints each row whose write returned.
    let path = next()
    let key = UInt8(next()) ?? 0
    var configuration = configuration("wal")
    configuration.journalMode = .existing
    configuration.busyTimeout = .seconds(5)
    let isToEnd = Atomic(false)
    Thread.detachNewThread {
        waitForInput()
        isToEnd.store(true, ordering: .relaxed)
    }
    var number = 0
    while !isToEnd.load(ordering: .relaxed) {
        number += 1
        do {
            let connection = try Connection(
                path: path, key: .raw([UInt8](repeating: key, count: 32)), mode: .mustExist,
                configuration: configuration)
            try connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
            connection.close()
            say("wrote")
        } catch let error as StoreError where error.code == .busy {
            continue
        } catch {
            say("\(error)")
            break
        }
    }
case "trace":
    // Prints all SQL that the engine runs on any connection, while keys are used.
    typealias EntryPoint =
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    let entry: EntryPoint = { db, _, _ in
        sqlite3_trace_v2(
            db, UInt32(SQLITE_TRACE_STMT),
            { _, _, statement, text in
                let expanded = sqlite3_expanded_sql(OpaquePointer(statement))
                if let expanded { say(String(cString: expanded)) }
                sqlite3_free(expanded)
                if let text { say(String(cString: text.assumingMemoryBound(to: CChar.self))) }
                return 0
            }, nil)
    }
    // "the xEntryPoint … is invoked … as if it were declared with three arguments":
    // https://www.sqlite.org/c3ref/auto_extension.html
    sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self))
    report {
        let path = next()
        let secrets = [readLine() ?? "", readLine() ?? ""]
        var configuration = configuration("wal")
        configuration.profile = .sqlcipher3
        let store = try Store(
            path: path, key: .passphrase(secrets[0]), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE traced(v)") }
        try store.rekey(to: .passphrase(secrets[1]))
        _ = try store.verify()
        try store.backup(to: path + "-backup", key: .passphrase(secrets[0]))
        try store.close()
        try Store.upgrade(
            from: path, key: .passphrase(secrets[1]), to: path + "-upgraded")
        return "done"
    }
default:
    say("unknown verb")
    exit(2)
}
