import Coffer
import Foundation
import Workloads

/// Fetches records of a key and one property of a type; `price-none` fetches the key alone.
struct Prices {
    let run: Run

    init(_ run: Run) { self.run = run }

    func fetch() throws {
        switch run.workload {
        case "price-none": try fetch { Bare(id: $0) }
        case "price-int": try fetch { WithInt(id: $0, value: Int($0)) }
        case "price-double": try fetch { WithDouble(id: $0, value: Double($0)) }
        case "price-bool": try fetch { WithBool(id: $0, value: $0 % 2 == 0) }
        case "price-date":
            try fetch { WithDate(id: $0, value: Date(timeIntervalSince1970: Double($0))) }
        case "price-uuid": try fetch { WithUUID(id: $0, value: UUID()) }
        case "price-text-15": try fetch { WithText(id: $0, value: Self.text(15)) }
        case "price-text-40": try fetch { WithText(id: $0, value: Self.text(40)) }
        case "price-text-optional": try fetch { WithOptionalText(id: $0, value: Self.text(40)) }
        case "price-data-14": try fetch { WithData(id: $0, value: Data(repeating: 7, count: 14)) }
        case "price-data-40": try fetch { WithData(id: $0, value: Data(repeating: 7, count: 40)) }
        case "price-bytes-40":
            try fetch { WithBytes(id: $0, value: [UInt8](repeating: 7, count: 40)) }
        case "price-enum": try fetch { WithEnum(id: $0, value: $0 % 2 == 0 ? .letter : .note) }
        default: run.skip("not a price")
        }
    }

    private static func text(_ count: Int) -> String { String(repeating: "a", count: count) }

    private func fetch<R: Priced>(_ make: (Int64) -> R) throws {
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

private protocol Priced: Record {
    var id: Int64 { get }
}

extension Priced {
    static var table: String { "priced" }
    static var access: RecordAccess { Item.access }
}

private struct Bare: Priced {
    let id: Int64
}

private enum Kind: String, Codable {
    case letter, note
}

private struct WithInt: Priced {
    let id: Int64
    let value: Int
}

private struct WithDouble: Priced {
    let id: Int64
    let value: Double
}

private struct WithBool: Priced {
    let id: Int64
    let value: Bool
}

private struct WithDate: Priced {
    let id: Int64
    let value: Date
}

private struct WithUUID: Priced {
    let id: Int64
    let value: UUID
}

private struct WithText: Priced {
    let id: Int64
    let value: String
}

private struct WithOptionalText: Priced {
    let id: Int64
    let value: String?
}

private struct WithData: Priced {
    let id: Int64
    let value: Data
}

private struct WithBytes: Priced {
    let id: Int64
    let value: [UInt8]
}

private struct WithEnum: Priced {
    let id: Int64
    let value: Kind
}
