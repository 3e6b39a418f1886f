import Foundation
import Testing

@testable import Coffer

/// The program's functions over a window of rows.
@Suite(.againstHanging, .onOwnThreads) struct WindowFunctionTests {
    private struct Odd: Error {}

    /// Joins texts, so that the order of rows in and out shows.
    private struct Joined: WindowFunction {
        var texts: [String] = []
        mutating func step(_ arguments: FunctionArguments) throws {
            let text: String = try arguments.get(0)
            if text == "bad" { throw Odd() }
            texts.append(text)
        }
        mutating func inverse(_ arguments: FunctionArguments) throws {
            #expect(try arguments.get(0) == texts.removeFirst())
            if arguments.values[0] == "last" { throw FunctionError("not out again") }
        }
        func value() throws -> Value { .text("[\(texts.joined())]") }
        func result() throws -> Value { .text(texts.joined()) }
    }

    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
        try connection.execute("CREATE TABLE t(g INTEGER, s TEXT)")
        for (group, text) in [(1, "a"), (1, "b"), (1, "c"), (1, "d"), (2, "x")] {
            try connection.execute("INSERT INTO t VALUES (\(group), \(text))")
        }
    }

    @Test func `a name with NUL or without letters is misuse`() {
        for name in ["", "joined\0x", "coffer_value"] {
            expect(.misuse) {
                try connection.register(window: name, argumentCount: 2) { Joined() }
            }
        }
    }

    private func column(_ sql: SQL) throws -> [Value?] {
        try connection.rows(sql).map { $0[0] }
    }

    @Test(.enabled(if: !isEngine4))
    func `SQLCipher 3 says what is required, before and after the key is set`() throws {
        let error = expect(.unsupported) {
            try connection.register(window: "joined", argumentCount: 1) { Joined() }
        }
        #expect(error?.message.contains("SQLCipher 4") == true)
        expect(.unsupported) {
            try Connection(path: folder.path("none.db")).register(window: "joined") { Joined() }
        }
        // No trace remains that a change of the key would register again.
        try connection.rekey(to: .numbered(8))
        try connection.register(aggregate: "joined", argumentCount: 1) { Joined() }
        #expect(try column("SELECT joined(s) FROM t GROUP BY g") == ["abcd", "x"])
    }

    @Test(.enabled(if: isEngine4))
    func `rows go into the window and out of it, partition by partition`() throws {
        try connection.register(window: "joined", argumentCount: 1) { Joined() }
        let running = "SELECT joined(s) OVER (PARTITION BY g ORDER BY s) FROM t ORDER BY g, s"
        #expect(
            try column(SQL(text: running)) == ["[a]", "[ab]", "[abc]", "[abcd]", "[x]"])
        let moving = try column(
            """
            SELECT joined(s) OVER (ORDER BY s ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
            FROM t ORDER BY s
            """)
        #expect(moving == ["[ab]", "[abc]", "[bcd]", "[cdx]", "[dx]"])
        // A window without rows has a value too.
        let ahead = try column(
            """
            SELECT joined(s) OVER (ORDER BY s ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)
            FROM t ORDER BY s
            """)
        #expect(ahead == ["[bc]", "[cd]", "[dx]", "[x]", "[]"])
        // Without OVER it is an aggregate.
        #expect(try column("SELECT joined(s) FROM t GROUP BY g ORDER BY g") == ["abcd", "x"])
        #expect(try column("SELECT joined(s) FROM t WHERE 0") == [""])
    }

    @Test(.enabled(if: isEngine4))
    func `an error from step, inverse or value is the statement's error`() throws {
        try connection.register(window: "joined", argumentCount: 1) { Joined() }
        try connection.execute("INSERT INTO t VALUES (3, 'bad')")
        let sql = SQL(
            text: "SELECT joined(s) OVER (ORDER BY g, s ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
                + "FROM t")
        #expect(expect(.sql) { try connection.rows(sql) }?.cause is Odd)
        try connection.execute("UPDATE t SET s = 'last' WHERE s = 'a'")
        #expect(expect(.sql) { try connection.rows(sql) }?.message == "not out again")
        struct NoValue: WindowFunction {
            mutating func step(_ arguments: FunctionArguments) {}
            mutating func inverse(_ arguments: FunctionArguments) {}
            func value() throws -> Value { .real(.nan) }
            func result() throws -> Value { 1 }
        }
        try connection.register(window: "none") { NoValue() }
        let error = expect(.sql) { try connection.rows("SELECT none(s) OVER () FROM t") }
        #expect((error?.cause as? StoreError)?.code == .mismatch)
        #expect(try column("SELECT count(*) FROM t") == [6])
    }

    @Test(.enabled(if: isEngine4))
    func `P17 every state is released, also of a statement that fails or is left`() throws {
        final class Count { var value = 0 }
        final class Witness {
            let count: Count
            init(_ count: Count) {
                self.count = count
                count.value += 1
            }
            deinit { count.value -= 1 }
        }
        struct Watched: WindowFunction {
            let witness: Witness
            mutating func step(_ arguments: FunctionArguments) throws {
                if arguments.values[0] == "x" { throw Odd() }
            }
            mutating func inverse(_ arguments: FunctionArguments) throws {}
            func result() throws -> Value { 1 }
        }
        let count = Count()
        try connection.register(window: "watched") { Watched(witness: Witness(count)) }
        for text in [
            "SELECT watched(s) OVER (PARTITION BY s) FROM t WHERE g = 1",
            "SELECT watched(g) OVER (ORDER BY s ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM t",
            "SELECT watched(s) FROM t WHERE 0",
        ] {
            _ = try connection.rows(SQL(text: text))
            #expect(count.value == 0, "\(text)")
        }
        expect(.sql) { try connection.rows("SELECT watched(s) OVER (ORDER BY s) FROM t") }
        #expect(count.value == 0)
        let statement = try connection.prepare("SELECT watched(g) OVER (ORDER BY s) FROM t")
        #expect(try statement.step())
        try statement.reset()
        #expect(count.value == 0)
    }

    @Test(.enabled(if: isEngine4))
    func `P17 a window function is replaced, removed, and survives a change of the key`() throws {
        final class Witness {}
        struct Held: WindowFunction {
            mutating func step(_ arguments: FunctionArguments) {}
            mutating func inverse(_ arguments: FunctionArguments) {}
            func result() -> Value { 5 }
        }
        func register() throws -> () -> Bool {
            let witness = Witness()
            try connection.register(window: "held", argumentCount: 0) {
                withExtendedLifetime(witness) { Held() }
            }
            return { [weak witness] in witness == nil }
        }
        let isReplaced = try register()
        let isRemoved = try register()
        #expect(isReplaced() && !isRemoved())
        try connection.rekey(to: .numbered(8))
        #expect(try column("SELECT held() OVER () FROM t WHERE g = 2") == [5])
        connection.clearStatementCache()
        try connection.removeFunction("HELD", argumentCount: 0)
        #expect(isRemoved())
        expect(.sql) { try connection.rows("SELECT held() OVER () FROM t") }
        expect(.misuse) {
            try connection.register(window: String(repeating: "x", count: 256)) { Held() }
        }
    }

    @Test(.enabled(if: isEngine4))
    func `a window function must not use its connection`() throws {
        struct Using: WindowFunction {
            let connection: Connection
            mutating func step(_ arguments: FunctionArguments) throws {
                _ = try connection.rows("SELECT 1")
            }
            mutating func inverse(_ arguments: FunctionArguments) {}
            func result() -> Value { 1 }
        }
        let connection = connection
        try connection.register(window: "again") { Using(connection: connection) }
        let error = expect(.sql) { try connection.rows("SELECT again(s) OVER () FROM t") }
        #expect((error?.cause as? StoreError)?.code == .misuse)
        try connection.removeFunction("again")
    }

    @Test(.enabled(if: isEngine4))
    func `a window function never sees a value from next to a damaged page`() throws {
        final class Seen { var values: [Value] = [] }
        struct SeeAll: WindowFunction {
            let seen: Seen
            mutating func step(_ arguments: FunctionArguments) { seen.values += arguments.values }
            mutating func inverse(_ arguments: FunctionArguments) {
                seen.values += arguments.values
            }
            func result() -> Value { 1 }
        }
        let path = folder.path("damaged.db")
        let first = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try first.execute("CREATE TABLE long(id INTEGER PRIMARY KEY, big BLOB, flag INT)")
        let size = try #require(first.profile).pageByteCount
        let big = Data(repeating: 9, count: size * 2 + size / 2)
        try first.execute("INSERT INTO long VALUES (1, \(big), 7)")
        let endPage = try first.current().firstInteger("PRAGMA page_count")
        first.close()
        try Damage.flip(path, at: (endPage - 1) * size + 10)

        let again = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        let seen = Seen()
        try again.register(window: "seeAll") { SeeAll(seen: seen) }
        expect(.damaged) { try again.rows("SELECT seeAll(flag) OVER (ORDER BY id) FROM long") }
        #expect(seen.values.isEmpty)
    }
}
