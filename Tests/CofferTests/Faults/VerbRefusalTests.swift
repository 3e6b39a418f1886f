import Foundation
import Testing

@testable import Coffer

/// Verbs in situations in which they cannot do their work: each says so by the right error, and
/// nothing is lost.
@Suite(.againstHanging, .onOwnThreads) struct VerbRefusalTests {
    private struct Item: Record, Equatable {
        static let table = "t"
        var id: Int
        var version: Int
        var data: Lazy<Data>?
    }

    /// A verb, and what it does while others do what they may.
    private struct Verb: Sendable {
        let name: String
        /// While another process writes; `nil` if the verb needs no lock of its own.
        var whileBusy: StoreError.Code?
        /// When all pages but the first are damaged; `nil` if the verb reads none.
        var whenDamaged: StoreError.Code?
        var writes = false
        let call: @Sendable (Store) throws -> Void
        let callAsync: @Sendable (Store) async throws -> Void

        static func reading(
            _ name: String, whenDamaged: StoreError.Code? = .damaged,
            _ body: @escaping @Sendable (inout ReadTransaction) throws -> Void
        ) -> Verb {
            Verb(name: name, whenDamaged: whenDamaged) { store in
                try store.read { tx in try body(&tx) }
            } callAsync: { store in
                try await store.read { tx in try body(&tx) }
            }
        }

        static func writing(
            _ name: String, whenDamaged: StoreError.Code? = .damaged,
            _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
        ) -> Verb {
            Verb(name: name, whileBusy: .busy, whenDamaged: whenDamaged, writes: true) { store in
                try store.write { tx in try body(&tx) }
            } callAsync: { store in
                try await store.write { tx in try body(&tx) }
            }
        }
    }

    private static let item = Item(id: 1, version: 1)

    private static let verbs: [Verb] = [
        // It reads the schema, too.
        Verb(
            name: "check", whenDamaged: .damaged, call: { try $0.check() },
            callAsync: { try await $0.check() }),
        Verb(
            name: "incrementalVacuum", whileBusy: .busy, whenDamaged: .damaged, writes: true,
            call: { _ = try $0.incrementalVacuum(pageCount: 5) },
            callAsync: { _ = try await $0.incrementalVacuum(pageCount: 5) }),
        Verb(
            name: "checkpoint(.passive)", call: { _ = try $0.checkpoint() },
            callAsync: { _ = try await $0.checkpoint() }),
        Verb(
            name: "checkpoint(.truncate)", whileBusy: .busy,
            call: { _ = try $0.checkpoint(.truncate) },
            callAsync: { _ = try await $0.checkpoint(.truncate) }),
        Verb(
            name: "prepareConnections", whenDamaged: .damaged,
            call: { try $0.prepareConnections { _ in } },
            callAsync: { try await $0.prepareConnections { _ in } }),
        .reading("load") { tx in _ = try tx.load(\.data, of: item) },
        .reading("tableExists") { tx in _ = try tx.tableExists("t") },
        .reading("columns") { tx in _ = try tx.columns(of: "t") },
        .reading("indexes") { tx in _ = try tx.indexes(of: "t") },
        .reading("foreignKeys") { tx in _ = try tx.foreignKeys(of: "t") },
        .reading("schemaObjects") { tx in _ = try tx.schemaObjects() },
        .reading("userVersion") { tx in _ = try tx.userVersion },
        .reading("applicationID") { tx in _ = try tx.applicationID },
        .reading("validate") { tx in try tx.validate("SELECT data FROM t") },
        .writing("setUserVersion") { tx in try tx.setUserVersion(3) },
        .writing("setApplicationID") { tx in try tx.setApplicationID(3) },
        .writing("update(expecting:)") { tx in
            try tx.update(Item(id: 1, version: 2), expecting: \.version == 1)
        },
        .writing("upsert") { tx in try tx.upsert(Item(id: 1, version: 3)) },
        Verb(
            name: "read(interruptedBy:)", whenDamaged: .damaged,
            call: { store in
                try store.read(interruptedBy: Interruption()) { tx in
                    _ = try tx.rows("SELECT * FROM t")
                }
            },
            callAsync: { store in
                try await store.read { tx in _ = try tx.rows("SELECT * FROM t") }
            }),
        Verb(
            name: "write(interruptedBy:)", whileBusy: .busy, whenDamaged: .damaged, writes: true,
            call: { store in
                try store.write(interruptedBy: Interruption()) { tx in
                    _ = try tx.execute("UPDATE t SET version = 9")
                }
            },
            callAsync: { store in
                try await store.write { tx in _ = try tx.execute("DELETE FROM t") }
            }),
    ]

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A store with a schema of several pages, rows of several pages, and free pages.
    private func make(_ configuration: Configuration) throws -> Store {
        var configuration = configuration
        configuration.incrementalVacuum = true
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.executeScript(
                """
                CREATE TABLE t(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, data BLOB);
                CREATE INDEX by_version ON t(version);
                CREATE TABLE other(a REFERENCES t(id));
                """)
            for number in 0..<60 {
                try tx.execute(
                    SQL(text: "CREATE TABLE filler\(number)(\(Self.columns), CHECK(c0 > 0))"))
            }
            for number in 1...20 {
                try tx.execute("INSERT INTO t VALUES (\(number), 1, randomblob(9000))")
            }
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id BETWEEN 2 AND 10") }
        try store.checkpoint(.truncate)
        return store
    }

