import CFileRecorder
import CSQLCipher
import Foundation
import Workload

@testable import Coffer
@testable import CofferReplica

/// A connection that is used as a program with the engine alone does.
private final class ForeignConnection {
    private let connection: Connection
    private let db: OpaquePointer

    init(_ path: String, _ key: consuming StoreKey) throws {
        var configuration = configuration("existing")
        // Also the first look at the file waits for the programs that write to it.
        configuration.busyTimeout = .seconds(60)
        connection = try Connection(path: path, key: key, configuration: configuration)
        let handle = try connection.current()
        // The authorizer lets the connection do everything.
        handle.authorizer.isCoffer = true
        db = handle.db
        sqlite3_busy_timeout(db, 60_000)
        try run("PRAGMA wal_autocheckpoint = 20")
    }

    deinit { connection.close() }

    func run(_ sql: String) throws {
        let code = sqlite3_exec(db, sql, nil, nil, nil)
        guard code == SQLITE_OK else {
            throw WorkloadError("\(code) \(String(cString: sqlite3_errmsg(db))): \(sql)")
        }
    }

    /// Moves the WAL into the file.
    ///
    /// - Returns: Whether nobody held it up.
    func checkpoint(_ mode: Int32) -> Bool {
        sqlite3_wal_checkpoint_v2(db, "main", mode, nil, nil) == SQLITE_OK
    }
}

/// Writes numbered rows to a store as a program with the engine alone does. Checkpoints of all
/// kinds, VACUUM, and the end and beginning of connections come in between.
///
/// Prints the number of each row after its commit, then `moved N vacuums M`: how many checkpoints
/// that restart the WAL were done, and how many VACUUMs.
func writeForeign() throws -> String {
    let path = next()
    let key = nextKey()
    let (worker, seed, count) = (Int(next()) ?? 0, UInt64(next()) ?? 0, Int(next()) ?? 0)
    var random = SeededGenerator(seed: seed)
    var connection = try ForeignConnection(path, key.copy())
    var (movedCount, vacuumCount) = (0, 0)
    for number in 1...count {
        let byteCount = Int.random(in: 10...9000, using: &random)
        try connection.run(
            """
            BEGIN IMMEDIATE;
            INSERT INTO entry VALUES (\(worker), \(number), randomblob(\(byteCount)));
            UPDATE entry SET filler = randomblob(700)
                WHERE worker = \(worker) AND number = \(number / 2);
            UPDATE total SET count = count + 1 WHERE worker = \(worker);
            COMMIT
            """)
        say("\(number)")
        switch Int.random(in: 0..<24, using: &random) {
        case 0, 1: movedCount += connection.checkpoint(SQLITE_CHECKPOINT_RESTART) ? 1 : 0
        case 2, 3: movedCount += connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE) ? 1 : 0
        case 4: _ = connection.checkpoint(SQLITE_CHECKPOINT_FULL)
        case 5: _ = connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        case 6: connection = try ForeignConnection(path, key.copy())
        default: break
        }
        if number % 40 == 13 {
            try connection.run("VACUUM")
            vacuumCount += 1
        }
    }
    return "moved \(movedCount) vacuums \(vacuumCount)"
}

/// Replicates a store to a folder while a program with the engine alone writes numbered rows to it,
/// with the durability that a program gets unasked. Records each change of a file, and marks `sent
/// N` when rows 1 to N are in the folder.
func replicateForeign() throws -> String {
    let (mode, synchronous, path) = (next(), next(), next())
    let (record, remote) = (next(), next())
    let count = Int(next()) ?? 0
    let folder = URL(filePath: path).deletingLastPathComponent().path
    guard recorder_begin(folder, record, -1, 0, false) else { return "no record" }
    let connection = try ForeignConnection(path, KeyringVerb.key(0))
    try connection.run("PRAGMA synchronous = \(synchronous)")
    let store = try Store(
        path: path, key: KeyringVerb.key(0), mode: .readOnly, configuration: configuration(mode))
    let rows = SendableRows(connection)
    return try withTasks {
        var options = ReplicaOptions()
        options.interval = .seconds(3600)
        let replica = try await store.replicate(to: FolderRemote(remote), options)
        for number in 1...count {
            try rows.insert(number)
            try await replica.caughtUp()
            recorder_mark("sent \(number)")
        }
        return "done"
    }
}

private final class SendableRows: @unchecked Sendable {
    // Unchecked: one task uses it, after its maker.
    private let connection: ForeignConnection

    init(_ connection: ForeignConnection) {
        self.connection = connection
    }

    func insert(_ number: Int) throws {
        try connection.run("INSERT INTO t VALUES (\(number), randomblob(3000))")
    }
}
