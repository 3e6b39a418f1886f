import CEngine
import Foundation
import Workloads

/// An unexpected result code of the engine.
struct Failure: Error {
    let code: Int32
}

/// One connection and its prepared statements.
final class Database {
    private(set) var raw: OpaquePointer?
    private var begin: Prepared?
    private var commit: Prepared?

    init(_ run: Run, isNew: Bool) throws {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        try check(sqlite3_open_v2(run.path, &raw, flags | SQLITE_OPEN_PRIVATECACHE, nil))
        try check(Run.keyText.withCString { sqlite3_key_v2(raw, "main", $0, 99) })
        if sqlite3_libversion_number() < 3_030_000 {
            try execute("PRAGMA cipher_page_size = 4096")
            try execute("PRAGMA kdf_iter = 256000")
        }
        try execute("PRAGMA temp_store = MEMORY")
        try execute("PRAGMA foreign_keys = ON")
        try execute("PRAGMA cache_size = -\(run.cacheByteCount >> 10)")
        try execute("PRAGMA journal_mode = WAL")
        try execute("PRAGMA synchronous = \(run.isDurable ? "FULL" : "NORMAL")")
        if isNew {
            try execute(Tables.item)
            try execute(Tables.entry)
        }
        begin = try Prepared(self, "BEGIN IMMEDIATE")
        commit = try Prepared(self, "COMMIT")
        try describe(run)
    }

    private func describe(_ run: Run) throws {
        run.describe("sqlite_version", String(cString: sqlite3_libversion()))
        for name in Tables.settings {
            let pragma = try Prepared(self, "PRAGMA \(name)")
            if try pragma.step() {
                run.describe(name, String(cString: sqlite3_column_text(pragma.raw, 0)))
            }
        }
    }

    func execute(_ sql: String) throws { try check(sqlite3_exec(raw, sql, nil, nil, nil)) }

    func transaction<T>(_ body: () throws -> T) throws -> T {
        try begin?.run()
        let result = try body()
        try commit?.run()
        return result
    }

    func close() throws {
        begin = nil
        commit = nil
        try check(sqlite3_close(raw))
    }
}

/// One prepared statement.
final class Prepared {
    private(set) var raw: OpaquePointer?

    init(_ database: Database, _ sql: String) throws {
        try check(sqlite3_prepare_v2(database.raw, sql, -1, &raw, nil))
    }

    deinit { sqlite3_finalize(raw) }

    func step() throws -> Bool {
        let code = sqlite3_step(raw)
        guard code == SQLITE_ROW || code == SQLITE_DONE else { throw Failure(code: code) }
        return code == SQLITE_ROW
    }

    /// Runs a statement without rows.
    func run() throws {
        let code = sqlite3_step(raw)
        sqlite3_reset(raw)
        guard code == SQLITE_DONE else { throw Failure(code: code) }
    }
}

@inline(__always)
func check(_ code: Int32) throws {
    guard code == SQLITE_OK else { throw Failure(code: code) }
}

/// SQLITE_TRANSIENT, a cast that Swift does not import: the engine copies the bytes.
let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
