import CWorkload
public import Foundation

/// The sum over rows that were written or read, the same as in C.
public struct Check {
    var sum = bench_check()

    public init() {}

    /// The sum of rows that were read in place.
    public init(digest: UInt64) { sum.sum = digest }

    public init(_ items: some Sequence<Item>) {
        for item in items { add(item) }
    }

    public init(_ entries: some Sequence<Entry>) {
        for entry in entries { add(entry.key, entry.value) }
    }

    /// Integers, each of which counts as one row.
    public init(integers: some Sequence<Int64>) {
        for integer in integers {
            bench_check_integer(&sum, integer)
            bench_check_end_row(&sum)
        }
    }

    /// The count of each text, in the order of the texts' bytes; each is one row.
    public init(counts: [String: Int]) {
        for (text, count) in counts.sorted(by: { $0.key < $1.key }) {
            add(text)
            bench_check_integer(&sum, Int64(count))
            bench_check_end_row(&sum)
        }
    }

    public init(_ flights: some Sequence<Flight>) {
        for flight in flights { add(flight) }
    }

    /// All answers count as one row, in their order.
    public init(_ answers: some Sequence<Answer>) {
        for answer in answers {
            switch answer {
            case .number(let number): bench_check_real(&sum, number)
            case .text(let text): add(text)
            }
        }
        bench_check_end_row(&sum)
    }

    /// Lookups: each requested key, and the item found under it.
    public init(asked keys: some Sequence<Int>, found items: some Sequence<Item>) {
        for (key, item) in zip(keys, items) {
            bench_check_integer(&sum, Int64(key))
            add(item)
        }
    }

    public mutating func add(_ item: Item) {
        bench_check_integer(&sum, item.id)
        add(item.name)
        add(item.url)
        add(item.kind)
        bench_check_real(&sum, item.x)
        bench_check_real(&sum, item.y)
        bench_check_real(&sum, item.created.timeIntervalSince1970)
        bench_check_integer(&sum, item.flag ? 1 : 0)
        if let note = item.note { add(note) } else { bench_check_null(&sum) }
        add(item.data)
        bench_check_end_row(&sum)
    }

    private mutating func add(_ flight: Flight) {
        add(known: flight.id)
        add(known: flight.year)
        add(known: flight.month)
        add(known: flight.day)
        add(known: flight.departure)
        add(known: flight.scheduledDeparture)
        add(known: flight.departureDelay)
        add(known: flight.arrival)
        add(known: flight.scheduledArrival)
        add(known: flight.arrivalDelay)
        add(flight.carrier)
        add(known: flight.flight)
        if let tailNumber = flight.tailNumber { add(tailNumber) } else { bench_check_null(&sum) }
        add(flight.origin)
        add(flight.destination)
        add(known: flight.airTime)
        add(known: flight.distance)
        add(known: flight.hour)
        add(known: flight.minute)
        bench_check_real(&sum, flight.scheduled.timeIntervalSince1970)
        bench_check_end_row(&sum)
    }

    private mutating func add(known integer: Int?) {
        if let integer { bench_check_integer(&sum, Int64(integer)) } else { bench_check_null(&sum) }
    }

    public mutating func add(_ key: Data, _ value: Data) {
        add(key)
        add(value)
        bench_check_end_row(&sum)
    }

    /// The rows of another sum.
    public mutating func add(_ other: Check) { sum.sum &+= other.sum.sum }

    /// A row of one number.
    public mutating func add(_ integer: Int) {
        bench_check_integer(&sum, Int64(integer))
        bench_check_end_row(&sum)
    }

    /// A row of an integer, a text, more integers and more texts, in this order.
    public mutating func add(
        _ integer: Int64, _ name: String, _ more: [Int64] = [], _ texts: [String] = []
    ) {
        bench_check_integer(&sum, integer)
        add(name)
        for integer in more { bench_check_integer(&sum, integer) }
        for text in texts { add(text) }
        bench_check_end_row(&sum)
    }

    /// A row of integers and a real.
    public mutating func add(_ integers: [Int64], _ real: Double) {
        for integer in integers { bench_check_integer(&sum, integer) }
        bench_check_real(&sum, real)
        bench_check_end_row(&sum)
    }

    private mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { bench_check_bytes(&sum, $0.baseAddress, Int64($0.count)) }
    }

    private mutating func add(_ data: Data) {
        data.withUnsafeBytes { bench_check_bytes(&sum, $0.baseAddress, Int64($0.count)) }
    }
}
