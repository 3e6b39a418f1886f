import CWorkload
import Coffer
import Workloads

/// W1-bind and W2-borrow: what the Engine room adds to C, without Swift's strings and structs.
struct BorrowedRows {
    let run: Run

    init(_ run: Run) { self.run = run }

    /// Binds the same bytes as C does, where they are.
    func insert() throws {
        let count = Int64(run.rows)
        guard let records = bench_records_make(1, count, 2) else { throw Missing() }
        defer { bench_records_free(records, count) }
        let items = Item.make(1...run.rows, version: 2)
        for _ in 0..<run.repeats {
            run.removeFile()
            let connection = try run.openConnection()
            try connection.execute(SQL(text: Tables.item))
            let insert = try connection.prepare(Tables.insert)
            let select = try connection.prepare(Tables.select)
            try connection.transaction {
                try insert.write(records[0])
                try connection.execute("DELETE FROM item")
            }
            try run.sample(written: Check(items)) {
                try connection.transaction {
                    for index in 0..<run.rows { try insert.write(records[index]) }
                }
            } check: {
                Check(try connection.transaction(.deferred) { try select.items() })
            }
            connection.close()
        }
    }

    /// Reads every column of every row where it is.
    func scan() throws {
        let count = Int64(run.rows)
        guard let records = bench_records_make(1, count, 1) else { throw Missing() }
        defer { bench_records_free(records, count) }
        let digest = (0..<run.rows).reduce(0) { $0 &+ bench_digest(records + $1) }
        run.removeFile()
        let filling = try run.openConnection()
        try filling.execute(SQL(text: Tables.item))
        let insert = try filling.prepare(Tables.insert)
        try filling.transaction {
            for index in 0..<run.rows { try insert.write(records[index]) }
        }
        filling.close()
        let connection = try run.openConnection()
        let select = try connection.prepare(Tables.select)
        try run.samples(written: Check(digest: digest)) {
            try connection.transaction(.deferred) {
                var sum: UInt64 = 0
                while try select.step() { sum &+= try select.digest() }
                return sum
            }
        } check: {
            Check(digest: $0)
        }
        connection.close()
    }
}

extension Statement {
    fileprivate func write(_ record: bench_record) throws {
        try bind(record.id, at: 0)
        try bind(record.name, at: 1)
        try bind(record.url, at: 2)
        try bind(record.kind, at: 3)
        try bind(record.x, at: 4)
        try bind(record.y, at: 5)
        try bind(record.created, at: 6)
        try bind(record.flag, at: 7)
        if record.note.bytes == nil { try bindNull(at: 8) } else { try bind(record.note, at: 8) }
        try bind(
            bytes: UnsafeRawBufferPointer(
                start: record.data.bytes, count: Int(record.data.count)), at: 9)
        try run()
    }

    private func bind(_ text: bench_bytes, at index: Int) throws {
        let start = UnsafeRawPointer(text.bytes)?.assumingMemoryBound(to: UInt8.self)
        try bind(utf8: UnsafeBufferPointer(start: start, count: Int(text.count)), at: index)
    }

    fileprivate func digest() throws -> UInt64 {
        var sum = UInt64(bitPattern: try value(at: 0, as: Int64.self))
        sum &+= try byteCount(at: 1)
        sum &+= try byteCount(at: 2)
        sum &+= try byteCount(at: 3)
        sum &+= try value(at: 4, as: Double.self).bitPattern
        sum &+= try value(at: 5, as: Double.self).bitPattern
        sum &+= try value(at: 6, as: Double.self).bitPattern
        sum &+= try value(at: 7, as: Int64.self) != 0 ? 1 : 0
        // NULL has no bytes.
        sum &+= try withUTF8(at: 8) { UInt64($0.count) } ?? 0
        guard let data = try withBytes(at: 9, { UInt64($0.count) }) else { throw Missing() }
        return sum &+ data
    }

    private func byteCount(at index: Int) throws -> UInt64 {
        guard let count = try withUTF8(at: index, { UInt64($0.count) }) else { throw Missing() }
        return count
    }
}
