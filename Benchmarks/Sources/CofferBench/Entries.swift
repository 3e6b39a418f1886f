import CWorkload
import Coffer
import Foundation
import Workloads

/// W5 and the blobs with a bucket.
struct StoreEntries {
    let run: Run
    private let bucket = Bucket<Data, Data>("entry")

    init(_ run: Run) { self.run = run }

    private func value(_ key: Data, _ tx: borrowing some Reading & ~Copyable) throws -> Data {
        guard let value = try tx.get(key, in: bucket) else { throw Missing() }
        return value
    }

    private func all(_ entries: [Entry], _ store: Store) throws -> [Entry] {
        try store.read { tx in
            try entries.map { Entry(key: $0.key, value: try value($0.key, tx)) }
        }
    }

    func put() throws { try put(Entry.make(run.rows)) }

    func putBlobs() throws { try put(Entry.blobs(run.rows)) }

    private func put(_ entries: [Entry]) throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try store.write { tx in
                try tx.set(Data(), for: entries[0].key, in: bucket)
                try tx.removeAll(in: bucket)
            }
            try run.sample(written: Check(entries)) {
                try store.write { tx in
                    for entry in entries { try tx.set(entry.value, for: entry.key, in: bucket) }
                }
            } check: {
                Check(try all(entries, store))
            }
            try store.close()
        }
    }

    func get() throws {
        try get(Entry.make(run.rows).map { ($0.key, $0.value) }, in: bucket) { pairs in
            Check(pairs.map { Entry(key: $0.key, value: $0.value) })
        }
    }

    /// Gets the same bytes as arrays.
    func getBytes() throws {
        let pairs = Entry.make(run.rows).map { ($0.key, [UInt8]($0.value)) }
        try get(pairs, in: Bucket("entry")) { pairs in
            Check(pairs.map { Entry(key: $0.key, value: Data($0.value)) })
        }
    }

    /// Gets an integer for each key.
    func getIntegers() throws {
        let pairs = Entry.make(run.rows).enumerated().map { index, entry in
            (entry.key, bench_integer(Int64(index)))
        }
        try get(pairs, in: Bucket("entry")) { pairs in Check(integers: pairs.map(\.value)) }
    }

    private typealias Pairs<V> = [(key: Data, value: V)]

    /// - Parameter sum: The sum over pairs, in any order.
    private func get<V>(
        _ pairs: Pairs<V>, in bucket: Bucket<Data, V>, sum: (Pairs<V>) -> Check
    ) throws {
        let keys = pairs.map(\.key)
        try onFilled(pairs, in: bucket) { store in
            try run.samples(written: sum(pairs)) {
                try store.read { tx in
                    var values: [V] = []
                    values.reserveCapacity(run.rows)
                    for index in 0..<run.rows {
                        let key = keys[run.shuffled(index)]
                        guard let value = try tx.get(key, in: bucket) else { throw Missing() }
                        values.append(value)
                    }
                    return values
                }
            } check: { values in
                sum(values.indices.map { (keys[run.shuffled($0)], values[$0]) })
            }
        }
    }

    /// 64 tasks, each of which waits for its set before it begins the next.
    func setAtOnce() async throws {
        let entries = Entry.make(run.rows)
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try await run.sample(written: Check(entries)) {
                try await Run.writeAtOnce(entries[...]) { entry in
                    try await store.set(entry.value, for: entry.key, in: bucket)
                }
            } check: { _ in
                Check(try all(entries, store))
            }
            try await store.close()
        }
    }

    /// Gets each entry in one call, which is a read of its own or finds the value in the cache.
    func getEach() throws {
        let entries = Entry.make(run.rows)
        try onFilled(entries) { store in
            try run.samples(written: Check(entries)) {
                var values: [Data] = []
                values.reserveCapacity(run.rows)
                for index in 0..<run.rows {
                    let key = entries[run.shuffled(index)].key
                    guard let value = try store.get(key, in: bucket) else { throw Missing() }
                    values.append(value)
                }
                return values
            } check: { values in
                Check(
                    values.indices.map {
                        Entry(key: entries[run.shuffled($0)].key, value: values[$0])
                    })
            }
            guard run.system != "coffer-cached" || store.statistics.bucketCache.hitCount > 0 else {
                throw Missing()
            }
        }
    }

    /// Gets a thousand entries in each call.
    func getMany() throws {
        let entries = Entry.make(run.rows)
        let keys = (0..<run.rows).map { entries[run.shuffled($0)].key }
        try onFilled(entries) { store in
            try run.samples(written: Check(entries)) {
                var found: [[Data: Data]] = []
                for start in stride(from: 0, to: keys.count, by: 1000) {
                    found.append(
                        try store.get(keys[start..<min(start + 1000, keys.count)], in: bucket))
                }
                return found
            } check: { found in
                var check = Check()
                for (key, value) in found.joined() { check.add(key, value) }
                return check
            }
        }
    }

    /// Reads all keys in their order.
    func scanKeys() throws {
        let entries = Entry.make(run.rows)
        try onFilled(entries) { store in
            try run.samples(written: Check(entries.map { Entry(key: $0.key, value: Data()) })) {
                try store.keys(in: bucket)
            } check: { keys in
                Check(keys.map { Entry(key: $0, value: Data()) })
            }
        }
    }

    /// Reads all entries in the order of their keys.
    func scan() throws {
        let entries = Entry.make(run.rows)
        try onFilled(entries) { store in
            try run.samples(written: Check(entries)) {
                try store.entries(in: bucket)
            } check: { found in
                Check(found.map { Entry(key: $0.key, value: $0.value) })
            }
        }
    }

    func getBlobs() throws {
        let entries = Entry.blobs(run.rows)
        for _ in 0..<run.repeats {
            try onFilled(entries) { store in
                try run.sample(written: Check(entries)) {
                    try store.read { tx in try entries.map { try value($0.key, tx) } }
                } check: { values in
                    Check(values.indices.map { Entry(key: entries[$0].key, value: values[$0]) })
                }
            }
        }
    }

    private func onFilled(_ entries: [Entry], _ body: (Store) throws -> Void) throws {
        try onFilled(entries.map { ($0.key, $0.value) }, in: bucket, body)
    }

    private func onFilled<V>(
        _ pairs: Pairs<V>, in bucket: Bucket<Data, V>, _ body: (Store) throws -> Void
    ) throws {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in
            for (key, value) in pairs { try tx.set(value, for: key, in: bucket) }
        }
        try filling.close()
        let store = try run.openStore()
        try body(store)
        try store.close()
    }
}

