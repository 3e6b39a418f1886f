import Foundation
import Testing
import Workload

@testable import Coffer

/// Dates come back to the bit from new columns, and never 31 years off from any.
@Suite(.againstHanging, .onOwnThreads) struct DateColumnTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Visit: Record, Equatable {
        var id: Int
        var began: Date
        var ended: Date?
    }

    /// The same table for a type that reads and writes its properties in memory.
    struct StoredVisit: Record, Equatable {
        static let table = "visit"
        static let access = RecordAccess.storedProperties
        var id: Int
        var began: Date
        var ended: Date?
    }

    /// A date inside a type of its own, and one as a key.
    struct Stamp: Codable, Hashable {
        var date: Date
        init(_ date: Date) { self.date = date }
        init(from decoder: any Decoder) throws {
            date = try decoder.singleValueContainer().decode(Date.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(date)
        }
    }

    struct Moment: Record, Equatable {
        static let key = ["time"]
        var time: Date
        var stamp: Stamp
    }

    /// How the table came to be.
    enum Origin: CaseIterable {
        case coffer
        case otherProgram
    }

    private func make(_ origin: Origin) throws {
        switch origin {
        case .coffer:
            try fixture.store.write { tx throws in
                try tx.create(Visit.self)
                try tx.create(Moment.self)
            }
        case .otherProgram:
            try fixture.execute(
                "CREATE TABLE visit (id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL)")
            try fixture.execute(
                "CREATE TABLE moment (time REAL PRIMARY KEY NOT NULL, stamp REAL NOT NULL)")
        }
    }

    /// Dates that both counts hold exactly.
    private static func whole(_ number: Int) -> Date {
        Date(timeIntervalSince1970: 1_700_000_000 + Double(number))
    }

    @Test(arguments: [UInt64.random(in: 0 ... .max)])
    func `every date comes back to the bit`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var dates: [Date] = [
            .distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: 0),
            Date(timeIntervalSinceReferenceDate: .leastNonzeroMagnitude),
            Date(timeIntervalSinceReferenceDate: -.pi), Date(timeIntervalSince1970: 0), Date(),
        ]
        for _ in 0..<1_000 {
            dates.append(
                Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &random)))
        }
        let visits = dates.enumerated().map { Visit(id: $0, began: $1, ended: $1) }
        try fixture.store.write { tx in try tx.insert(visits) }
        #expect(try fixture.store.read { tx in try tx.fetch(Visit.order(by: \.id)) } == visits)
        let stored = try fixture.store.read { tx in try tx.fetch(StoredVisit.order(by: \.id)) }
        #expect(stored.map(\.began) == dates && stored.map(\.ended) == dates)
        try fixture.store.read { tx throws in
            for visit in visits.prefix(200) {
                let found = try tx.fetch(Visit.where(\.began == visit.began && \.id == visit.id))
                #expect(found == [visit])
            }
            #expect(try tx.count(Visit.where(dates.contains(\.began))) == visits.count)
            #expect(try tx.max(\Visit.began) == .distantFuture)
            #expect(try tx.min(\Visit.ended) == .distantPast)
            #expect(try Set(tx.distinct(\Visit.began)) == Set(dates))
        }
        // A type that wraps the date keeps the count since 1970, which rounds.
        let fourth = Moment(time: dates[3], stamp: Stamp(Self.whole(0)))
        try fixture.store.write { tx in try tx.insert(fourth) }
        #expect(try fixture.store.read { tx in try tx.find(Moment.self, dates[3]) } == fourth)
    }

    @Test(arguments: Origin.allCases)
    func `verbs and conditions agree, however the table counts`(origin: Origin) throws {
        try make(origin)
        let visits = (0..<300).map {
            Visit(id: $0, began: Self.whole($0), ended: $0 % 3 == 0 ? Self.whole($0 + 1) : nil)
        }
        let began = \Visit.began
        try fixture.store.write { tx throws in
            try tx.insert(visits)
            #expect(try tx.fetch(Visit.where(began == Self.whole(7))).map(\.id) == [7])
            #expect(try tx.count(Visit.where(began < Self.whole(7))) == 7)
            #expect(try tx.count(Visit.where(\.ended == nil)) == 200)
            #expect(try tx.count(Visit.where(\.ended == Self.whole(4))) == 1)
            #expect(try tx.count(Visit.where((Self.whole(3)...Self.whole(5)).contains(began))) == 3)
            #expect(try tx.count(Visit.where((Self.whole(3)..<Self.whole(5)).contains(began))) == 2)
            #expect(try tx.count(Visit.where([Self.whole(1)].contains(began))) == 1)
            let many = (0..<200).map { Self.whole($0) }
            #expect(try tx.count(Visit.where(many.contains(began))) == 200)
            let page = Visit.order(by: began).limit(2)
            #expect(try tx.fetch(page.after(visits[4])).map(\.id) == [5, 6])
            #expect(try tx.max(began) == Self.whole(299))
            #expect(try tx.counts(by: \Visit.ended)[Self.whole(4)] == 1)
            #expect(try tx.update(Visit.where(\.id == 9).set(began, to: Self.whole(900))) == 1)
            #expect(try tx.find(Visit.self, 9)?.began == Self.whole(900))
            try tx.update(visits[9], expecting: began == Self.whole(900))
            #expect(try tx.find(StoredVisit.self, 9)?.began == Self.whole(9))
            #expect(
                try tx.count(
                    Visit.where(.sql("visit.began = \(Self.whole(8), for: \Visit.began)"))) == 1)
        }
    }

    @Test(arguments: Origin.allCases)
    func `a date is found as a key, and inside another type`(origin: Origin) throws {
        try make(origin)
        let moments = (0..<3).map { Moment(time: Self.whole($0), stamp: Stamp(Self.whole($0))) }
        try fixture.store.write { tx throws in
            try tx.insert(moments)
            #expect(try tx.find(Moment.self, Self.whole(1)) == moments[1])
            #expect(try tx.find(Moment.self, keys: [Self.whole(2), Self.whole(0)]).count == 2)
            #expect(try tx.fetch(Moment.where(\.stamp == Stamp(Self.whole(2)))) == [moments[2]])
            try tx.update(moments[1])
            #expect(try tx.delete(Moment.self, key: Self.whole(1)))
            #expect(try tx.delete(moments[0]))
            #expect(try tx.fetch(Moment.all) == [moments[2]])
        }
    }

    @Test func `the declared type tells from when a column counts`() throws {
        try fixture.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, began REAL NOT NULL)")
        try fixture.execute("INSERT INTO visit VALUES (1, 1700000000.0)")
        try fixture.store.write { tx throws in
            try tx.create(Visit.self)
            #expect(try tx.find(Visit.self, 1)?.began == Self.whole(0))
            try tx.insert(Visit(id: 2, began: Self.whole(2), ended: Self.whole(3)))
        }
        #expect(
            try fixture.columns(of: "visit") == [
                "id INTEGER KEY 1", "began REAL NOT NULL", "ended REAL_SINCE_2001",
            ])
        #expect(
            try fixture.values("SELECT began, ended FROM visit WHERE id = 2") == [
                1_700_000_002.0, .real(1_700_000_003 - 978_307_200),
            ])
    }

    @Test func `a column that another connection makes again is read as it counts now`() throws {
        try make(.coffer)
        let visit = Visit(id: 1, began: Self.whole(1), ended: nil)
        try fixture.store.write { tx in try tx.insert(visit) }
        #expect(try fixture.store.read { tx in try tx.fetch(Visit.all) } == [visit])
        let other = try Connection(path: fixture.folder.path(), key: .numbered(7))
        for count in ["REAL", "REAL_SINCE_2001", "REAL"] {
            try other.execute("DROP TABLE visit")
            try other.execute(
                """
                CREATE TABLE visit (
                    id INTEGER PRIMARY KEY, began \(identifier: count) NOT NULL,
                    ended \(identifier: count))
                """)
            try fixture.store.write { tx in try tx.insert(visit) }
            #expect(try fixture.store.read { tx in try tx.fetch(Visit.all) } == [visit])
            #expect(
                try fixture.store.read { tx in try tx.count(Visit.where(\.began == visit.began)) }
                    == 1)
            let seconds = try other.requireScalar("SELECT began FROM visit", as: Double.self)
            #expect(seconds == (count == "REAL" ? 1_700_000_001 : 721_692_801))
        }
        other.close()
    }

    @Test func `a view passes the count of its table on`() throws {
        try make(.coffer)
        try fixture.execute("CREATE VIEW visits AS SELECT * FROM visit")
        struct Visits: Record, Equatable {
            var id: Int
            var began: Date
        }
        let visit = Visit(id: 1, began: Self.whole(1), ended: nil)
        try fixture.store.write { tx in try tx.insert(visit) }
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(Visits.where(\.began == Self.whole(1))).count == 1)
            #expect(try tx.fetch(Visits.all).map(\.began) == [Self.whole(1)])
        }
    }

    @Test func `an encoding that contradicts the declared type is a mismatch`() throws {
        struct Contrary: Record {
            static let table = "visit"
            static var encodings: [PartialKeyPath<Contrary>: ColumnEncoding] {
                [\.began: .date(.unixSeconds)]
            }
            var id: Int
            var began: Date
            var ended: Date?
        }
        try make(.coffer)
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.fetch(Contrary.all) }
            #expect(error?.column == "began")
            expect(.mismatch) { try tx.insert(Contrary(id: 1, began: Date(), ended: nil)) }
        }
    }

    @Test func `a table of a program that counts from 2001 is read by an encoding`() throws {
        struct Event: Record, Equatable {
            static var encodings: [PartialKeyPath<Event>: ColumnEncoding] {
                [\.time: .date(.secondsSince2001)]
            }
            var id: Int
            var time: Date
        }
        try fixture.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, time TIMESTAMP NOT NULL)")
        try fixture.execute("INSERT INTO event VALUES (1, 721692801)")
        try fixture.store.write { tx throws in
            #expect(try tx.find(Event.self, 1)?.time == Self.whole(1))
            try tx.insert(Event(id: 2, time: Self.whole(2)))
            #expect(try tx.count(Event.where(\.time > Self.whole(1))) == 1)
        }
        let seconds = try fixture.store.read { tx in
            try tx.requireScalar("SELECT time FROM event WHERE id = 2", as: Double.self)
        }
        #expect(seconds == 721_692_802)
    }
}