    private static let columns = (0..<40).map { "c\($0) INTEGER" }.joined(separator: ", ")

    private func content() throws -> [String] { try Dump.store(folder.path(), key: 1) }

    // MARK: Situations

    @Test(arguments: journalModes)
    func `of a closed store every verb is .closed`(mode: Configuration.JournalMode) async throws {
        let store = try make(.testing(mode))
        try await store.close()
        let before = try content()
        for verb in Self.verbs {
            expectCode(.closed, verb, "closed") { try verb.call(store) }
            let result = await Task { try await verb.callAsync(store) }.result
            expectCode(.closed, verb, "closed, asynchronous") { try result.get() }
        }
        #expect(try content() == before)
    }

    @Test(arguments: journalModes)
    func `a cancelled task does nothing, and throws CancellationError`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        let before = try content()
        for verb in Self.verbs {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await verb.callAsync(store)
            }
            let result = await task.result
            if case .failure(let error) = result, error is CancellationError { continue }
            Issue.record("\(verb.name): \(result)")
        }
        try await store.close()
        #expect(try content() == before)
    }

    /// Without a WAL every verb waits for the body of a write to end.
    @Test func `a task that is cancelled while it waits does not wait any longer`() async throws {
        let store = try make(.testing(.delete))
        let before = try content()
        let hold = Hold()
        let writing = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        for verb in Self.verbs {
            let task = Task { try await verb.callAsync(store) }
            try await yieldWhile { store.waitingWriteCount < 1 }
            task.cancel()
            let result = await task.result
            if case .failure(let error) = result, error is CancellationError { continue }
            Issue.record("\(verb.name): \(result)")
            // It has waited until the limit, as the verbs that follow would.
            break
        }
        hold.release()
        try await writing.value
        try await store.close()
        #expect(try content() == before)
    }

    @Test(arguments: journalModes)
    func `an interruption that has come does nothing`(mode: Configuration.JournalMode) throws {
        let store = try make(.testing(mode))
        let interruption = Interruption()
        interruption.interrupt()
        expect(.cancelled) { try store.read(interruptedBy: interruption) { _ in } }
        expect(.cancelled) {
            try store.write(interruptedBy: interruption) { tx in
                try tx.execute("DELETE FROM t")
            }
        }
        #expect(try store.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 11)
    }

    @Test(arguments: journalModes)
    func `while another process writes, a verb that writes is .busy, and others go on`(
        mode: Configuration.JournalMode
    ) throws {
        var configuration = Configuration.testing(mode)
        configuration.busyTimeout = .milliseconds(5)
        configuration.waitTimeout = .milliseconds(50)
        let store = try make(configuration)
        let before = try content()
        let peer = try Peer(["hold-write", mode.description, folder.path(), "1"])
        try #require(peer.line() == "ready")
        for verb in Self.verbs {
            // Without a WAL there is nothing to move.
            let isIdle = mode == .delete && verb.name.hasPrefix("checkpoint")
            let code = isIdle ? nil : verb.whileBusy
            expectCode(code, verb, "busy") { try verb.call(store) }
        }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try content() == before)
        for verb in Self.verbs { expectCode(nil, verb, "released") { try verb.call(store) } }
    }

    @Test(arguments: journalModes)
    func `damaged pages are .damaged by every verb that reads them`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        let size = store.profile.pageByteCount
        let pageCount = try Damage.byteCount(folder.path()) / size
        // Opens new connections, whose page caches are empty.
        try store.suspend()
        try store.resume()
        for page in 1..<pageCount {
            try Damage.overwriteFromOutside(folder.path(), at: page * size + 100)
        }
        for verb in Self.verbs {
            do {
                try verb.call(store)
                // Without a WAL the writer reads, which has the schema's pages in its cache.
                let isCached = mode == .delete && !verb.writes
                #expect(isCached || verb.whenDamaged == nil, "\(verb.name)")
            } catch {
                let code = (error as? StoreError)?.code
                #expect(code == .damaged && verb.whenDamaged != nil, "\(verb.name): \(error)")
            }
        }
    }

    @Test(arguments: journalModes)
    func `a damaged first page is .damaged by check, although the engine does not read it again`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        try store.check()
        try Damage.overwriteFromOutside(folder.path(), at: 600)
        let error = expect(.damaged) { try store.check() }
        #expect(error?.pages == [1])
    }

    private func expectCode(
        _ code: StoreError.Code?, _ verb: Verb, _ situation: String, _ work: () throws -> Void
    ) {
        do {
            try work()
            #expect(code == nil, "\(verb.name), \(situation)")
        } catch {
            let found = (error as? StoreError)?.code
            #expect(found == code && found != nil, "\(verb.name), \(situation): \(error)")
        }
    }

    // MARK: Wrong and hostile input

    @Test func `names that do not exist, and texts that are no SQL, are told apart`() throws {
        let store = try make(.testing())
        try store.write { tx throws in
            for schema in ["nowhere", "", "main\"; DROP TABLE t; --"] {
                expect(.notFound) { try tx.schemaObjects(in: schema) }
                expect(.notFound) { try tx.tableExists("t", in: schema) }
                expect(.notFound) { try tx.columns(of: "t", in: schema) }
            }
            for table in ["nowhere", "", "t; DROP TABLE t", "t\0"] {
                #expect(try !tx.tableExists(table))
                expect(.notFound) { try tx.columns(of: table) }
                expect(.notFound) { try tx.indexes(of: table) }
                expect(.notFound) { try tx.foreignKeys(of: table) }
            }
            for sql in ["", " ; ", "SELEC 1", "SELECT 1; SELECT FROM", "SELECT 'a"] {
                expect(.sql) { try tx.validate(sql) }
            }
            expect(.misuse) { try tx.validate("COMMIT") }
            let gone = Item(id: 99, version: 1)
            expect(.notFound) { try tx.load(\.data, of: gone) }
            expect(.notFound) { try tx.update(gone, expecting: \.version == 1) }
            expect(.conflict) { try tx.update(Self.item, expecting: \.version == 7) }
            #expect(try tx.scalar("SELECT count(*) FROM t") == 11)
        }
        for count in [0, -1, Int.min] {
            #expect(try store.incrementalVacuum(pageCount: count) == 0)
        }
        #expect(try store.incrementalVacuum(pageCount: .max) > 0)
        let other = try Store(.memory)
        expect(.unsupported) { try other.incrementalVacuum(pageCount: 1) }
    }

    /// Statements that make a schema which no well-meaning program has.
    private static let hostileSchemas: [[String]] = [
        ["CREATE VIEW a AS SELECT * FROM b", "CREATE VIEW b AS SELECT * FROM a"],
        ["CREATE VIEW lost AS SELECT x FROM nowhere"],
        ["CREATE TABLE calls(v DEFAULT (load_extension('/tmp/x.so')))"],
        ["CREATE VIEW calls AS SELECT load_extension('/tmp/x.so') AS v"],
        ["CREATE TABLE \"a'b\"\"; DROP TABLE t; --\"(\"c'd\"\" \", v UNIQUE)"],
        ["CREATE TABLE wide(\((0..<1900).map { "c\($0)" }.joined(separator: ",")))"],
        ["CREATE TABLE lonely(v REFERENCES nowhere(x), w REFERENCES lonely(missing))"],
        [
            "CREATE VIRTUAL TABLE words USING fts4(v)", "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = replace(sql, 'fts4', 'evil') WHERE name = 'words'",
        ],
        [
            "PRAGMA writable_schema = ON",
            "INSERT INTO sqlite_master VALUES ('table', 'ghost', 'ghost', 999, "
                + "'CREATE TABLE ghost(v)')",
        ],
        [
            "PRAGMA writable_schema = ON",
            "INSERT INTO sqlite_master VALUES ('index', 'ghost', 't', 2, "
                + "'CREATE INDEX ghost ON t(missing)')",
        ],
    ]

    @Test(arguments: hostileSchemas.indices)
    func `a hostile schema is described or refused, and runs nothing`(number: Int) throws {
        let statements =
            ["CREATE TABLE t(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, data BLOB)"]
            + ["INSERT INTO t VALUES (1, 1, x'01')"] + Self.hostileSchemas[number]
        do {
            let raw = try RawConnection(folder.path(), key: 1)
            for sql in statements { try #require(raw.run(sql) == 0, "\(sql.prefix(80))") }
        }
        let before = try Data(contentsOf: URL(filePath: folder.path()))
        let store: Store
        do {
            store = try Store(
                path: folder.path(), key: .numbered(1), mode: .mustExist,
                configuration: .testing(.delete))
        } catch let error as StoreError {
            #expect(error.code == .damaged, "\(error)")
            return
        }
        let allowed: [StoreError.Code] = [.damaged, .sql, .misuse, .notFound, .unsupported]
        func attempt(_ work: () throws -> Void) {
            do { try work() } catch {
                let code = (error as? StoreError)?.code
                #expect(code.map(allowed.contains) == true, "\(error)")
            }
        }
        for verb in Self.verbs where !verb.writes { attempt { try verb.call(store) } }
        let names = (try? store.read { tx in try tx.schemaObjects().map(\.name) }) ?? []
        for name in names {
            attempt { try store.read { tx in _ = try tx.tableExists(name) } }
            attempt { try store.read { tx in _ = try tx.columns(of: name) } }
            attempt { try store.read { tx in _ = try tx.indexes(of: name) } }
            attempt { try store.read { tx in _ = try tx.foreignKeys(of: name) } }
        }
        try store.close()
        #expect(try Data(contentsOf: URL(filePath: folder.path())) == before)
        let again = try Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist,
            configuration: .testing(.delete))
        for verb in Self.verbs where verb.writes { attempt { try verb.call(again) } }
    }
}
