import Coffer
import Foundation

/// The symbols in the tables of ComingFromFMDB, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the tables, and the words with the code.
private enum FMDBSymbols {
    // No symbols of Coffer: `%`, `:a`, `@a`, `$a`, `nil`, `Sendable`, `Decodable`, `coffer`,
    // `sqlite3_get_autocommit`, `sqlite3_close_v2`, `P35`

    static func opening(_ file: String) throws {
        // `Configuration`, `Configuration.vfs`, `Configuration.maximumReaderCount`
        var configuration = Configuration()
        configuration.vfs = nil
        configuration.maximumReaderCount = 8
        // `Configuration.prepare`
        configuration.prepare = { connection in try connection.registerRegexp() }
        // `tokenizerModules = ["fmdb"]`
        configuration.tokenizerModules = ["fmdb"]
        // `OpenMode`
        let openMode: OpenMode = .mustExist
        // `Connection`, `Connection/init(path:key:mode:configuration:)`
        let connection: Connection = try Connection(
            path: file, key: .passphrase("text"), mode: openMode, configuration: configuration)
        // `Connection/setKey(_:)`
        try Connection(path: file).setKey(.passphrase("text"))
        // `Connection.rekey(to:)`
        _ = try connection.rekey(to: .passphrase("text"))
        // `Location/temporary`, `Location/memory`
        for location in [Location.temporary, Location.memory] { _ = try Connection(location) }
        // `Connection/check()`, `check()`
        try connection.check()
        // `Connection/busyPolicy`
        connection.busyPolicy = .none
        // `interruptHandle`
        connection.interruptHandle.interrupt()
        // `Connection/trace(includingValues:_:)`
        try connection.trace(includingValues: false) { _ in }
        // `Connection/close()`
        connection.close()
    }

    static func statements(_ connection: Connection, _ value: Int) throws {
        // `Connection/execute(_:)`, `execute`, `execute("… \(value)")`
        _ = try connection.execute("UPDATE t SET a = \(value)")
        // `SQL/init(text:arguments:)`, `Value`, `String`
        let text: String = "SELECT ?"
        _ = SQL(text: text, arguments: [Value.integer(1)])
        // `SQL/init(text:named:isStrict:)`
        _ = SQL(text: "SELECT :a", named: ["a": 1], isStrict: true)
        // `Connection/rows(_:)`
        _ = try connection.rows("SELECT 1")
        // `Connection/cursor(_:)`, `Cursor/next()`, `next`
        let cursor: Cursor = try connection.cursor("SELECT 1")
        _ = try cursor.next()
        // `step`
        _ = try cursor.step()
        // `Cursor/withBytes(at:_:)`
        _ = try cursor.withBytes(at: 0) { bytes in bytes.count }
        // `Connection/executeScript(_:)`
        try connection.executeScript("SELECT 1; SELECT 2")
        // `Connection/lastInsertedRowID`
        _ = connection.lastInsertedRowID
        // `Connection/checkpoint(_:in:)`
        _ = try connection.checkpoint(.truncate, in: "main")
        // `register(function:)`
        try connection.register(function: "one") { _ in 1 }
    }

    static func rows(_ row: Row) throws {
        // `row.get("name")`
        let name: String = try row.get("name")
        // `row.coerced`, `coerced`
        _ = row.coerced
        // `get(_:as: Data.self)`
        _ = try row.get(name, as: Data.self)
        // `Row/dictionary`, `Row/pairs`
        _ = row.dictionary[name] == row.pairs.first?.value
        // `decode`
        struct Title: Decodable { let title: String }
        _ = try row.decode(Title.self)
        // `DateEncoding`
        _ = try row.date("created", as: DateEncoding.fmdb)
    }

    static func transactions(_ connection: Connection) throws {
        // `Connection/transaction(_:_:)`, `.immediate`
        try connection.transaction(.immediate) {
            // `Connection/savepoint(_:)`
            try connection.savepoint { _ = try connection.rows("SELECT 1") }
        }
        // `begin`, `commit`
        try connection.begin()
        try connection.commit()
        // `Connection/isInTransaction`
        _ = connection.isInTransaction
    }

