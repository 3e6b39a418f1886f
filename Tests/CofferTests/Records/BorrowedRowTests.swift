import Foundation
import Testing

@testable import Coffer

/// Rows that are read where SQLite has them.
@Suite(.againstHanging, .onOwnThreads) struct BorrowedRowTests {
    private let fixture: RecordFixture
    private let things: [Thing]

    enum Kind: String, Codable { case small, large }
    struct Nested: Codable, Equatable { var parts: [Int] }

    struct Thing: Record, Equatable {
        var id: Int64
        var count: Int
        var byte: UInt8
        var isOpen: Bool
        var weight: Double
        var ratio: Float?
        var name: String
        var comment: String?
        var data: Data
        var more: Data?
        var bytes: [UInt8]
        var others: [UInt8]?
        var key: UUID
        var day: Date
        var night: Date?
        var kind: Kind
        var nested: Nested
        var maybe: Nested?

        init(_ id: Int64) {
            let isNil = id % 3 == 0
            self.id = id
            (count, byte, isOpen) = (Int(id) * -7, UInt8(id), id % 2 == 0)
            (weight, ratio) = (Double(id) / 3, isNil ? nil : Float(id) / 4)
            (name, comment) = ("né\(id)\u{0}x", isNil ? nil : "")
            (data, more) = (Data([1, 0, UInt8(id)]), isNil ? nil : Data())
            (bytes, others) = ([UInt8](repeating: 9, count: Int(id) * 800), isNil ? nil : [2])
            key = UUID()
            (day, night) = (Date(timeIntervalSince1970: 0.1 + weight), isNil ? nil : .distantPast)
            (kind, nested) = (isNil ? .small : .large, Nested(parts: [Int(id), 3]))
            maybe = isNil ? nil : nested
        }
    }

    init() throws {
        fixture = try RecordFixture()
        things = (1...20).map(Thing.init)
        let things = things
        try fixture.store.write { tx in try tx.insert(things) }
    }

    private func check<V: Codable & Equatable>(
        _ path: KeyPath<Thing, V> & Sendable, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let column = try Thing.column(path)
        var found: [V] = []
        try fixture.store.read { tx throws in
            try tx.forEachRow(Thing.order(by: \.id)) { row in found.append(try row[column]) }
        }
        #expect(found == things.map { $0[keyPath: path] }, sourceLocation: sourceLocation)
    }

    @Test func `each property has the value that its record would have`() throws {
        try check(\.id)
        try check(\.count)
        try check(\.byte)
        try check(\.isOpen)
        try check(\.weight)
        try check(\.ratio)
        try check(\.name)
        try check(\.comment)
        try check(\.data)
        try check(\.more)
        try check(\.bytes)
        try check(\.others)
        try check(\.key)
        try check(\.day)
        try check(\.night)
        try check(\.kind)
        try check(\.nested)
        try check(\.maybe)
    }

    @Test func `texts and blobs are lent as they are, and NULL is nil`() throws {
        let (name, comment) = (try Thing.column(\.name), try Thing.column(\.comment))
        let (data, more) = (try Thing.column(\.data), try Thing.column(\.more))
        let (bytes, others) = (try Thing.column(\.bytes), try Thing.column(\.others))
        var index = 0
        try fixture.store.read { tx throws in
            try tx.forEachRow(Thing.order(by: \.id)) { row in
                let thing = things[index]
                let texts: [[UInt8]?] = [array(try row.utf8(name)), array(try row.utf8(comment))]
                #expect(texts == [Array(thing.name.utf8), thing.comment.map { Array($0.utf8) }])
                let blobs: [[UInt8]?] = [array(try row.bytes(data)), array(try row.bytes(more))]
                #expect(blobs == [Array(thing.data), thing.more.map { Array($0) }])
                let arrays: [[UInt8]?] = [
                    array(try row.bytes(bytes)), array(try row.bytes(others)),
                ]
                #expect(arrays == [thing.bytes, thing.others])
                index += 1
            }
        }
        #expect(index == things.count)
    }

    private func array(_ span: Span<UInt8>?) -> [UInt8]? {
        guard let span else { return nil }
        return span.withUnsafeBufferPointer { Array($0) }
    }

    struct Visit: Record {
        static var references: [Reference<Self>] { [Reference(\.day, to: Day.self)] }
        var id: Int
        var name: String
        var at: Date
        var day: Int
    }

    struct Day: Record {
        static var references: [Reference<Self>] { [Reference(\.visit, to: Visit.self)] }
        var id: Int
        var date: Date
        var visit: Int
    }

