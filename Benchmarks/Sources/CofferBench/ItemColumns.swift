import Coffer
import Foundation
import Workloads

/// The columns of an item, for rows that are read where they are.
struct ItemColumns {
    private let id: PropertyColumn<Item, Int64>
    private let name: PropertyColumn<Item, String>
    private let url: PropertyColumn<Item, String>
    private let kind: PropertyColumn<Item, String>
    private let x: PropertyColumn<Item, Double>
    private let y: PropertyColumn<Item, Double>
    private let created: PropertyColumn<Item, Date>
    private let flag: PropertyColumn<Item, Bool>
    private let note: PropertyColumn<Item, String?>
    private let data: PropertyColumn<Item, Data>

    init() throws {
        id = try Item.column(\.id)
        name = try Item.column(\.name)
        url = try Item.column(\.url)
        kind = try Item.column(\.kind)
        x = try Item.column(\.x)
        y = try Item.column(\.y)
        created = try Item.column(\.created)
        flag = try Item.column(\.flag)
        note = try Item.column(\.note)
        data = try Item.column(\.data)
    }

    /// The same number as `Item.digest`, without a copy of a text or a blob.
    func digest(_ row: borrowing BorrowedRow<Item>) throws -> UInt64 {
        var sum = UInt64(bitPattern: try row[id])
        sum &+= UInt64(try row.utf8(name).count)
        sum &+= UInt64(try row.utf8(url).count)
        sum &+= UInt64(try row.utf8(kind).count)
        sum &+= try row[x].bitPattern
        sum &+= try row[y].bitPattern
        sum &+= try row[created].timeIntervalSince1970.bitPattern
        sum &+= try row[flag] ? 1 : 0
        if let note = try row.utf8(note) { sum &+= UInt64(note.count) }
        return sum &+ UInt64(try row.bytes(data).count)
    }
}

extension Item {
    /// A number that differs if a property was read wrong; of texts and blobs it has the sizes.
    var digest: UInt64 {
        var sum = UInt64(bitPattern: id)
        for text in [name, url, kind, note ?? ""] { sum &+= UInt64(text.utf8.count) }
        for real in [x, y, created.timeIntervalSince1970] { sum &+= real.bitPattern }
        return sum &+ (flag ? 1 : 0) &+ UInt64(data.count)
    }
}
