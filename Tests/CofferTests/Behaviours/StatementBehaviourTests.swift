import Foundation
import Testing

@testable import Coffer

/// What a program that came from FMDB finds where statements run.
@Suite(.againstHanging, .onOwnThreads) struct StatementBehaviourTests {
    private let fixture: BehaviourFixture
    private var connection: Connection { fixture.connection }

    init() throws {
        fixture = try BehaviourFixture()
    }

    @Test func `F004 a query after close is .closed`() throws {
        let fixture = try BehaviourFixture.test()
        fixture.connection.close()
        expect(.closed) { try fixture.connection.rows("select * from table") }
        expect(.closed) { try fixture.connection.cursor("select * from test") }
    }

    @Test func `F005 SQL that is none is .sql`() throws {
        let fixture = try BehaviourFixture.test()
        expect(.sql) { try fixture.connection.execute("blah blah blah") }
    }

    @Test func `F006 SQL that is none has the primary code 1`() throws {
        let fixture = try BehaviourFixture.test()
        let error = expect(.sql) { try fixture.connection.execute("blah blah blah") }
        #expect(try #require(error?.resultCode) & 0xff == 1)
    }

    @Test func `F068 the next step of a cursor that closeCursors closed is .closed`() throws {
        try connection.execute("CREATE TABLE foo(bar text)")
        try connection.execute("INSERT INTO foo VALUES ('baz')")
        let cursor = try connection.cursor("SELECT * FROM foo")
        #expect(connection.hasOpenCursors)
        try connection.closeCursors()
        #expect(!connection.hasOpenCursors)
        expect(.closed) { try cursor.next() }
        let started = try connection.cursor("SELECT * FROM foo")
        #expect(try started.next() != nil)
        try connection.closeCursors()
        expect(.closed) { try started.next() }
        expect(.closed) { try started.value(at: 0) }
        try connection.transaction { try connection.execute("DELETE FROM foo") }
    }

    @Test func `F071 the row id of the last insert counts up`() throws {
        try connection.execute("CREATE TABLE foo(id INTEGER PRIMARY KEY AUTOINCREMENT, bar text)")
        try connection.execute("INSERT INTO foo(bar) VALUES ('baz')")
        let first = connection.lastInsertedRowID
        try connection.execute("INSERT INTO foo(bar) VALUES ('qux')")
        #expect(connection.lastInsertedRowID - first == 1)
    }

    @Test func `F072 an update tells how many rows it changed`() throws {
        try connection.execute("CREATE TABLE foo(id INTEGER PRIMARY KEY, bar text)")
        try connection.execute("INSERT INTO foo(bar) VALUES ('baz')")
        try connection.execute("INSERT INTO foo(bar) VALUES ('qux')")
        #expect(try connection.execute("UPDATE foo SET bar = \("xxx")") == 2)
        #expect(connection.lastChangeCount == 2)
    }

    @Test func `F075 the second row of one primary key fails with code 19`() throws {
        try connection.execute("CREATE TABLE foo(id INTEGER PRIMARY KEY, bar text)")
        try connection.execute("INSERT INTO foo VALUES (\(1), \("baz"))")
        let error = expect(.constraint) {
            try connection.execute("INSERT INTO foo VALUES (\(1), \("qux"))")
        }
        #expect(try #require(error?.resultCode) & 0xff == 19)
    }

    @Test func `F085 an integer for a query`() throws {
        try connection.execute("CREATE TABLE t1(a integer)")
        #expect(try connection.execute("INSERT INTO t1 VALUES (\(5))") == 1)
        #expect(try connection.scalar("SELECT a FROM t1 WHERE a = \(5)", as: Int.self) == 5)
        #expect(try connection.scalar("SELECT a FROM t1 WHERE a = \(6)", as: Int.self) == nil)
    }

    @Test func `F086 a date for a query`() throws {
        let now = Date()
        try connection.execute("CREATE TABLE datetest(a double, b double, c double)")
        try connection.execute("INSERT INTO datetest VALUES (NULL, \(now), 0)")
        let read = try connection.requireScalar("SELECT b FROM datetest", as: Date.self)
        #expect(abs(read.timeIntervalSince(now)) < 1)
        #expect(try connection.scalar("SELECT a FROM datetest", as: Date.self) == nil)
        expect(.notFound) {
            try connection.requireScalar("SELECT a FROM datetest", as: Date.self)
        }
    }

    @Test func `F087 validating a CREATE TABLE makes no table`() throws {
        try connection.validate("CREATE TABLE datetest (a double, b double, c double)")
        let count = try connection.scalar(
            "SELECT count(*) FROM sqlite_master WHERE name = 'datetest'", as: Int.self)
        #expect(count == 0)
    }

    @Test func `F088 validating what is no SQL is .sql`() throws {
        expect(.sql) { try connection.validate("blah blah blah") }
        expect(.sql) { try connection.validate("SELECT 1; blah blah blah") }
        expect(.sql) { try connection.validate(" -- nothing") }
    }

    @Test func `F131 the end of the rows is nil and no error`() throws {
        let fixture = try BehaviourFixture.test20()
        let connection = fixture.connection
        try connection.execute("CREATE TABLE testTable(key INTEGER PRIMARY KEY, value INTEGER)")
        try connection.execute("INSERT INTO testTable VALUES (1, 2)")
        try connection.execute("INSERT INTO testTable VALUES (2, 4)")
        let cursor = try connection.cursor("SELECT * FROM testTable WHERE key = 1")
        #expect(try cursor.next()?.values == [1, 2])
        #expect(try cursor.next() == nil)
    }

    @Test func `F133 behind the end there is nil, behind close .closed`() throws {
        let fixture = try BehaviourFixture.test20()
        let connection = fixture.connection
        try connection.execute("CREATE TABLE testTable(key INTEGER PRIMARY KEY, value INTEGER)")
        try connection.execute("INSERT INTO testTable VALUES (1, 2)")
        let cursor = try connection.cursor("SELECT * FROM testTable WHERE key = 9")
        #expect(try cursor.next() == nil)
        #expect(try cursor.next() == nil)
        #expect(try !cursor.step())
        try cursor.close()
        try cursor.close()
        expect(.closed) { try cursor.next() }
        expect(.closed) { try cursor.step() }
    }

    @Test func `X3 a query before the key is .misuse, not nil`() throws {
        let folder = try TemporaryFolder()
        let connection = Connection(path: folder.path(), configuration: .testing(.delete))
        expect(.misuse) { try connection.rows("SELECT * FROM test") }
        expect(.misuse) { try connection.cursor("SELECT * FROM test") }
        expect(.misuse) { try connection.scalar("SELECT 1", as: Int.self) }
        expect(.misuse) { try connection.validate("SELECT 1") }
        expect(.misuse) { try connection.executeScript("SELECT 1") }
    }
}
