import Foundation
import Testing

@testable import Coffer

/// Functions, aggregates, collations and the trace of a connection.
@Suite(.againstHanging, .onOwnThreads) struct FunctionTests {
    private struct Median: Aggregate {
        var numbers: [Int] = []
        mutating func step(_ arguments: FunctionArguments) throws {
            numbers.append(try arguments.get(0))
        }
        func result() throws -> Value {
            numbers.isEmpty ? .null : .integer(Int64(numbers.sorted()[numbers.count / 2]))
        }
    }

    private struct Odd: Error, Equatable {}

    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
        try connection.execute("CREATE TABLE t(g INTEGER, n INTEGER)")
        try connection.execute("INSERT INTO t VALUES (1, 3), (1, 1), (1, 2), (2, 9)")
    }

    @Test func `an aggregate has a state for each group, also for one without rows`() throws {
        try connection.register(aggregate: "median", argumentCount: 1) { Median() }
        let rows = try connection.rows("SELECT median(n) FROM t GROUP BY g ORDER BY g")
        #expect(rows.map { $0[0] } == [2, 9])
        #expect(try connection.firstRow("SELECT median(n) FROM t WHERE 0")?[0] == .null)
        let nested = try connection.rows(
            "SELECT median(n), (SELECT median(n + 1) FROM t) FROM t GROUP BY g ORDER BY g")
        #expect(nested.map(\.values) == [[2, 4], [9, 4]])
    }

    @Test
    func `what a function throws is the cause, and its message is used only if it is meant to be`()
        throws
    {
        try connection.register(function: "odd", argumentCount: 0) { _ in throw Odd() }
        let error = expect(.sql) { try connection.rows("SELECT odd()") }
        #expect(error?.cause as? Odd == Odd())
        #expect(error?.message == "a function of the program failed")
        try connection.register(function: "code", argumentCount: 0) { _ in
            throw FunctionError("foo", resultCode: 42)
        }
        let coded = expect(.sql) { try connection.rows("SELECT code()") }
        #expect(coded?.message == "foo")
        #expect(coded?.resultCode == 42)
        // Nothing of the error is left for the next failure.
        let next = expect(.sql) { try connection.rows("SELECT nothing_such()") }
        #expect(next?.cause == nil)
    }

    @Test func `an aggregate that fails in a row fails the statement and releases its state`()
        throws
    {
        final class Witness {}
        weak var seen: Witness?
        struct Failing: Aggregate {
            let witness: Witness
            mutating func step(_ arguments: FunctionArguments) throws { throw Odd() }
            func result() throws -> Value { 1 }
        }
        try connection.register(aggregate: "failing") {
            let witness = Witness()
            seen = witness
            return Failing(witness: witness)
        }
        #expect(expect(.sql) { try connection.rows("SELECT failing(n) FROM t") }?.cause is Odd)
        #expect(seen == nil)
    }

    @Test func `NaN is an error, and a text that is not UTF-8 never reaches the function`() throws {
        try connection.register(function: "nan", argumentCount: 0) { _ in .real(.nan) }
        expect(.sql) { try connection.rows("SELECT nan()") }
        try connection.register(function: "id", argumentCount: 1) { $0.values[0] }
        let error = expect(.sql) { try connection.rows("SELECT id(CAST(x'ff' AS TEXT))") }
        #expect((error?.cause as? StoreError)?.code == .mismatch)
    }

    @Test func `a number given to a function is a date only in a named encoding`() throws {
        let date = Date(timeIntervalSinceReferenceDate: 1)
        let dates = Shared<[Date?]>([])
        try connection.register(function: "seen", argumentCount: 1) { arguments in
            let date = try arguments.date(0, as: .secondsSince2001)
            dates.update { $0.append(date) }
            return .null
        }
        try connection.register(function: "guessed", argumentCount: 1) { arguments in
            _ = try arguments.get(0, as: Date?.self)
            return .null
        }
        try connection.execute("CREATE TABLE d(at REAL_SINCE_2001)")
        try connection.execute("INSERT INTO d VALUES (\(date, as: .secondsSince2001)), (NULL)")
        _ = try connection.rows("SELECT seen(at) FROM d ORDER BY rowid")
        #expect(dates.value == [date, nil])
        let error = expect(.sql) { try connection.rows("SELECT guessed(at) FROM d") }
        #expect((error?.cause as? StoreError)?.code == .mismatch)
        #expect(error?.hint?.contains("arguments.date(0, as: .secondsSince2001)") == true)
        _ = try connection.rows("SELECT guessed(at) FROM d WHERE at IS NULL")
    }

    @Test func `P17 a function is released when it is replaced or removed`() throws {
        final class Witness: Sendable {}
        func register(_ name: String) throws -> () -> Bool {
            let witness = Witness()
            try connection.register(function: name, argumentCount: 0) { _ in
                withExtendedLifetime(witness) { 1 }
            }
            return { [weak witness] in witness == nil }
        }
        let isReplaced = try register("f")
        let isRemoved = try register("f")
        #expect(isReplaced())
        #expect(!isRemoved())
        try connection.removeFunction("F", argumentCount: 0)
        #expect(isRemoved())
        expect(.sql) { try connection.rows("SELECT f()") }
        expect(.misuse) {
            try Connection(path: folder.path(), key: .numbered(7), configuration: .testing())
                .register(function: String(repeating: "x", count: 256), argumentCount: 0) { _ in 1 }
        }
    }

    @Test func `P17 functions and collations survive a change of the key`() throws {
        try connection.register(function: "one", argumentCount: 0) { _ in 1 }
        try connection.register(collation: "backwards") { $1.compare($0) }
        try connection.rekey(to: .numbered(8))
        #expect(try connection.firstRow("SELECT one()")?[0] == 1)
        let rows = try connection.rows(
            "SELECT 'a' AS x UNION ALL SELECT 'b' ORDER BY x COLLATE BACKWARDS")
        #expect(rows.map { $0[0] } == ["b", "a"])
    }

    @Test func `prepare runs on the writer and every reader of a store`() throws {
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            try connection.register(function: "twice", argumentCount: 1) {
                .integer(try $0.get(0, as: Int64.self) * 2)
            }
        }
        let store = try Store(
            path: folder.path("other.db"), key: .numbered(7), configuration: configuration)
        #expect(try store.write { tx in try tx.firstRow("SELECT twice(2)")?[0] } == 4)
        #expect(try store.read { tx in try tx.firstRow("SELECT twice(3)")?[0] } == 6)
        try store.rekey(to: .numbered(9))
        #expect(try store.write { tx in try tx.firstRow("SELECT twice(4)")?[0] } == 8)
        #expect(try store.read { tx in try tx.firstRow("SELECT twice(5)")?[0] } == 10)
        try store.close()

        configuration.prepare = { _ in throw Odd() }
        let error = expect(.misuse) {
            try Store(
                path: folder.path("other.db"), key: .numbered(9), configuration: configuration)
        }
        #expect(error?.cause is Odd)
        configuration.prepare = nil
        let again = try Store(
            path: folder.path("other.db"), key: .numbered(9), configuration: configuration)
        try again.close()
    }

    @Test func `a function must not use its connection`() throws {
        let connection = connection
        try connection.register(function: "again", argumentCount: 0) { _ in
            expect(.misuse) { try connection.rows("SELECT 1") }
            expect(.misuse) { try connection.transaction {} }
            return 1
        }
        #expect(try connection.firstRow("SELECT again()")?[0] == 1)
        #expect(try connection.firstRow("SELECT 2")?[0] == 2)
        try connection.removeFunction("again", argumentCount: 0)
    }

    @Test func `a function in the schema is refused on SQLCipher 4 unless registered for it`()
        throws
    {
        try connection.register(function: "careful", argumentCount: 0) { _ in 1 }
        try connection.register(function: "open", argumentCount: 0, options: .schema) { _ in 2 }
        try connection.execute("CREATE VIEW v AS SELECT careful()")
        try connection.execute("CREATE VIEW w AS SELECT open()")
        if try Engine.capabilities.cipherMajorVersion >= 4 {
            expect(.sql) { try connection.rows("SELECT * FROM v") }
        } else {
            #expect(try connection.firstRow("SELECT * FROM v")?[0] == 1)
        }
        #expect(try connection.firstRow("SELECT * FROM w")?[0] == 2)
    }

    @Test func `REGEXP works once it is registered`() throws {
        expect(.sql) { try connection.rows("SELECT 'abc' REGEXP 'b'") }
        try connection.registerRegexp()
        let row = try connection.firstRow(
            "SELECT 'abc' REGEXP 'b', 'abc' REGEXP '^b', NULL REGEXP 'b', 'é' REGEXP '^.$'")
        #expect(row?.values == [1, 0, .null, 1])
        expect(.misuse) { try connection.rows("SELECT 'abc' REGEXP '('") }
    }

    @Test func `P30 a trace shows no value unless it is asked to, and no internal statement`()
        throws
    {
        var events: [TraceEvent] = []
        try connection.trace { events.append($0) }
        let secret = "hunter2"
        try connection.execute("INSERT INTO t VALUES (1, \(secret))")
        #expect(events.map(\.sql) == Array(repeating: "INSERT INTO t VALUES (1, ?)", count: 2))
        #expect(events.allSatisfy { $0.sqlWithValues == nil })
        guard case .end(let duration)? = events.last?.kind else {
            Issue.record("no end")
            return
        }
        #expect(duration >= .zero && duration < .seconds(60))
        events = []
        try connection.trace(includingValues: true) { events.append($0) }
        _ = try connection.rows("SELECT \(secret)")
        #expect(events.first?.sqlWithValues == "SELECT 'hunter2'")
        try connection.trace(nil)
        events = []
        _ = try connection.rows("SELECT 2")
        #expect(events.isEmpty)
    }

    @Test func `a function cannot end, rewind or bind the statement that called it`() throws {
        final class Called { var meddle: () -> Void = {} }
        let called = Called()
        try connection.register(function: "meddle", argumentCount: 0) { _ in
            called.meddle()
            return 1
        }
        let running = try connection.prepare("SELECT meddle() FROM t")
        let cursor = try connection.cursor("SELECT meddle() FROM t")
        called.meddle = { [connection] in
            expect(.misuse) { try running.reset() }
            expect(.misuse) { try running.clearBindings() }
            expect(.misuse) { _ = try running.step() }
            expect(.misuse) { try cursor.close() }
            expect(.misuse) { try connection.closeCursors() }
        }
        #expect(try running.step())
        #expect(try cursor.step())
        #expect(try running.value(at: 0) == 1)
        #expect(try cursor.value(at: 0) == 1)
        try running.reset()
        try cursor.close()
        #expect(!connection.isInTransaction && !connection.hasOpenCursors)
    }

    @Test func `a connection that its own function closes is closed after the statement`() throws {
        let connection = connection
        try connection.register(function: "close_it", argumentCount: 0) { _ in
            connection.close()
            return 1
        }
        let statement = try connection.prepare("SELECT close_it() FROM t")
        _ = try? statement.step()
        #expect(!connection.isOpen)
        expect(.closed) { _ = try statement.step() }
        expect(.closed) { _ = try statement.value(at: 0) }
        expect(.closed) { try connection.rows("SELECT 1") }
        let again = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing())
        #expect(try again.rows("SELECT n FROM t").count == 4)
    }

    @Test func `the function of long lists is reserved for Coffer`() throws {
        expect(.misuse) {
            try connection.register(function: "Coffer_Value", argumentCount: 2) { _ in 0 }
        }
        expect(.misuse) { try connection.removeFunction("coffer_value", argumentCount: 2) }
    }

    @Test(arguments: ["typeof", "LENGTH", "ifnull", "substr"])
    func `the functions of SQLite that Coffer's own SQL calls stay as they are`(
        name: String
    ) throws {
        expect(.misuse) { try connection.register(function: name) { _ in "null" } }
        expect(.misuse) { try connection.register(aggregate: name) { Median() } }
        expect(.misuse) { try connection.removeFunction(name, argumentCount: 1) }
        #expect(try connection.scalar("SELECT typeof(length('ab'))") == "integer")
    }

    @Test func `a name with NUL or without letters is misuse`() throws {
        for name in ["", "lower\0x"] {
            expect(.misuse) { try connection.register(function: name) { _ in 1 } }
            expect(.misuse) { try connection.register(aggregate: name) { Median() } }
            expect(.misuse) {
                try connection.register(collation: name) { _, _ in .orderedSame }
            }
        }
        #expect(try connection.scalar("SELECT lower('A')") == "a")
    }
}