    /// The dates of these rows count from 1970 in one table, and from 2001 in the other.
    @Test func `dates count as the file says, in any part of a row`() throws {
        let (old, new) = (Date(timeIntervalSince1970: 1000.5), Date(timeIntervalSince1970: 7.25))
        try fixture.execute("CREATE TABLE visit(id INTEGER PRIMARY KEY, name, at REAL, day INT)")
        try fixture.execute("INSERT INTO visit VALUES (1, 'a', 1000.5, 1)")
        try fixture.store.write { tx in try tx.insert(Day(id: 1, date: new, visit: 1)) }
        let (at, date) = (try Visit.column(\.at), try Day.column(\.date))
        var found: [Date] = []
        try fixture.store.read { tx throws in
            try tx.forEachRow(Visit.all.joining(\.day, to: Day.all)) { visit, day in
                found += [try visit[at], try day[date]]
            }
            try tx.forEachRow(Day.all.joining(\.visit, to: Visit.all)) { day, visit in
                found += [try visit[at], try day[date]]
            }
            try tx.forEachRow(Visit.all, reading: [\.at]) { row in found.append(try row[at]) }
            try tx.forEachRow(Day.all, reading: [\.date]) { row in found.append(try row[date]) }
        }
        #expect(found == [old, new, old, new, old, new])
    }

    @Test func `a column with an encoding of its own is read by it`() throws {
        struct Meeting: Record {
            static var encodings: [PartialKeyPath<Self>: ColumnEncoding] {
                [\.day: .date(.iso8601), \.key: .uuidText]
            }
            var id: Int
            var day: Date
            var key: UUID
            var data: Lazy<Data>?
        }
        let meeting = Meeting(
            id: 1, day: Date(timeIntervalSince1970: 1_000_000_000), key: UUID(),
            data: Lazy(Data([1, 2, 3])))
        try fixture.store.write { tx in try tx.insert(meeting) }
        let (day, key) = (try Meeting.column(\.day), try Meeting.column(\.key))
        let data = try Meeting.column(\.data)
        var seen = 0
        try fixture.store.read { tx throws in
            try tx.forEachRow(Meeting.all) { row in
                let (foundDay, foundKey) = (try row[day], try row[key])
                #expect(foundDay == meeting.day && foundKey == meeting.key)
                let size = try row[data]?.byteCount
                #expect(size == 3)
                seen += 1
            }
        }
        #expect(seen == 1)
    }

    @Test func `only the chosen properties are read, in any order`() throws {
        let (count, name) = (try Thing.column(\.count), try Thing.column(\.name))
        let weight = try Thing.column(\.weight)
        var found: [String] = []
        try fixture.store.read { tx throws in
            let some = Thing.where(\.isOpen == true).order(by: \.id, .descending).limit(3)
            try tx.forEachRow(some, reading: [\.name, \.count, \.name]) { row in
                found.append("\(try row[name]) \(try row[count])")
                expect(.misuse, at: "weight") { _ = try row[weight] }
            }
        }
        let expected = things.reversed().filter(\.isOpen).prefix(3)
        #expect(found == expected.map { "\($0.name) \($0.count)" })
    }

    @Test func `a key path without a column is refused`() throws {
        expect(.misuse) { _ = try Thing.column(\.nested.parts) }
        expect(.misuse) {
            try fixture.store.read { tx throws in
                try tx.forEachRow(Thing.all, reading: [\.nested.parts]) { _ in }
            }
        }
    }

    @Test func `a value that does not fit names its column and its row`() throws {
        try fixture.execute("UPDATE thing SET count = 'x', name = CAST(x'ff' AS TEXT) WHERE id = 4")
        try fixture.execute("UPDATE thing SET data = 'text', byte = 256 WHERE id = 4")
        let (count, name) = (try Thing.column(\.count), try Thing.column(\.name))
        let (byte, data) = (try Thing.column(\.byte), try Thing.column(\.data))
        var seen = 0
        try fixture.store.read { tx throws in
            try tx.forEachRow(Thing.where(\.id == 4)) { row in
                expect(.mismatch, at: "count") { _ = try row[count] }
                expect(.mismatch, at: "name") { _ = try row[name] }
                expect(.mismatch, at: "name") { _ = try row.utf8(name).count }
                expect(.mismatch, at: "data") { _ = try row.bytes(data).count }
                let error = expect(.mismatch) { _ = try row[byte] }
                #expect(error?.column == "byte")
                #expect(error?.message.contains("in the row with id 4") == true)
                seen += 1
            }
        }
        #expect(seen == 1)
    }

