import CWorkload
public import Foundation

/// The record of flights-…: a flight that left New York in 2013, as in Examples/Flights.
public struct Flight: Codable, Sendable {
    public var id: Int
    public var year: Int
    public var month: Int
    public var day: Int
    public var departure: Int?
    public var scheduledDeparture: Int
    public var departureDelay: Int?
    public var arrival: Int?
    public var scheduledArrival: Int
    public var arrivalDelay: Int?
    public var carrier: String
    public var flight: Int
    public var tailNumber: String?
    public var origin: String
    public var destination: String
    public var airTime: Int?
    public var distance: Int
    public var hour: Int
    public var minute: Int
    public var scheduled: Date
}

extension Flight {
    /// The first flights of the file, as C reads them.
    public static func read(_ count: Int) -> [Flight] {
        // C never returns null here; it ends the process.
        guard let flights = bench_flights_read(Int64(count)) else { return [] }
        return (0..<count).map { Flight(flights[$0]) }
    }

    private init(_ flight: bench_flight) {
        func known(_ value: Int64) -> Int? { value == bench_unknown ? nil : Int(value) }
        self.init(
            id: Int(flight.id), year: Int(flight.year), month: Int(flight.month),
            day: Int(flight.day), departure: known(flight.departure),
            scheduledDeparture: Int(flight.scheduledDeparture),
            departureDelay: known(flight.departureDelay), arrival: known(flight.arrival),
            scheduledArrival: Int(flight.scheduledArrival),
            arrivalDelay: known(flight.arrivalDelay), carrier: flight.carrier.text ?? "",
            flight: Int(flight.flight), tailNumber: flight.tailNumber.text,
            origin: flight.origin.text ?? "", destination: flight.destination.text ?? "",
            airTime: known(flight.airTime), distance: Int(flight.distance),
            hour: Int(flight.hour), minute: Int(flight.minute),
            scheduled: Date(timeIntervalSince1970: flight.scheduled))
    }
}

/// One value of an answer to a question about the flights.
public enum Answer: Sendable {
    case number(Double)
    case text(String)

    /// A value that must exist.
    public static func number(_ number: Double?) throws -> Answer {
        guard let number else { throw Missing() }
        return .number(number)
    }

    public static func number(_ number: Int?) throws -> Answer {
        try .number(number.map { Double($0) })
    }
}
