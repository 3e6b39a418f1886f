import Coffer
import Foundation
import Workloads

/// What one more property of each type costs a fetched record: `price-none` fetches the keys alone.
struct Prices {
    let run: Run

    init(_ run: Run) { self.run = run }

    func fetch() throws {
        switch run.workload {
        case "price-none": try fetch(Bare.self) { Bare(id: $0) }
        case "price-int": try fetch(Priced<Int>.self) { Priced(id: $0, value: Int($0)) }
        case "price-double": try fetch(Priced<Double>.self) { Priced(id: $0, value: Double($0)) }
        case "price-bool": try fetch(Priced<Bool>.self) { Priced(id: $0, value: $0 % 2 == 0) }
        case "price-date":
            try fetch(Priced<Date>.self) {
                Priced(id: $0, value: Date(timeIntervalSince1970: Double($0)))
            }
        case "price-uuid": try fetch(Priced<UUID>.self) { Priced(id: $0, value: UUID()) }
        case "price-text-15":
            try fetch(Priced<String>.self) { Priced(id: $0, value: Self.text(15)) }
        case "price-text-40":
            try fetch(Priced<String>.self) { Priced(id: $0, value: Self.text(40)) }
        case "price-text-optional":
            try fetch(Priced<String?>.self) { Priced(id: $0, value: Self.text(40)) }
        case "price-data-14":
            try fetch(Priced<Data>.self) { Priced(id: $0, value: Data(repeating: 7, count: 14)) }
        case "price-data-40":
            try fetch(Priced<Data>.self) { Priced(id: $0, value: Data(repeating: 7, count: 40)) }
        case "price-bytes-40":
            try fetch(Priced<[UInt8]>.self) {
                Priced(id: $0, value: [UInt8](repeating: 7, count: 40))
            }
        case "price-enum":
            try fetch(Priced<Kind>.self) { Priced(id: $0, value: $0 % 2 == 0 ? .letter : .note) }
        default: run.skip("not a price")
        }
    }

    private static func text(_ count: Int) -> String { String(repeating: "a", count: count) }

    private func fetch<R: Record & Sendable>(_ type: R.Type, _ make: (Int64) -> R) throws {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in try tx.insert((1...Int64(run.rows)).map(make)) }
        try filling.close()
        let store = try run.openStore()
        try run.samples(written: Check(digest: UInt64(run.rows))) {
            try store.read { tx in try tx.fetch(R.all) }
        } check: {
            Check(digest: UInt64($0.count))
        }
        try store.close()
    }
}

private struct Bare: Record {
    static let table = "priced"
    static let access = Item.access
    let id: Int64
}

private struct Priced<Value: Codable & Sendable>: Record {
    static var table: String { "priced" }
    static var access: RecordAccess { Item.access }
    let id: Int64
    let value: Value
}

private enum Kind: String, Codable {
    case letter, note
}
