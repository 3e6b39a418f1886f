import Coffer
import Workloads

/// The real table with `Store` and `Record`: imported, fetched, and queried by key path.
struct Flights {
    let run: Run
    private let flights: [Flight]

    init(_ run: Run) {
        self.run = run
        flights = Flight.read(run.rows)
    }

    func insert() throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try store.write { tx in
                try tx.insert(flights[0])
                try tx.delete(Flight.all)
            }
            try run.sample(written: Check(flights)) {
                try store.write { tx in try tx.insert(flights) }
            } check: {
                Check(try store.read { tx in try tx.fetch(Flight.all) })
            }
            try store.close()
        }
    }

    func fetch() throws {
        try onFilled { store in
            try run.samples(written: Check(flights)) {
                try store.read { tx in try tx.fetch(Flight.all) }
            } check: {
                Check($0)
            }
        }
    }

    func ask() throws {
        try onFilled { store in
            let answers = try store.read { tx in try tx.answers() }
            try run.samples(written: Check(answers)) {
                try store.read { tx in try tx.answers() }
            } check: {
                Check($0)
            }
        }
    }

    private func onFilled(_ body: (Store) throws -> Void) throws {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in try tx.insert(flights) }
        try filling.close()
        let store = try run.openStore()
        try body(store)
        try store.close()
    }
}

extension Flight: Record {
    public static let access = Item.access
    public static var indexes: [Index<Self>] { [Index(\.carrier), Index(\.origin)] }
}

extension ReadTransaction {
    /// The questions of Examples/Flights.
    fileprivate func answers() throws -> [Answer] {
        let isFlightInSummer: Condition<Flight> =
            ["IAH", "HOU"].contains(\.destination) && ["UA", "AA", "DL"].contains(\.carrier)
            && (7...9).contains(\.month)
        var answers = try [
            Flight.where(\.month == 1 && \.day == 1),
            Flight.where(\.arrivalDelay > 120),
            Flight.where(\.arrivalDelay > 120 && \.departureDelay <= 0),
            Flight.where(isFlightInSummer),
            Flight.where(\.departure == nil),
            Flight.where(\.airTime == nil),
        ].map { try Answer.number(count($0)) }
        let delays = try aggregate(
            Flight.all, .average(\.departureDelay), .min(\.departureDelay), .max(\.departureDelay))
        if let (mean, least, greatest) = delays {
            answers += [try .number(mean), try .number(least), try .number(greatest)]
        }
        let origins = Flight.group(by: \.origin).order(by: \.origin)
        for (origin, miles) in try fetch(origins, .sum(\.distance)) {
            answers += [.text(origin), try .number(miles)]
        }
        let carriers = Flight.group(by: \.carrier).order(by: \.carrier)
        for (carrier, count) in try fetch(carriers, .count) {
            answers += [.text(carrier), try .number(count)]
        }
        for (carrier, delay) in try fetch(carriers, .average(\.arrivalDelay)) {
            answers += [.text(carrier), try .number(delay)]
        }
        let worst = Flight.order(by: \.departureDelay, .descending).order(by: \.carrier)
            .order(by: \.flight).limit(10)
        for flight in try fetch(worst) {
            answers += [
                .text(flight.carrier), try .number(flight.flight),
                try .number(flight.departureDelay),
            ]
        }
        let planes = try aggregate(Flight.all, .count(distinct: \.tailNumber))
        let ofPrefix = try count(Flight.where(.hasPrefix(\.tailNumber, "N9")))
        return answers + [try .number(planes), try .number(ofPrefix)]
    }
}