/// W5 with `Connection` and its statements.
struct ConnectionEntries {
    let run: Run
    private let entries: [Entry]

    init(_ run: Run) {
        self.run = run
        entries = Entry.make(run.rows)
    }

    private struct Table {
        let connection: Connection
        let insert: Statement
        let update: Statement
        let select: Statement

        init(_ connection: Connection) throws {
            self.connection = connection
            insert = try connection.prepare(Tables.putOnce)
            update = try connection.prepare(Tables.putAgain)
            select = try connection.prepare(Tables.get)
        }

        func put(_ entry: Entry) throws {
            do {
                try run(insert, entry)
            } catch let error as StoreError where error.code == .constraint {
                // The key exists.
                try run(update, entry)
            }
        }

        private func run(_ statement: Statement, _ entry: Entry) throws {
            try statement.bind([.blob(entry.key), .blob(entry.value)])
            while try statement.step() {}
        }

        func get(_ key: Data) throws -> Data {
            try select.bind([.blob(key)])
            guard try select.step() else { throw Missing() }
            return try select.value(at: 0, as: Data.self)
        }
    }

    func put() throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let connection = try run.openConnection()
            try connection.execute(SQL(text: Tables.entry))
            let table = try Table(connection)
            try connection.transaction {
                // A new key, and an existing one.
                try table.put(entries[0])
                try table.put(entries[0])
                try connection.execute("DELETE FROM entry")
            }
            try run.sample(written: Check(entries)) {
                try connection.transaction { for entry in entries { try table.put(entry) } }
            } check: {
                try connection.transaction(.deferred) {
                    let read = try entries.map { Entry(key: $0.key, value: try table.get($0.key)) }
                    try table.select.reset()
                    return Check(read)
                }
            }
            connection.close()
        }
    }

    func get() throws {
        run.removeFile()
        let filling = try run.openConnection()
        try filling.execute(SQL(text: Tables.entry))
        try filling.transaction {
            let table = try Table(filling)
            for entry in entries { try table.put(entry) }
        }
        filling.close()
        let connection = try run.openConnection()
        let table = try Table(connection)
        try run.samples(written: Check(entries)) {
            try connection.transaction(.deferred) {
                var values: [Data] = []
                values.reserveCapacity(run.rows)
                for index in 0..<run.rows {
                    values.append(try table.get(entries[run.shuffled(index)].key))
                }
                try table.select.reset()
                return values
            }
        } check: { values in
            Check(
                values.indices.map {
                    Entry(key: entries[run.shuffled($0)].key, value: values[$0])
                })
        }
        connection.close()
    }
}
