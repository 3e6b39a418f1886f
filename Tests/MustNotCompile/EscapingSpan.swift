// error: lifetime-dependent variable 'kept' escapes its scope
import Coffer

struct Item: Record {
    var id: Int
    var name: String
}

func keepSpan(of tx: borrowing ReadTransaction) throws {
    let name = try Item.column(\.name)
    var kept: Span<UInt8>?
    try tx.forEachRow(Item.all) { row in kept = try row.utf8(name) }
    _ = kept?.count
}
