#if Rivals
import Foundation
import GRDB
import Workloads

/// W1 to W4, W6, open and growth.
struct Records<S: Style> {
    let run: Run

    private func check(_ pool: DatabasePool) throws -> Check { check(try all(pool)) }

    private func check(_ records: [S.Record]) -> Check { Check(records.lazy.map(\.item)) }

    private func records(_ items: [Item]) -> [S.Record] { items.map { S.Record($0) } }

    private func all(_ pool: DatabasePool) throws -> [S.Record] {
        try pool.read { db in try S(db).all() }
    }

    private func insert(_ records: [S.Record], _ pool: DatabasePool) throws {
        try pool.write { db in
            let style = try S(db)
            for record in records { try style.insert(record) }
        }
    }

    private func fill(_ items: [Item]) throws {
        let filling = try run.openDescribed(isNew: true)
        try insert(records(items), filling)
        try filling.close()
    }

    private func onNewFile(_ body: (DatabasePool) throws -> Void) throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try body(pool)
            try pool.close()
        }
    }

    private func onFilled(_ body: (DatabasePool, Check) throws -> Void) throws {
        let items = Item.make(1...run.rows)
        try fill(items)
        let pool = try run.openDescribed(isNew: false)
        try body(pool, Check(items))
        try pool.close()
    }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        let records = records(items)
        try onNewFile { pool in
            try pool.write { db in
                try S(db).insert(records[0])
                try db.execute(sql: "DELETE FROM item")
            }
            try run.sample(written: Check(items)) {
                try insert(records, pool)
            } check: {
                try check(pool)
            }
        }
    }

    func update() throws {
        let before = records(Item.make(1...run.rows))
        let items = Item.make(1...run.rows, version: 2)
        let records = records(items)
        try onNewFile { pool in
            try pool.write { db in
                let style = try S(db)
                for record in before { try style.insert(record) }
                try style.update(before[0])
            }
            try run.sample(written: Check(items)) {
                try pool.write { db in
                    let style = try S(db)
                    for index in 0..<run.rows { try style.update(records[run.shuffled(index)]) }
                }
            } check: {
                try check(pool)
            }
        }
    }

    func fetch() throws {
        try onFilled { pool, written in
            try run.samples(written: written) {
                try all(pool)
            } check: {
                check($0)
            }
        }
    }

    func find() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        try onFilled { pool, _ in
            try run.samples(written: Check(asked: keys, found: items)) {
                try find(keys, pool)
            } check: {
                Check(asked: keys, found: $0.lazy.map(\.item))
            }
        }
    }

    private func find(_ keys: [Int], _ pool: DatabasePool) throws -> [S.Record] {
        try pool.read { db in
            let style = try S(db)
            var records: [S.Record] = []
            records.reserveCapacity(keys.count)
            for key in keys {
                guard let record = try style.find(Int64(key)) else { throw Missing() }
                records.append(record)
            }
            return records
        }
    }

    func insertDurably() throws {
        let items = Item.make(1...run.rows)
        let records = records(items)
        try onNewFile { pool in
            try run.sample(written: Check(items)) {
                for record in records { try pool.write { db in try S(db).insert(record) } }
            } check: {
                try check(pool)
            }
        }
    }

    func insertAtOnce() async throws {
        let items = Item.make(1...run.rows)
        let records = records(items)
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try await run.sample(written: Check(items)) {
                try await Run.writeAtOnce(records[...]) { record in
                    try await pool.write { db in try S(db).insert(record) }
                }
            } check: {
                check(try await pool.read { db in try S(db).all() })
            }
            try pool.close()
        }
    }

    func insertAndFindAtOnce() async throws {
        for _ in 0..<run.repeats {
            let items = Item.make(1...2 * run.rows)
            try fill(Array(items.prefix(run.rows)))
            let pool = try run.openDescribed(isNew: false)
            // Runs once before the clock, so that no latency contains the opening.
            try Run.meet(4) { meet in
                try pool.read { db in
                    _ = try S(db).find(1)
                    meet()
                }
            }
            try await run.sampleLatencies(items) { item in
                let record = S.Record(item)
                try await pool.write { db in try S(db).insert(record) }
            } find: { id in
                try await pool.read { db in try S(db).find(id) }?.item
            } all: {
                try await pool.read { db in try S(db).all() }.map(\.item)
            }
            try pool.close()
        }
    }

    func open(_ key: Key, readers: Int) throws {
        run.removeFile()
        let records = records(Item.make(1...run.rows))
        let filling = try run.openPool(key)
        try filling.write { db in
            try db.execute(sql: Tables.item)
            let style = try S(db)
            for record in records { try style.insert(record) }
        }
        try filling.close()
        for _ in 0..<run.repeats {
            var written = Check()
            written.add(run.rows)
            try run.sample(written: written) {
                let pool = try run.openPool(key)
                if readers > 0 { try hold(readers, pool) }
                return pool
            } check: { pool in
                var read = Check()
                read.add(
                    try pool.read { db in
                        try Int.fetchOne(db, sql: "SELECT count(*) FROM item") ?? 0
                    })
                try run.describe(pool)
                try pool.close()
                return read
            }
        }
    }

    private func hold(_ count: Int, _ pool: DatabasePool) throws {
        try Run.meet(count) { meet in
            try pool.read { db in
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
                meet()
            }
        }
    }

    // MARK: Growth

    func insertPortions() throws {
        let pool = try run.openDescribed(isNew: true)
        try run.portions { make in
            try pool.write { db in
                let style = try S(db)
                for first in stride(from: 1, through: run.rows, by: 10_000) {
                    for item in make(first...min(first + 9_999, run.rows)) {
                        try style.insert(S.Record(item))
                    }
                }
            }
        } read: {
            try check(pool)
        }
        try pool.close()
    }

    func findSome() throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: false)
            let keys = (0..<10_000).map { Run.shuffled($0, run.rows) + 1 }
            let written = Check(asked: keys, found: keys.lazy.map { Item.make($0...$0)[0] })
            try run.sample(written: written) {
                try find(keys, pool)
            } check: {
                Check(asked: keys, found: $0.lazy.map(\.item))
            }
            try pool.close()
        }
    }

    func scan() throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: false)
            try run.sample {
                try all(pool)
            } sameAs: {
                check($0)
            }
            try pool.close()
        }
    }

    func openAndFind() throws {
        let written = Check(Item.make(run.rows...run.rows))
        try run.openDescribed(isNew: false).close()
        for _ in 0..<run.repeats {
            var opened: DatabasePool?
            try run.sample(written: written) {
                let pool = try run.openPool()
                opened = pool
                return try pool.read { db in try S(db).find(Int64(run.rows)) }
            } check: {
                check([$0].compactMap { $0 })
            }
            try opened?.close()
        }
    }
}
#endif
