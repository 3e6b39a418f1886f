import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Functions, collations and tokenizers that are registered on a store.
@Suite(.againstHanging, .onOwnThreads) struct PrepareConnectionsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ configuration: Configuration = .testing()) throws -> Store {
        try Store(path: folder.path(), key: .numbered(7), configuration: configuration)
    }

    private static func twice(_ connection: Connection) throws {
        try connection.register(function: "twice", argumentCount: 1) {
            .integer(try $0.get(0, as: Int64.self) * 2)
        }
        try connection.register(collation: "by_length") {
            $0.count < $1.count ? .orderedAscending : .orderedDescending
        }
    }

    private func twice(_ store: Store) throws -> Int? {
        try store.read { tx in try tx.scalar("SELECT twice(21) ORDER BY 'a' COLLATE by_length") }
    }

    @Test func `every connection has what the closure registers, also those that open later`()
        async throws
    {
        let store = try make()
        // An idle reader, which was open before.
        _ = try await store.read { tx in try tx.rows("SELECT 1") }
        #expect(throws: StoreError.self) { try twice(store) }
        try await store.prepareConnections(Self.twice)
        #expect(try twice(store) == 42)
        let written: Int? = try await store.write { tx in try tx.scalar("SELECT twice(1)") }
        #expect(written == 2)
        // As many readers at once as there may be.
        let entered = Hold()
        let found = try await withThrowingTaskGroup(of: Int?.self) { group in
            group.addTask {
                try await store.read { tx in
                    entered.stay()
                    return try tx.scalar("SELECT twice(21)")
                }
            }
            await entered.isEntered()
            group.addTask { try await store.read { tx in try tx.scalar("SELECT twice(21)") } }
            let second = try await group.next()
            entered.release()
            return [second, try await group.next()]
        }
        #expect(found == [42, 42])
    }

    @Test func `a change of the key and a reopening keep it`() throws {
        let store = try make()
        try store.prepareConnections(Self.twice)
        try store.rekey(to: .numbered(8))
        #expect(try twice(store) == 42)
        try store.write { tx throws in #expect(try tx.scalar("SELECT twice(1)") == 2) }
    }

    @Test func `an open reader searches a table whose tokenizer comes later`() throws {
        let store = try make()
        try store.write { tx throws in
            try tx.execute("CREATE TABLE note(body)")
            try tx.execute("INSERT INTO note VALUES ('one two')")
        }
        try store.read { tx throws in #expect(try tx.rows("SELECT * FROM note").count == 1) }
        try store.prepareConnections { connection in
            try connection.register(tokenizer: WordTokenizer(), named: "words")
        }
        try store.write { tx throws in
            try tx.execute("CREATE VIRTUAL TABLE found USING fts4(body, tokenize=coffer words)")
            try tx.execute(
                """
                CREATE TRIGGER added AFTER INSERT ON note BEGIN
                    INSERT INTO found(rowid, body) VALUES (new.rowid, new.body); END
                """)
            try tx.execute("INSERT INTO note VALUES ('two three')")
        }
        try store.read { tx throws in
            #expect(try tx.rows("SELECT * FROM found WHERE found MATCH 'three'").count == 1)
        }
    }

    @Test func `a reader without the tokenizer reads the rows of its table, and misses it by name`()
        throws
    {
        do {
            let store = try make()
            try store.prepareConnections { connection in
                try connection.register(tokenizer: WordTokenizer(), named: "words")
            }
            try store.write { tx throws in
                try tx.execute(
                    "CREATE VIRTUAL TABLE found USING fts4(body, tokenize=coffer words)")
                try tx.execute("INSERT INTO found VALUES ('one two')")
            }
            try store.close()
        }
        let store = try make()
        try store.read { tx throws in
            #expect(try tx.rows("SELECT * FROM found").count == 1)
            expect(.notFound) { try tx.rows("SELECT * FROM found WHERE found MATCH 'one'") }
            expect(.sql) { try tx.rows("SELECT * FROM missing") }
            expect(.misuse) { try tx.rows("SELECT fts3_tokenizer('simple')") }
        }
        try store.write { tx throws in
            #expect(try tx.rows("SELECT * FROM found").count == 1)
            expect(.notFound) { try tx.rows("SELECT * FROM found WHERE found MATCH 'one'") }
        }
    }

    @Test func `a store in memory has it on its only connection`() throws {
        let store = try Store(.memory)
        try store.prepareConnections(Self.twice)
        #expect(try twice(store) == 42)
    }

    @Test func `a closure that throws is the call's error, and readers do not run it`() throws {
        struct Refused: Error {}
        let store = try make()
        #expect(throws: Refused.self) { try store.prepareConnections { _ in throw Refused() } }
        expect(.misuse) {
            try store.prepareConnections { try $0.register(function: "", { _ in .null }) }
        }
        #expect(try store.read { tx in try tx.scalar("SELECT 1") } == 1)
    }

    @Test func `a closure that only the writer can run is refused, and reads go on`() throws {
        let store = try make()
        #expect(throws: StoreError.self) {
            try store.prepareConnections { try $0.execute("CREATE TABLE t (n)") }
        }
        #expect(try store.read { tx in try tx.scalar("SELECT 1") } == 1)
    }

    @Test func `inside a body it is misuse, after close closed, and beside a long write busy`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.waitTimeout = .milliseconds(20)
        let store = try make(configuration)
        let refused: @Sendable () -> Void = {
            expect(.misuse) { try store.prepareConnections(Self.twice) }
        }
        try await store.write { _ in refused() }
        try await store.read { _ in refused() }
        let hold = Hold()
        let writing = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        expect(.busy) { try store.prepareConnections(Self.twice) }
        hold.release()
        try await writing.value
        try await store.close()
        expect(.closed) { try store.prepareConnections(Self.twice) }
    }
}
