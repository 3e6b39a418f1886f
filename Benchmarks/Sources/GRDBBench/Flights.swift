#if Rivals
import Foundation
import GRDB
import Workloads

/// The real table as Codable records.
struct Flights {
    let run: Run
    private let flights: [Flight]

    init(run: Run) {
        self.run = run
        flights = Flight.read(run.rows)
    }

    func insert() throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try pool.write { db in
                try flights[0].insert(db)
                _ = try Flight.deleteAll(db)
            }
            try run.sample(written: Check(flights)) {
                try insert(pool)
            } check: {
                Check(try pool.read { db in try Flight.fetchAll(db) })
            }
            try pool.close()
        }
    }

    func fetch() throws {
        try onFilled { pool in
            try run.samples(written: Check(flights)) {
                try pool.read { db in try Flight.fetchAll(db) }
            } check: {
                Check($0)
            }
        }
    }

    func ask() throws {
        try onFilled { pool in
            let answers = try pool.read { db in try Flight.answers(db) }
            try run.samples(written: Check(answers)) {
                try pool.read { db in try Flight.answers(db) }
            } check: {
                Check($0)
            }
        }
    }

    private func insert(_ pool: DatabasePool) throws {
        try pool.write { db in for flight in flights { try flight.insert(db) } }
    }

    private func onFilled(_ body: (DatabasePool) throws -> Void) throws {
        let filling = try run.openDescribed(isNew: true)
        try insert(filling)
        try filling.close()
        let pool = try run.openDescribed(isNew: false)
        try body(pool)
        try pool.close()
    }
}

extension Flight: FetchableRecord, PersistableRecord {
    // As all systems store dates: seconds since 1970.
    public static func databaseDateEncodingStrategy(
        for column: String
    ) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    public static func databaseDateDecodingStrategy(
        for column: String
    ) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }

    public enum Columns {
        static let month = Column("month")
        static let day = Column("day")
        static let departure = Column("departure")
        static let departureDelay = Column("departureDelay")
        static let arrivalDelay = Column("arrivalDelay")
        static let carrier = Column("carrier")
        static let flight = Column("flight")
        static let tailNumber = Column("tailNumber")
        static let origin = Column("origin")
        static let destination = Column("destination")
        static let airTime = Column("airTime")
        static let distance = Column("distance")
    }

    /// The questions of Examples/Flights, with the groups that GRDB's requests have.
    fileprivate static func answers(_ db: Database) throws -> [Answer] {
        var answers = try [
            filter { $0.month == 1 && $0.day == 1 },
            filter { $0.arrivalDelay > 120 },
            filter { $0.arrivalDelay > 120 && $0.departureDelay <= 0 },
            filter { ["IAH", "HOU"].contains($0.destination) }
                .filter { ["UA", "AA", "DL"].contains($0.carrier) && (7...9).contains($0.month) },
            filter { $0.departure == nil },
            filter { $0.airTime == nil },
        ].map { try Answer.number($0.fetchCount(db)) }
        let delays = select {
            [average($0.departureDelay), min($0.departureDelay), max($0.departureDelay)]
        }
        answers += try values(delays, db)
        answers += try values(
            select { [$0.origin, sum($0.distance)] }.group { $0.origin }.order { $0.origin }, db)
        answers += try values(
            select { [$0.carrier, count($0.carrier)] }.group { $0.carrier }.order { $0.carrier }, db
        )
        answers += try values(
            select { [$0.carrier, average($0.arrivalDelay)] }.group { $0.carrier }
                .order { $0.carrier }, db)
        let worst = order { [$0.departureDelay.desc, $0.carrier, $0.flight] }.limit(10)
        for flight in try worst.fetchAll(db) {
            answers += [
                .text(flight.carrier), try .number(flight.flight),
                try .number(flight.departureDelay),
            ]
        }
        answers += try values(select { count(distinct: $0.tailNumber) }, db)
        let ofPrefix = try filter { $0.tailNumber.like("N9%") }.fetchCount(db)
        return answers + [try .number(ofPrefix)]
    }

    private static func values(
        _ request: QueryInterfaceRequest<Flight>, _ db: Database
    ) throws -> [Answer] {
        try Row.fetchAll(db, request).flatMap { row in
            try row.databaseValues.map { value in
                if case .string(let text) = value.storage { return .text(text) }
                return try .number(Double.fromDatabaseValue(value))
            }
        }
    }
}
#endif
