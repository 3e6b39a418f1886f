import Foundation
import Testing

@testable import Coffer

/// Columns that the file computes, as a record type declares them.
@Suite(.againstHanging, .onOwnThreads) struct GeneratedColumnTests {
    private let fixture: RecordFixture
    private let migrator: Migrator
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
        migrator = Migrator(fixture.store)
    }

    /// The last column and one in the middle are computed.
    private struct Line: Record, Equatable {
        static var generated: [Generated<Self>] {
            [
                Generated(\.total, sql: "price * count"),
                Generated(\.label, sql: "upper(name) || \("'x'")", isStored: true),
            ]
        }
        static var indexes: [Index<Self>] {
            [Index(\.total), Index(\.name, isUnique: true)]
        }
        var id: Int64?
        var total = -1
        var name: String
        var price: Int
        var count: Int
        var label = ""

        func computed() -> Line {
            var line = self
            line.total = price * count
            line.label = name.uppercased() + "'x'"
            return line
        }
    }

    @Test(.enabled(if: !isEngine4))
    func `SQLCipher 3 refuses a type with computed columns before anything is made`() throws {
        let error = expect(.unsupported) {
            try store.write { tx throws in try tx.create(Line.self) }
        }
        #expect(error?.message.contains("SQLCipher 4") == true)
        expect(.unsupported) {
            try store.write { tx throws in try tx.insert(Line(name: "a", price: 1, count: 2)) }
        }
        #expect(try fixture.values("SELECT * FROM sqlite_master").isEmpty)
    }

    @Test(.enabled(if: isEngine4))
    func `every verb that writes leaves computed columns to the file`() throws {
        let a = Line(id: 1, name: "a", price: 2, count: 3)
        let b = Line(id: 2, name: "b", price: 5, count: 7)
        try store.write { tx throws in
            for _ in 0..<2 { try tx.create(Line.self) }
            #expect(try tx.schemaDifferences(of: Line.self).isEmpty)
            try tx.insert(a)
            try tx.insert([b])
            #expect(try tx.fetch(Line.all) == [a.computed(), b.computed()])
            var other = a
            other.count = 10
            try tx.update(other)
            #expect(try tx.find(Line.self, 1) == other.computed())
            other.price = 100
            try tx.upsert(other)
            #expect(try tx.find(Line.self, 1) == other.computed())
            other.name = "c"
            try tx.update(other, only: \.name)
            #expect(try tx.find(Line.self, 1) == other.computed())
            try tx.update(other, expecting: \.count == 10)
            try tx.upsert(Line(id: 9, name: "b", price: 1, count: 1), conflictingOn: \.name)
            #expect(try tx.find(Line.self, 2)?.total == 1)
            try tx.upsert(Line(name: "d", price: 8, count: 8), conflictingOn: \.name)
            try tx.update(Line.where(\.total == 64).set(\.count, to: \.count + 1))
            #expect(try tx.fetch(Line.order(by: \.total), \.total) == [1, 72, 1000])
            #expect(try tx.first(Line.where(\.label == "D'x'"))?.count == 9)
        }
    }

    @Test(.enabled(if: isEngine4)) func `a computed column is not set`() throws {
        try store.write { tx throws in
            let line = Line(id: 1, name: "a", price: 2, count: 3)
            try tx.insert(line)
            expect(.misuse) { try tx.update(line, only: \.total) }
            expect(.misuse) { try tx.update(Line.all.set(\.label, to: "z")) }
            expect(.misuse) { try tx.update(Line.all.set(\.total, to: \.total + 1)) }
            #expect(try tx.fetch(Line.all) == [line.computed()])
        }
    }

    private struct OldLine: Record {
        static let table = "line"
        var id: Int64?
        var name: String
        var price: Int
        var count: Int
    }

    private struct NewLine: Record {
        static let table = "line"
        static var generated: [Generated<Self>] { [Generated(\.total, sql: "price * count")] }
        var id: Int64?
        var name: String
        var price: Int
        var count: Int
        var total = 0
    }

    @Test(.enabled(if: isEngine4))
    func `create adds a computed column, and alter keeps it`() throws {
        try store.write { tx throws in
            try tx.insert(OldLine(name: "a", price: 3, count: 4))
            try tx.create(NewLine.self)
            #expect(try tx.fetch(NewLine.all).map(\.total) == [12])
            // A type without the column still writes the table.
            try tx.create(OldLine.self)
            try tx.insert(OldLine(name: "b", price: 1, count: 1))
        }
        try migrator.run { tx in try tx.alter(NewLine.self) }
        #expect(try store.read { tx throws in try tx.fetch(NewLine.all, \.total) } == [12, 1])
        let error = expect(.unsupported) { try migrator.run { tx in try tx.alter(OldLine.self) } }
        #expect(error?.column == "total")
        #expect(try store.read { tx throws in try tx.fetch(NewLine.all, \.total) } == [12, 1])
    }

    private struct OtherLine: Record {
        static let table = "line"
        static var generated: [Generated<Self>] { [Generated(\.total, sql: "price + count")] }
        var id: Int64?
        var name: String
        var price: Int
        var count: Int
        var total = 0
    }

    private struct PlainLine: Record {
        static let table = "line"
        var id: Int64?
        var name: String
        var price: Int
        var count: Int
        var total = 0
    }

    @Test(.enabled(if: isEngine4))
    func `a column that is computed in another way, or not at all, is a difference`() throws {
        try store.write { tx throws in
            try tx.insert(NewLine(name: "a", price: 3, count: 4))
            #expect(try tx.schemaDifferences(of: OtherLine.self).map(\.column) == ["total"])
            expect(.mismatch) { try tx.create(OtherLine.self) }
            #expect(try tx.schemaDifferences(of: PlainLine.self).map(\.column) == ["total"])
            let line = PlainLine(name: "b", price: 1, count: 1)
            let error = expect(.mismatch) { try tx.insert(line) }
            #expect(error?.message.contains("computed by the file") == true)
        }
        try migrator.run { tx in try tx.alter(OtherLine.self) }
        #expect(try store.read { tx throws in try tx.fetch(OtherLine.all, \.total) } == [7])
    }

    @Test(.enabled(if: isEngine4))
    func `values of a column that is computed from then on are not lost`() throws {
        try store.write { tx throws in
            try tx.insert(PlainLine(name: "a", price: 3, count: 4, total: 99))
            let error = expect(.mismatch) { try tx.insert(NewLine(name: "b", price: 1, count: 1)) }
            #expect(error?.column == "total")
        }
        expect(.mismatch) { try migrator.run { tx in try tx.alter(NewLine.self) } }
        #expect(try store.read { tx throws in try tx.fetch(PlainLine.all, \.total) } == [99])
    }

    private struct GeneratedKey: Record {
        static var generated: [Generated<Self>] { [Generated(\.id, sql: "1")] }
        var id: Int64
        var name: String
    }

    private struct GeneratedWithDefault: Record {
        static var generated: [Generated<Self>] { [Generated(\.name, sql: "'a'")] }
        static var defaults: [Default<Self>] { [Default(\.name, "b")] }
        var id: Int64
        var name: String
    }

    private struct ForeignFunction: Record {
        static var generated: [Generated<Self>] { [Generated(\.name, sql: "md5(id)")] }
        var id: Int64
        var name: String
    }

    @Test func `a key, a default and functions of a program are refused`() throws {
        for type in [GeneratedKey.self, GeneratedWithDefault.self] as [any Record.Type] {
            expect(.misuse) { try store.write { tx throws in try tx.create(type) } }
        }
        expect(isEngine4 ? .misuse : .unsupported) {
            try store.write { tx throws in try tx.create(ForeignFunction.self) }
        }
        #expect(try fixture.values("SELECT * FROM sqlite_master").isEmpty)
    }
}
