import Coffer
import Foundation

/// A question about the flights, in Swift and in SQL. An answer is a list of numbers and texts.
struct Question: Sendable {
    let text: String
    let sql: String
    let swift: @Sendable (inout ReadTransaction) throws -> [Answer]
}

/// Questions about the data that its documentation asks: see Examples/Data/README.md.
let questions = [
    Question(
        text: "flights on New Year's Day",
        sql: "SELECT count(*) FROM flight WHERE month = 1 AND day = 1"
    ) { tx in
        [.count(try tx.count(Flight.where(\.month == 1 && \.day == 1)))]
    },
    Question(
        text: "arrived more than two hours late",
        sql: "SELECT count(*) FROM flight WHERE arr_delay > 120"
    ) { tx in
        [.count(try tx.count(Flight.where(\.arrivalDelay > 120)))]
    },
    Question(
        text: "arrived late though they left in time",
        sql: "SELECT count(*) FROM flight WHERE arr_delay > 120 AND dep_delay <= 0"
    ) { tx in
        [.count(try tx.count(Flight.where(\.arrivalDelay > 120 && \.departureDelay <= 0)))]
    },
    Question(
        text: "flew to Houston with United, American or Delta in summer",
        sql: """
            SELECT count(*) FROM flight WHERE dest IN ('IAH', 'HOU')
            AND carrier IN ('UA', 'AA', 'DL') AND month BETWEEN 7 AND 9
            """
    ) { tx in
        let isWanted: Condition<Flight> =
            ["IAH", "HOU"].contains(\.destination) && ["UA", "AA", "DL"].contains(\.carrier)
            && (7...9).contains(\.month)
        return [.count(try tx.count(Flight.where(isWanted)))]
    },
    Question(
        text: "never left",
        sql: "SELECT count(*), (SELECT count(*) FROM flight WHERE air_time IS NULL) "
            + "FROM flight WHERE dep_time IS NULL"
    ) { tx in
        [
            .count(try tx.count(Flight.where(\.departure == nil))),
            .count(try tx.count(Flight.where(\.airTime == nil))),
        ]
    },
    Question(
        text: "mean, least and greatest delay of departure",
        sql: "SELECT avg(dep_delay), min(dep_delay), max(dep_delay) FROM flight"
    ) { tx in
        let delays = try tx.aggregate(
            Flight.all, .average(\.departureDelay), .min(\.departureDelay),
            .max(\.departureDelay))
        return delays.map { mean, least, greatest in
            [.mean(mean), .count(least), .count(greatest)]
        } ?? []
    },
    Question(
        text: "made up time in the air, and their mean speed in miles per hour",
        sql: """
            SELECT count(*), avg(distance * 60.0 / air_time) FROM flight
            WHERE arr_delay < dep_delay
            """
    ) { tx in
        let faster = Flight.where(\.arrivalDelay < \.departureDelay)
        let speed: Calculation<Flight, Double> = .double(\.distance) * 60 / .double(\.airTime)
        let means = try tx.aggregate(faster, .count, .average(speed))
        return means.map { count, mean in [.count(count), .mean(mean)] } ?? []
    },
    Question(
        text: "miles flown from each airport of New York",
        sql: "SELECT sum(distance) FROM flight GROUP BY origin ORDER BY origin"
    ) { tx in
        try tx.fetch(Flight.group(by: \.origin).order(by: \.origin), .sum(\.distance))
            .map { _, miles in .count(miles) }
    },
    Question(
        text: "flights of each carrier",
        sql: "SELECT carrier, count(*) FROM flight GROUP BY carrier ORDER BY carrier"
    ) { tx in
        try tx.fetch(Flight.group(by: \.carrier).order(by: \.carrier), .count)
            .flatMap { carrier, count in [.text(carrier), .count(count)] }
    },
    Question(
        text: "the mean delay of each carrier",
        sql: "SELECT carrier, avg(arr_delay) FROM flight GROUP BY carrier ORDER BY carrier"
    ) { tx in
        try tx.fetch(Flight.group(by: \.carrier).order(by: \.carrier), .average(\.arrivalDelay))
            .flatMap { carrier, mean in [.text(carrier), .mean(mean)] }
    },
    Question(
        text: "the airports and carriers that came latest, of those with many flights",
        sql: """
            SELECT origin, carrier, avg(arr_delay) FROM flight GROUP BY origin, carrier
            HAVING count(*) > 1000 ORDER BY avg(arr_delay) DESC LIMIT 3
            """
    ) { tx in
        let latest = Flight.group(by: \.origin, \.carrier).having(.count > 1000)
            .order(by: .average(\.arrivalDelay), .descending).limit(3)
        return try tx.fetch(latest, .average(\.arrivalDelay))
            .flatMap { origin, carrier, mean in [.text(origin), .text(carrier), .mean(mean)] }
    },
    Question(
        text: "the ten that were most delayed",
        sql: """
            SELECT carrier, flight, dep_delay FROM flight
            ORDER BY dep_delay DESC, carrier, flight LIMIT 10
            """
    ) { tx in
        let worst = Flight.order(by: \.departureDelay, .descending).order(by: \.carrier)
            .order(by: \.flight).limit(10)
        return try tx.fetch(worst).flatMap {
            [.text($0.carrier), .count($0.flight), .count($0.departureDelay)]
        }
    },
    Question(
        text: "how many planes, and those whose number begins with N9",
        sql: """
            SELECT count(DISTINCT tailnum),
            (SELECT count(*) FROM flight WHERE substr(tailnum, 1, 2) = 'N9') FROM flight
            """
    ) { tx in
        [
            .count(try tx.aggregate(Flight.all, .count(distinct: \.tailNumber))),
            .count(try tx.count(Flight.where(.hasPrefix(\.tailNumber, "N9")))),
        ]
    },
]

/// One value of an answer, as Python prints it in JSON.
enum Answer: Equatable, CustomStringConvertible {
    case number(Double)
    case text(String)
    case nothing

    static func count(_ count: Int?) -> Answer { count.map { .number(Double($0)) } ?? .nothing }

    static func mean(_ mean: Double?) -> Answer { mean.map { .number($0) } ?? .nothing }

    var description: String {
        switch self {
        case .number(let number): "\(number)"
        case .text(let text): text
        case .nothing: "null"
        }
    }
}