    /// Expects an error that names a column.
    private func expect(
        _ code: StoreError.Code, at column: String,
        sourceLocation: SourceLocation = #_sourceLocation, _ work: () throws -> Void
    ) {
        let error = CofferTests.expect(code, sourceLocation: sourceLocation, work)
        #expect(error?.column == column, sourceLocation: sourceLocation)
    }

    @discardableResult
    private func expect<T>(_ code: StoreError.Code, _ work: () throws -> T) -> StoreError? {
        CofferTests.expect(code, work)
    }

    struct Stop: Error {}

    @Test func `an error of the body ends the loop and comes out as it is`() throws {
        let id = try Thing.column(\.id)
        var seen: [Int64] = []
        #expect(throws: Stop.self) {
            try fixture.store.read { tx throws in
                try tx.forEachRow(Thing.order(by: \.id)) { row in
                    seen.append(try row[id])
                    if seen.count == 2 { throw Stop() }
                }
            }
        }
        #expect(seen == [1, 2])
        // The table of this type exists, so this error is not its own.
        let own = StoreError(.notFound, "mine", table: "thing")
        let error = expect(.notFound) {
            try fixture.store.read { tx throws in try tx.forEachRow(Thing.all) { _ in throw own } }
        }
        #expect(error?.message == "mine")
    }

    struct Absent: Record { var id: Int }

    @Test func `a type without a table has no rows`() throws {
        try fixture.store.read { tx throws in
            try tx.forEachRow(Absent.all) { _ in Issue.record("there is a row") }
        }
    }

    @Test func `the body may read the same type, and write`() throws {
        let (id, name) = (try Thing.column(\.id), try Thing.column(\.name))
        try fixture.store.write { tx throws in
            try tx.forEachRow(Thing.where(\.id <= 3).order(by: \.id)) { row in
                let key = try row[id]
                let text = try row[name]
                #expect(try tx.find(Thing.self, key)?.name == text)
                #expect(try tx.fetch(Thing.all).count == things.count)
                var inner = 0
                try tx.forEachRow(Thing.all) { other in
                    inner += try other[id] == key ? 1 : 0
                }
                #expect(inner == 1)
                try tx.execute("UPDATE thing SET count = 5 WHERE id = \(key)")
                #expect(try row.utf8(name).count == things[Int(key) - 1].name.utf8.count)
            }
            #expect(try tx.count(Thing.where(\.count == 5)) == 3)
        }
    }

    @Test func `lent bytes stay until the body returns, although their statement was ended`()
        throws
    {
        let bytes = try Thing.column(\.bytes)
        let expected = things[9].bytes
        var isSame = false
        try fixture.store.read { tx throws in
            try tx.forEachRow(Thing.where(\.id == 10)) { row in
                let lent = try row.bytes(bytes)
                // As after a rollback that SQLite could not make beside a running statement.
                try tx.connection().abandonRunningStatements()
                isSame = array(lent) == expected
            }
        }
        #expect(isSame)
    }

    @Test func `a transaction that is undone in the body ends the loop with an error`() throws {
        var seen = 0
        let bytes = try Thing.column(\.bytes)
        let expected = things[9].bytes
        var isSame = false
        expect(.rolledBack) {
            try fixture.store.write { tx throws in
                try tx.forEachRow(Thing.where(\.id >= 10).order(by: \.id)) { row in
                    seen += 1
                    let lent = try row.bytes(bytes)
                    _ = try? tx.execute("INSERT OR ROLLBACK INTO thing(id) VALUES (1)")
                    isSame = array(lent) == expected
                }
            }
        }
        #expect(isSame && seen == 1)
        #expect(try fixture.store.read { tx in try tx.count(Thing.all) } == things.count)
    }

    @Test func `a cancelled task ends the loop`() async throws {
        let (store, hold) = (fixture.store, Hold())
        let task = Task {
            try await store.read { tx throws in
                var count = 0
                try tx.forEachRow(Thing.all) { _ in
                    count += 1
                    if count == 1 { hold.stay() }
                }
                Issue.record("the loop has seen \(count) rows")
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `the body never gets a row of a damaged page`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        struct Item: Record {
            static let table = "t"
            var id: Int
            var flag: Int
            var data: Data
        }
        let blobs = try BlobFixture(mode)
        _ = try blobs.insertDamaged(part)
        let store = try blobs.store()
        let (flag, data) = (try Item.column(\.flag), try Item.column(\.data))
        expect(.damaged) {
            try store.read { tx throws in
                try tx.forEachRow(Item.all) { row in
                    Issue.record("\(try row[flag]) and \(try row.bytes(data).count) bytes")
                }
            }
        }
    }
}
