import Foundation
import Testing

@testable import Coffer

/// One store, two processes that read, write and change it.
///
/// Other suites that prove a part of this: `LinearizabilityTests` (what eight clients in two
/// processes see has an order), `KillTests` (a process that is killed loses nothing that returned),
/// `ForeignCommitTests` (observers), `JournalModeTests` (no commit is lost while the mode changes),
/// `RekeyTests` and `RekeyStoryTests` (a change of the key next to another process).
@Suite(.againstHanging, .onOwnThreads) struct TwoProcessTests {
    private struct Memo: Record, Equatable {
        var id: Int
        var text: String
    }

    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ configuration: Configuration) throws -> Store {
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        return store
    }

    private static func insert(_ number: Int, into store: Store) async throws {
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (\(number))") }
    }

    private func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) } }
    }

    /// Another process that holds the write lock until the test lets it go on.
    private func busyPeer(_ mode: Configuration.JournalMode) throws -> Peer {
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        return peer
    }

    private func executeElsewhere(_ sql: String, _ mode: Configuration.JournalMode) throws {
        #expect(try Peer.run(["execute", mode.description, path, "1", sql]) == ["executed"])
    }

    // MARK: Writing

    @Test(arguments: journalModes)
    func `both processes write at once and no row is lost`(
        mode: Configuration.JournalMode
    ) async throws {
        let count = 60
        let store = try make(.testing(mode))
        let peer = try Peer(["write-rows", path, "1", mode.description, "power", "\(count)"])
        try #require(peer.line() == "ready")
        peer.goOn()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count { group.addTask { try await Self.insert(number, into: store) } }
            try await group.waitForAll()
        }
        #expect(peer.finish() == Array(repeating: "wrote", count: count))
        let ours = Array(0..<count)
        #expect(try values(store) == ours + ours.map { $0 + 1_000_000 })
        let report = try await store.verify()
        #expect(report.isGood)
    }

    @Test(arguments: journalModes)
    func `a write waits for another process that releases its lock in time`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        let peer = try busyPeer(mode)
        let write = Task { try await Self.insert(1, into: store) }
        // It has the write gate and waits for the lock.
        while store.statistics.runningWrite == nil { try await Task.sleep(for: .milliseconds(1)) }
        peer.goOn()
        #expect(await code(write) == nil)
        #expect(peer.finish() == ["released"])
        #expect(try values(store) == [1])
    }

    @Test(arguments: journalModes)
    func `each write that waits for a busy process has its own .busy or its row`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.impatient(mode))
        let peer = try busyPeer(mode)
        // Four writes wait at a time, each for 200 ms. The peer releases its lock after the second
        // refusal, and new writes follow until two have their row: no clock decides the test.
        var written: [Int] = []
        var refusalCount = 0
        try await withThrowingTaskGroup(of: (number: Int, code: StoreError.Code?).self) { group in
            var number = 0
            func addWrite() {
                group.addTask { [number] in
                    let write = Task { try await Self.insert(number, into: store) }
                    return (number, await code(write))
                }
                number += 1
            }
            for _ in 0..<4 { addWrite() }
            while let end = try await group.next() {
                #expect(end.code == nil || end.code == .busy)
                if end.code == nil { written.append(end.number) } else { refusalCount += 1 }
                if end.code != nil, refusalCount == 2 { peer.goOn() }
                if refusalCount < 2 || written.count < 2 { addWrite() }
            }
        }
        #expect(peer.finish() == ["released"])
        written.sort()
        try await Self.insert(99, into: store)
        #expect(try values(store) == written + [99])
    }

    // MARK: Reading

    @Test(arguments: journalModes)
    func `a read sees another process's commits from before it began, not later ones`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.impatient(mode))
        try executeElsewhere("INSERT INTO t VALUES (1)", mode)
        try store.read { tx in
            #expect(try tx.rows("SELECT v FROM t").count == 1)
            // With a rollback journal nobody commits next to a reader.
            let told = try Peer.run(["insert", mode.description, path, "1", "2"])
            #expect(told == [mode == .wal ? "inserted" : "busy"])
            #expect(try tx.rows("SELECT v FROM t").count == 1)
        }
        if mode == .delete { try executeElsewhere("INSERT INTO t VALUES (2)", mode) }
        let count = try store.read { tx in try tx.rows("SELECT v FROM t").count }
        #expect(count == 2)
    }

    // MARK: The schema

    @Test(arguments: journalModes)
    func `statements that are cached notice another process's change of the schema`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        let insert = SQL(text: "INSERT INTO t(v) VALUES (1)")
        let select = SQL(text: "SELECT * FROM t")
        try store.write { tx in try tx.execute(insert) }
        let before = try store.read { tx in try tx.rows(select).first?.columnNames }
        #expect(before == ["v"])
        try executeElsewhere("ALTER TABLE t ADD COLUMN w DEFAULT 7", mode)
        try store.write { tx in
            try tx.execute(insert)
            #expect(try tx.firstRow(select)?.columnNames == ["v", "w"])
        }
        let after = try store.read { tx in try tx.rows(select).map(\.values) }
        #expect(after == [[1, 7], [1, 7]])
        try executeElsewhere("DROP TABLE t", mode)
        expect(.sql) { try store.write { tx in try tx.execute(insert) } }
        expect(.sql) { try store.read { tx in try tx.rows(select) } }
    }

    @Test(arguments: journalModes)
    func `record types notice another process's change of their table`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        let all = { (tx: inout ReadTransaction) in try tx.fetch(Memo.all) }
        try store.write { tx in try tx.insert(Memo(id: 1, text: "one")) }
        #expect(try store.read(all) == [Memo(id: 1, text: "one")])
        // The table has other columns, in another order.
        try executeElsewhere(
            """
            DROP TABLE memo; CREATE TABLE memo(more, text TEXT NOT NULL, id INTEGER PRIMARY KEY);
            INSERT INTO memo VALUES (0, 'two', 2)
            """, mode)
        #expect(try store.read(all) == [Memo(id: 2, text: "two")])
        try store.write { tx in
            try tx.insert(Memo(id: 3, text: "three"))
            try tx.update(Memo(id: 2, text: "second"))
        }
        #expect(
            try store.read(all) == [Memo(id: 2, text: "second"), Memo(id: 3, text: "three")])
        // The column would store the text as a number.
        try executeElsewhere(
            "DROP TABLE memo; CREATE TABLE memo(id INTEGER PRIMARY KEY, text INTEGER NOT NULL)",
            mode)
        expect(.mismatch) { try store.write { tx in try tx.insert(Memo(id: 4, text: "4")) } }
    }

    // MARK: The key

    @Test(arguments: journalModes)
    func `another process's change of the key is reported to all, and reopen(with:) goes on`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.foreignCommitInterval = .milliseconds(5)
        let store = try make(configuration)
        try await Self.insert(1, into: store)
        let counts = store.observe { tx in try tx.rows("SELECT v FROM t").count }
        let values = counts.makeAsyncIterator()
        let events = store.changes(in: "t").makeAsyncIterator()
        #expect(try await values.next() == 1)
        #expect(try Peer.run(["rekey-now", mode.description, path, "1", "2"]) == ["rekeyed"])

        for _ in 0..<2 {
            let hints = [
                expect(.wrongKey) { try self.values(store) },
                expect(.wrongKey) { try store.write { tx in try tx.execute("DELETE FROM t") } },
            ]
            #expect(hints.allSatisfy { $0?.hint?.contains("another process") == true })
        }
        await #expect {
            while try await values.next() != nil {}
        } throws: { ($0 as? StoreError)?.code == .wrongKey }
        expect(.wrongKey) { try store.reopen(with: .numbered(3)) }
        expect(.wrongKey) { try self.values(store) }

        try await store.reopen(with: .numbered(2))
        #expect(try self.values(store) == [1])
        #expect(try await events.rows() == ["rescan elsewhere"])
        let again = counts.makeAsyncIterator()
        #expect(try await again.next() == 1)
        try await Self.insert(2, into: store)
        while try await again.next() != 2 {}
        // The only event is the row, or that somebody else has written.
        let told = try await events.rows()
        #expect(told == ["insert t 2"] || told == ["rescan elsewhere"])
        #expect(try Peer.run(["insert", mode.description, path, "2", "3"]) == ["inserted"])
        while try await again.next() != 3 {}
    }
}