    static func stores(_ interruption: Interruption) throws {
        // `Store`, `Store(.memory)`
        let store: Store = try Store(.memory)
        // `store.check()`
        try store.check()
        // `store.compact()`
        _ = try store.compact()
        // `incrementalVacuum(pageCount:)`
        _ = try store.incrementalVacuum(pageCount: 100)
        // `write(mode: .deferred) { }`, `.exclusive`
        try store.write(mode: .deferred) { tx in }
        try store.write(mode: .exclusive) { tx in }
        // `store.checkpoint()`
        _ = try store.checkpoint()
        // `store.prepareConnections`
        try store.prepareConnections { connection in try connection.registerRegexp() }
        // `Interruption`
        let other: Interruption = interruption
        // `write { }`
        try store.write(interruptedBy: other) { tx in _ = try tx.rows("SELECT 1") }
        try store.write { tx in
            // `tx.savepoint { }`
            try tx.savepoint { inner in _ = try inner.execute("SELECT 1") }
            // `tx.executeScript("…")`
            try tx.executeScript("SELECT 1; SELECT 2")
            // `tx.setUserVersion(1)`
            try tx.setUserVersion(1)
            // `tx.lastInsertedRowID`, `tx.lastChangeCount`
            _ = (try tx.lastInsertedRowID, try tx.lastChangeCount)
        }
        // `read { }`
        try store.read { tx in
            // `tx.rows("…")`
            _ = try tx.rows("SELECT 1")
            // `tx.cursor("…")`
            _ = try tx.cursor("SELECT 1")
            // `tx.prepare("…")`
            _ = try tx.prepare("SELECT 1")
            // `tx.tableExists(…)`, `tx.columnExists(…)`
            _ = (try tx.tableExists("t"), try tx.columnExists("a", in: "t"))
            // `columns(of:)`, `indexes(of:)`, `foreignKeys(of:)`
            _ = (try tx.columns(of: "t"), try tx.indexes(of: "t"), try tx.foreignKeys(of: "t"))
            // `tx.userVersion`, `tx.applicationID`
            _ = (try tx.userVersion, try tx.applicationID)
            // `tx.scalar("…")`, `tx.requireScalar("…")`
            let count: Int? = try tx.scalar("SELECT 1")
            let other: Int = try tx.requireScalar("SELECT 1")
            _ = (count, other)
            // `tx.validate("…")`
            try tx.validate("SELECT 1")
        }
    }

    static func failures(_ error: any Error) -> Bool {
        // `StoreError`
        let code = (error as? StoreError)?.code
        // `.closed`, `.misuse`
        return code == .closed || code == .misuse
    }

    static func fullText(_ connection: Connection, _ text: String) throws {
        // `Connection/register(tokenizer:named:)`, `WordTokenizer`
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        // `Tokenizer`, `StopWordTokenizer`
        let tokenizer: some Tokenizer = StopWordTokenizer(words: ["a"], base: WordTokenizer())
        _ = tokenizer
        // `Connection/fullText(_:on:in:)`
        try connection.fullText(.optimize, on: "note", in: "main")
        // `TextMatch`, `range(in:)`
        _ = try TextMatch.parse("0 0 0 1").map { $0.range(in: text) }
    }

    static func tables(_ connection: Connection, _ steps: [VersionStep]) throws {
        // `ColumnDefinition`
        let column = ColumnDefinition("a", .text)
        // `Connection/createTable(_:_:ifNotExists:)`
        try connection.createTable("t", [column], ifNotExists: true)
        // `Connection/createIndex(on:columns:isUnique:ifNotExists:name:)`
        _ = try connection.createIndex(
            on: "t", columns: ["a"], isUnique: true, ifNotExists: true, name: "a")
        // `Connection/insert(into:_:)`
        _ = try connection.insert(into: "t", ["a": "b"])
        // `Connection/update(_:set:where:)`, `.all`
        _ = try connection.update("t", set: ["a": "c"], where: .all)
        // `Connection/delete(from:where:)`
        _ = try connection.delete(from: "t", where: ["a": "c"])
        // `Connection/upsert(into:_:onConflict:)`
        _ = try connection.upsert(into: "t", ["a": "d"], onConflict: ["a"])
        // `Connection/migrate(byUserVersion:)`
        _ = try connection.migrate(byUserVersion: steps)
        // `Connection/addColumnIfMissing(_:to:)`
        _ = try connection.addColumnIfMissing(column, to: "t")
    }
}
