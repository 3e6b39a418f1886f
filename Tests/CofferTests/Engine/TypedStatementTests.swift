import Foundation
import Testing

@testable import Coffer

/// The overloads for SQLite's own types do what the generic `bind` and `value` do.
@Suite(.againstHanging, .onOwnThreads) struct TypedStatementTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(.memory)
        try connection.execute("CREATE TABLE t(v)")
    }

    private func generic<T: ValueConvertible>(_ statement: Statement, _ type: T.Type) throws -> T {
        try statement.value(at: 0, as: type)
    }

    private func genericBind(_ value: some ValueConvertible, _ statement: Statement) throws {
        try statement.bind(value, at: 0)
    }

    /// The result of reading a type, as text: the value, or the code of the error.
    private func said<T>(_ read: () throws -> T) -> String {
        do { return "\(try read())" } catch { return "\((error as? StoreError)?.code as Any)" }
    }

    private static let stored: [SQL] = [
        "SELECT NULL", "SELECT 0", "SELECT 1", "SELECT -9223372036854775808", "SELECT 1.5",
        "SELECT 9007199254740993", "SELECT 9e999", "SELECT ''", "SELECT 'größe'",
        "SELECT CAST(x'610062' AS TEXT)", "SELECT x''", "SELECT x'00ff'",
        "SELECT CAST(x'ff' AS TEXT)",
    ]

    @Test(arguments: 0..<stored.count)
    func `typed reading agrees with generic reading`(index: Int) throws {
        let statement = try connection.prepare(Self.stored[index].text)
        #expect(try statement.step())
        #expect(
            said { try statement.value(at: 0, as: Int64.self) }
                == said { try generic(statement, Int64.self) })
        #expect(
            said { try statement.value(at: 0, as: Int.self) }
                == said { try generic(statement, Int.self) })
        #expect(
            said { try statement.value(at: 0, as: Double.self) }
                == said { try generic(statement, Double.self) })
        #expect(
            said { try statement.value(at: 0, as: String.self) }
                == said { try generic(statement, String.self) })
        #expect(
            said { [UInt8](try statement.value(at: 0, as: Data.self)) }
                == said { [UInt8](try generic(statement, Data.self)) })
    }

    private func roundTrip(_ bind: (Statement) throws -> Void) throws -> Value? {
        try connection.execute("DELETE FROM t")
        let insert = try connection.prepare("INSERT INTO t VALUES (?)")
        try bind(insert)
        try insert.run()
        return try connection.firstRow("SELECT v FROM t")?[0]
    }

    @Test func `typed binding stores what generic binding stores`() throws {
        #expect(try roundTrip { try $0.bind(Int64.min, at: 0) } == .integer(.min))
        #expect(try roundTrip { try $0.bind(42, at: 0) } == .integer(42))
        #expect(try roundTrip { try $0.bind(true, at: 0) } == .integer(1))
        #expect(try roundTrip { try $0.bind(1.5, at: 0) } == .real(1.5))
        #expect(try roundTrip { try $0.bindNull(at: 0) } == .null)
        for text in ["", "a\0b", "größe 𝄞", String(repeating: "x", count: 5000)] {
            let bound = try roundTrip { try $0.bind(text, at: 0) }
            #expect(bound == .text(text))
            #expect(try roundTrip { try genericBind(text, $0) } == bound)
            let bytes = Array(text.utf8)
            let borrowed = try roundTrip { statement in
                try bytes.withUnsafeBufferPointer { try statement.bind(utf8: $0, at: 0) }
            }
            #expect(borrowed == bound)
        }
        for data in [Data(), Data([0]), Data(repeating: 7, count: 5000)] {
            #expect(try roundTrip { try $0.bind(data, at: 0) } == .blob(data))
            let borrowed = try roundTrip { statement in
                try data.withUnsafeBytes { try statement.bind(bytes: $0, at: 0) }
            }
            #expect(borrowed == .blob(data))
        }
        #expect(
            try roundTrip { try $0.bind(utf8: UnsafeBufferPointer(start: nil, count: 0), at: 0) }
                == .text(""))
    }

    @Test func `bytes that are not UTF-8 are refused and the arguments stay`() throws {
        let statement = try connection.prepare("SELECT ?")
        try statement.bind("good", at: 0)
        let bad: [[UInt8]] = [
            [0xff], [0x80], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80],
            Array("sixteen bytes ok".utf8) + [0xe2, 0x82], [0xff] + Array("eight or more".utf8),
            Array("seven b".utf8) + [0xc3],
        ]
        for bytes in bad {
            bytes.withUnsafeBufferPointer { buffer in
                _ = expect(.mismatch) { try statement.bind(utf8: buffer, at: 0) }
            }
        }
        #expect(try statement.step())
        #expect(try statement.value(at: 0) == "good")
    }

    @Test func `a missing placeholder or column is misuse, NaN a mismatch`() throws {
        let statement = try connection.prepare("SELECT ?")
        expect(.misuse) { try statement.bind(1, at: 1) }
        expect(.misuse) { try statement.bind(1.0, at: -1) }
        expect(.misuse) { try statement.bind("x", at: 1) }
        expect(.misuse) { try statement.bindNull(at: .max) }
        expect(.mismatch) { try statement.bind(Double.nan, at: 0) }
        expect(.misuse) { _ = try statement.value(at: 0, as: Int64.self) }
        #expect(try statement.step())
        for index in [-1, 1, Int.max, Int.min] {
            expect(.notFound) { _ = try statement.value(at: index, as: Int64.self) }
            expect(.notFound) { _ = try statement.value(at: index, as: String.self) }
            expect(.notFound) { _ = try statement.withBytes(at: index) { $0.count } }
        }
        connection.close()
        expect(.closed) { try statement.bind(1, at: 0) }
        expect(.closed) { try statement.run() }
        expect(.closed) { _ = try statement.value(at: 0, as: Int64.self) }
        expect(.closed) { _ = try statement.withUTF8(at: 0) { $0.count } }
    }

    @Test func `a statement outlives its connection and reports .closed`() throws {
        var connection: Connection? = try Connection(.memory)
        let fresh = try #require(try connection?.prepare("SELECT 1"))
        let running = try #require(try connection?.prepare("SELECT 1"))
        let cursor = try #require(try connection?.cursor("SELECT 1"))
        #expect(try running.step())
        #expect(try cursor.step())
        connection = nil
        expect(.closed) { _ = try fresh.step() }
        expect(.closed) { _ = try running.step() }
        expect(.closed) { _ = try running.value(at: 0) }
        expect(.closed) { _ = try cursor.step() }
        #expect(throws: Never.self) { try running.reset() }
    }
}
