import Coffer
import Foundation
import Testing

/// Columns whose values have another encoding than Coffer's default.
@Suite(.againstHanging, .onOwnThreads) struct ColumnEncodingTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Visit: Record, Equatable {
        var id: UUID
        var place: UUID?
        var began: Date
        var ended: Date?
        var seen: Date
        var plain: Date
        var day: Date

        static var encodings: [PartialKeyPath<Visit>: ColumnEncoding] {
            [
                \.id: .uuidText, \.place: .uuidText, \.began: .date(.iso8601),
                \.ended: .date(.unixMilliseconds), \.seen: .date(.unixSeconds),
                \.day: .date(.format("dd.MM.yyyy")),
            ]
        }

        static func numbered(_ number: Int) -> Visit {
            let date = Date(timeIntervalSince1970: 1_700_006_400 + Double(number))
            let id = UUID(uuid: (0xab, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number)))
            let midnight = Date(timeIntervalSince1970: 1_700_006_400)
            return Visit(
                id: id, place: number % 2 == 0 ? id : nil, began: date,
                ended: number % 2 == 0 ? date : nil, seen: date, plain: date, day: midnight)
        }
    }

    @Test func `each encoding is stored as declared, and comes back`() throws {
        let all = [Visit.numbered(1), Visit.numbered(2)]
        try fixture.store.write { tx in try tx.insert(all) }
        #expect(try fixture.store.read { tx in try tx.fetch(Visit.order(by: \.id)) } == all)
        #expect(
            try fixture.values("SELECT * FROM visit WHERE place IS NOT NULL") == [
                "AB000000-0000-0000-0000-000000000002", "AB000000-0000-0000-0000-000000000002",
                "2023-11-15T00:00:02.000Z", 1_700_006_402_000, 1_700_006_402.0,
                .real(1_700_006_402 - 978_307_200),
                "15.11.2023",
            ])
        let columns = try fixture.columns(of: "visit").map { $0.split(separator: " ")[1] }
        #expect(
            columns == ["TEXT", "TEXT", "TEXT", "INTEGER", "REAL", "REAL_SINCE_2001", "TEXT"])
    }

    @Test func `keys and conditions use the same encoding`() throws {
        let all = (1...4).map { Visit.numbered($0) }
        try fixture.store.write { tx in try tx.insert(all) }
        try fixture.store.write { tx throws in
            var third = all[2]
            #expect(try tx.find(Visit.self, third.id) == third)
            third.ended = third.began
            #expect(try tx.updateIfPresent(third))
            #expect(try tx.fetch(Visit.where(\.id == third.id)) == [third])
            #expect(try tx.fetch(Visit.where(\.ended == third.began)) == [third])
            #expect(try tx.count(Visit.where(\.began > all[1].began)) == 2)
            #expect(try tx.count(Visit.where([all[0].began].contains(\.began))) == 1)
            #expect(
                try tx.fetch(
                    Visit.self, sql: "SELECT * FROM visit WHERE id = \(third.id.uuidString)") == [
                        third
                    ])
            #expect(try tx.delete(Visit.self, key: third.id))
            #expect(try tx.count(Visit.all) == 3)
        }
    }

    @Test func `an order that the encoding does not have is misuse`() throws {
        let date = Date(timeIntervalSince1970: 0)
        try fixture.store.write { tx in
            try tx.create(Visit.self)
            let error = expect(.misuse) { try tx.count(Visit.where(\.day < date)) }
            #expect(error?.column == "day")
        }
    }

    @Test func `a value that is not in the encoding is a mismatch that names the column`() throws {
        try fixture.store.write { tx in try tx.insert(Visit.numbered(2)) }
        for column in ["id", "began", "day"] {
            let other = try RecordFixture()
            try other.store.write { tx in try tx.insert(Visit.numbered(2)) }
            try other.execute("UPDATE visit SET \(identifier: column) = 'yesterday'")
            let error = expect(.mismatch) {
                try other.store.read { tx in try tx.fetch(Visit.all) }
            }
            #expect(error?.column == column)
        }
    }

    // MARK: Tables of GRDB

    @Test func `a DATETIME of GRDB takes and gives its dates, and create leaves it`() throws {
        struct Player: Record, Equatable {
            static var encodings: [PartialKeyPath<Player>: ColumnEncoding] {
                [\.created: .date(.grdb), \.team: .uuidText]
            }
            var id: Int64
            var name: String
            var created: Date
            var team: UUID?
        }
        try fixture.execute(
            """
            CREATE TABLE player (
                id INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL, created DATETIME NOT NULL,
                team UUID)
            """)
        try fixture.execute(
            "INSERT INTO player VALUES (1, 'Ada', '2023-11-15 00:00:00.250', NULL)")
        let date = Date(timeIntervalSince1970: 1_700_006_400.25)
        var ada = Player(id: 1, name: "Ada", created: date)
        // An exponent and digits alone would be a number.
        let team = try #require(UUID(uuidString: "1E000000-0000-0000-0000-000000000000"))
        let grace = Player(id: 2, name: "Grace", created: date + 1, team: team)
        try fixture.store.write { tx in
            try tx.create(Player.self)
            #expect(try tx.fetch(Player.all) == [ada])
            try tx.insert(grace)
            ada.name = "Ada L."
            try tx.update(ada, only: \.name)
            try tx.update(ada)
            #expect(try tx.fetch(Player.where(\.created == date)) == [ada])
            #expect(try tx.find(Player.self, 2) == grace)
            let types = try tx.scalar(
                "SELECT group_concat(typeof(created) || typeof(team)) FROM player", as: String.self)
            #expect(types == "textnull,texttext")
        }
    }

    @Test(arguments: ["DATETIME", ""])
    func `a date without an encoding is not written among the texts of GRDB`(type: String) throws {
        struct Player: Record {
            var id: Int64
            var created: Date?
        }
        let created = SQL(text: type)
        try fixture.execute(
            "CREATE TABLE player (id INTEGER PRIMARY KEY NOT NULL, created \(created))")
        try fixture.execute("INSERT INTO player VALUES (1, NULL), (2, '2023-11-15 00:00:00.250')")
        let player = Player(id: 3, created: Date())
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.insert(player) }
            #expect(error?.table == "player" && error?.column == "created")
            #expect(error?.hint?.contains(".date(.grdb)") == true)
            expect(.mismatch) { try tx.upsert(player) }
            expect(.mismatch) { try tx.update(Player(id: 1, created: Date()), only: \.created) }
            expect(.mismatch) { try tx.insert([player]) }
            #expect(try tx.requireScalar("SELECT count(*) FROM player", as: Int.self) == 2)
        }
        // Many rows without a date may come first.
        try fixture.execute("DELETE FROM player")
        try fixture.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO player SELECT i, CASE WHEN i > 400 THEN '2023-11-15' END FROM n
            """)
        expect(.mismatch) { try fixture.store.write { tx in try tx.insert(player) } }
        try fixture.execute("DELETE FROM player")
        try fixture.execute("INSERT INTO player VALUES (1, NULL), (4, 'unknown')")
        // FMDB's dates in such a column are numbers.
        try fixture.execute("INSERT INTO player VALUES (2, 1700006400.25)")
        try fixture.store.write { tx throws in
            try tx.insert(player)
            #expect(
                try tx.find(Player.self, 2)?.created?.timeIntervalSince1970 == 1_700_006_400.25)
        }
    }

    @Test func `create leaves columns that GRDB declares as BOOLEAN, NUMERIC and DATETIME`() throws
    {
        struct Player: Record, Equatable {
            var id: Int64
            var isCaptain: Bool
            var score: Double
            var born: Date?
        }
        try fixture.execute(
            """
            CREATE TABLE player (
                id INTEGER PRIMARY KEY NOT NULL, isCaptain BOOLEAN NOT NULL,
                score NUMERIC NOT NULL, born DATETIME)
            """)
        let ada = Player(
            id: 1, isCaptain: true, score: 3, born: Date(timeIntervalSince1970: 1_700_006_400.25))
        try fixture.store.write { tx in
            try tx.create(Player.self)
            try tx.insert(ada)
            #expect(try tx.fetch(Player.where(\.isCaptain == true && \.score == 3)) == [ada])
            #expect(try tx.scalar("SELECT born FROM player", as: Double.self) == 1_700_006_400.25)
        }
        // A text would become a number there.
        struct Named: Record {
            static let table = "player"
            var id: Int64
            var isCaptain: Bool
            var score: String
            var born: Date?
        }
        expect(.mismatch) { try fixture.store.write { tx in try tx.create(Named.self) } }
    }

    // MARK: Both ways

    struct Trip<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "trip" }
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] {
            [
                \.id: .uuidText, \.place: .uuidText, \.began: .date(.iso8601),
                \.ended: .date(.unixMilliseconds), \.seen: .date(.grdb),
                \.day: .date(.format("dd.MM.yyyy")), \.last: .date(.unixSeconds),
            ]
        }
        var id: UUID
        var place: UUID?
        var began: Date
        var ended: Date?
        var seen: Date?
        var day: Date
        var last: Date?
        var plain: Date?
        var title: String

        static func numbered(_ number: Int) -> Self {
            let date = Date(timeIntervalSince1970: 1_700_006_400 + Double(number) / 8)
            let id = UUID(uuid: (0xab, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number)))
            let midnight = Date(timeIntervalSince1970: 1_700_006_400)
            let isFull = number % 2 == 0
            return Self(
                id: id, place: isFull ? id : nil, began: date, ended: isFull ? date : nil,
                seen: isFull ? nil : date, day: midnight, last: isFull ? date : nil,
                plain: isFull ? nil : date, title: "n\(number)")
        }
    }

    private typealias OwnTrip = Trip<RecordPathsTests.Own>
    private typealias StoredTrip = Trip<RecordPathsTests.Stored>

    private func tripRows<P>(_ type: Trip<P>.Type) throws -> [[Value]] {
        try fixture.store.write { tx in
            try tx.delete(type.all)
            try tx.insert((1...4).map { type.numbered($0) })
            var third = type.numbered(3)
            (third.place, third.ended) = (third.id, third.began)
            try tx.update(third, only: \.place, \.ended)
            try tx.upsert(type.numbered(4))
            return try tx.rows("SELECT * FROM trip ORDER BY id").map(\.values)
        }
    }

    private func reads<P>(_ type: Trip<P>.Type) throws -> [[Trip<P>]] {
        let id = type.numbered(2).id
        return try fixture.store.read { tx in
            [
                try tx.fetch(type.all), try tx.fetch(type.order(by: \.title, .descending)),
                try tx.fetch(type, sql: "SELECT title, * FROM trip"),
                try tx.fetch(type.where(\.began >= type.numbered(2).began)),
                try tx.find(type, id).map { [$0] } ?? [],
            ]
        }
    }

    private struct Undo: Error {}

    /// The result of reading values that are not in the encoding: the record or the error.
    private func refusals<P>(_ type: Trip<P>.Type) -> [String] {
        ["id", "place", "began", "ended", "seen", "day", "last", "plain"].flatMap { column in
            ["NULL", "'x'", "5", "0.5", "x'00'", "CAST(x'ff' AS TEXT)"].map { value in
                var found = ""
                try? fixture.store.write { tx in
                    let sql = "UPDATE trip SET \(column) = \(value) WHERE title = 'n2'"
                    try tx.execute(SQL(text: sql))
                    do {
                        let trips = try tx.fetch(type.all).map { "\($0.title) \($0.began)" }
                        found = "\(trips)"
                    } catch let error as StoreError {
                        found = "\(error)"
                    }
                    throw Undo()
                }
                return "\(column) \(value): \(found)"
            }
        }
    }

    @Test func `both ways write the same rows, read the same values and refuse the same`() throws {
        #expect(try StoredTrip.accessReport().reason == nil)
        let columns = "id, place, began, ended, seen, day, last, plain, title"
        // Without column types, so that any value is stored unchanged.
        try fixture.execute(SQL(text: "CREATE TABLE trip(\(columns))"))
        let own = try tripRows(OwnTrip.self)
        let stored = try tripRows(StoredTrip.self)
        #expect(own == stored)
        #expect(own[2][1] == own[2][0])
        let ownReads = try reads(OwnTrip.self)
        let storedReads = try reads(StoredTrip.self)
        #expect(ownReads.map(\.count) == [4, 4, 4, 3, 1])
        #expect(try json(ownReads) == json(storedReads))
        let ownRefusals = refusals(OwnTrip.self)
        #expect(ownRefusals == refusals(StoredTrip.self))
        #expect(ownRefusals.filter { $0.contains("mismatch") }.count > 30)
    }

    private func json(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    struct Wrong: Record {
        var id: Int
        static var encodings: [PartialKeyPath<Wrong>: ColumnEncoding] { [\.id: .uuidText] }
    }

    @Test func `an encoding for another type is misuse`() throws {
        let error = expect(.misuse) { try fixture.store.write { tx in try tx.create(Wrong.self) } }
        #expect(error?.column == "id")
    }
}
