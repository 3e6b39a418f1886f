#if Rivals
import Dispatch
import Foundation
import GRDB
import Workloads

/// W1 to W4, W6, open and growth.
struct Records<S: Style> {
    let run: Run

    private func check(_ pool: DatabasePool) throws -> Check {
        Check(try pool.read { db in try S.all(db) })
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
        let filling = try run.openDescribed(isNew: true)
        try filling.write { db in for item in items { try S.insert(item, db) } }
        try filling.close()
        let pool = try run.openDescribed(isNew: false)
        try body(pool, Check(items))
        try pool.close()
    }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        try onNewFile { pool in
            try pool.write { db in
                try S.insert(items[0], db)
                try db.execute(sql: "DELETE FROM item")
            }
            try run.sample(written: Check(items)) {
                try pool.write { db in for item in items { try S.insert(item, db) } }
            } check: {
                try check(pool)
            }
        }
    }

    func update() throws {
        let before = Item.make(1...run.rows)
        let items = Item.make(1...run.rows, version: 2)
        try onNewFile { pool in
            try pool.write { db in
                for item in before { try S.insert(item, db) }
                try S.update(before[0], db)
            }
            try run.sample(written: Check(items)) {
                try pool.write { db in
                    for index in 0..<run.rows { try S.update(items[run.shuffled(index)], db) }
                }
            } check: {
                try check(pool)
            }
        }
    }

    func fetch() throws {
        try onFilled { pool, written in
            try run.samples(written: written) {
                try pool.read { db in try S.all(db) }
            } check: {
                Check($0)
            }
        }
    }

    func find() throws {
        try onFilled { pool, written in
            try run.samples(written: written) {
                try find((0..<run.rows).lazy.map { run.shuffled($0) + 1 }, pool)
            } check: {
                Check($0)
            }
        }
    }

    private func find(_ keys: some Collection<Int>, _ pool: DatabasePool) throws -> [Item] {
        try pool.read { db in
            var items: [Item] = []
            items.reserveCapacity(keys.count)
            for key in keys {
                guard let item = try S.find(Int64(key), db) else { throw Missing() }
                items.append(item)
            }
            return items
        }
    }

    func insertDurably() throws {
        let items = Item.make(1...run.rows)
        try onNewFile { pool in
            try run.sample(written: Check(items)) {
                for item in items { try pool.write { db in try S.insert(item, db) } }
            } check: {
                try check(pool)
            }
        }
    }

    func insertAtOnce() async throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try await run.sample(written: Check(items)) {
                try await Run.writeAtOnce(items[...]) { item in
                    try await pool.write { db in try S.insert(item, db) }
                }
            } check: {
                Check(try await pool.read { db in try S.all(db) })
            }
            try pool.close()
        }
    }

    func insertAndFindAtOnce() async throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try await run.sampleLatencies { items in
                try await pool.write { db in for item in items { try S.insert(item, db) } }
            } write: { item in
                try await pool.write { db in try S.insert(item, db) }
            } find: { id in
                try await pool.read { db in try S.find(id, db) }
            } all: {
                try await pool.read { db in try S.all(db) }
            }
            try pool.close()
        }
    }

    func open(_ key: Key, readers: Int) throws {
        run.removeFile()
        let items = Item.make(1...run.rows)
        let filling = try run.openPool(key)
        try filling.write { db in
            try db.execute(sql: Tables.item)
            for item in items { try S.insert(item, db) }
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
                try pool.close()
                return read
            }
        }
    }

    /// Reads that wait for each other, so that each has a connection of its own.
    private func hold(_ count: Int, _ pool: DatabasePool) throws {
        let arrived = DispatchGroup()
        let done = DispatchGroup()
        for _ in 0..<count { arrived.enter() }
        for _ in 0..<count {
            done.enter()
            Thread.detachNewThread {
                try? pool.read { db in
                    _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
                    arrived.leave()
                    arrived.wait()
                }
                done.leave()
            }
        }
        guard done.wait(timeout: .now() + 30) == .success else { throw Missing() }
    }

    // MARK: Growth

    func insertPortions() throws {
        let pool = try run.openDescribed(isNew: true)
        try run.portions { make in
            try pool.write { db in
                for first in stride(from: 1, through: run.rows, by: 10_000) {
                    for item in make(first...min(first + 9_999, run.rows)) {
                        try S.insert(item, db)
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
            try run.sample(written: Check(keys.map { Item.make($0...$0)[0] })) {
                try find(keys, pool)
            } check: {
                Check($0)
            }
            try pool.close()
        }
    }

    func scan() throws {
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: false)
            try run.sample {
                try pool.read { db in try S.all(db) }
            } sameAs: {
                Check($0)
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
                return try pool.read { db in try S.find(Int64(run.rows), db) }
            } check: {
                Check([$0].compactMap { $0 })
            }
            try opened?.close()
        }
    }
}
#endif
