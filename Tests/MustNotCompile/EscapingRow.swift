// error: 'row' is borrowed and cannot be consumed
import Coffer

struct Item: Record { var id: Int }

struct Box: ~Copyable { var row: BorrowedRow<Item> }

func keepRow(of tx: borrowing ReadTransaction) throws {
    try tx.forEachRow(Item.all) { row in
        let box = Box(row: row)
        _ = box
    }
}
