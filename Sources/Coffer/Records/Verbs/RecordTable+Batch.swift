extension WriteTransaction {
    /// Inserts records in place, without copies, 64 at a time. Before each portion, `connection()`
    /// checks whether to stop.
    func insertEach<R: Record>(of records: UnsafeBufferPointer<R>) throws {
        guard let start = records.baseAddress else { return }
        let portion = 64
        for first in stride(from: 0, to: records.count, by: portion) {
            let connection = try connection()
            try RecordTable.of(R.self, connection).insert(
                start + first, count: Swift.min(portion, records.count - first), connection)
        }
    }
}

extension RecordTable {
    /// Adds records one by one.
    func insert<R: Record>(
        _ records: UnsafePointer<R>, count: Int, _ connection: Connection
    ) throws(StoreError) {
        let statement = try insertStatement(connection)
        for index in 0..<count {
            try add(statement, connection) { () throws(StoreError) in
                try encoder.bind(records + index, to: statement)
            }
        }
    }
}
