import Coffer
import Foundation
import Workloads

/// W1 to W4 and W6 with `Store` and `Record`.
struct StoreRecords {
    let run: Run

    init(_ run: Run) { self.run = run }

    private func onNewStore(_ body: (Store) throws -> Void) throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try body(store)
            try store.close()
        }
    }

    private func check(_ store: Store) throws -> Check {
        Check(try store.read { tx in try tx.fetch(Item.all) })
    }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        try onNewStore { store in
            try store.write { tx in
                try tx.insert(items[0])
                try tx.delete(Item.all)
            }
            try run.sample(written: Check(items)) {
                try store.write { tx in try tx.insert(items) }
            } check: {
                try check(store)
            }
        }
    }

    func update() throws {
        let before = Item.make(1...run.rows)
        let items = Item.make(1...run.rows, version: 2)
        try onNewStore { store in
            try store.write { tx in
                try tx.insert(before)
                try tx.update(before[0])
            }
            try run.sample(written: Check(items)) {
                try store.write { tx in
                    for index in 0..<run.rows {
                        try tx.update(items[run.shuffled(index)])
                    }
                }
            } check: {
                try check(store)
            }
        }
    }

    /// Reads every property of every row where it is.
    func scan() throws {
        let items = Item.make(1...run.rows)
        run.removeFile()
        let store = try run.openStore()
        try store.write { tx in try tx.insert(items) }
        let columns = try ItemColumns()
        let digest = items.reduce(0) { $0 &+ $1.digest }
        try run.samples(written: Check(digest: digest)) {
            try store.read { tx throws in
                var sum: UInt64 = 0
                try tx.forEachRow(Item.all) { row in sum &+= try columns.digest(row) }
                return sum
            }
        } check: {
            Check(digest: $0)
        }
        try store.close()
    }

    func insertDurably() throws {
        let items = Item.make(1...run.rows)
        try onNewStore { store in
            try store.write { tx in try tx.create(Item.self) }
            try run.sample(written: Check(items)) {
                for item in items { try store.write { tx in try tx.insert(item) } }
            } check: {
                try check(store)
            }
        }
    }

    func insertAtOnce() async throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try await store.write { tx in try tx.create(Item.self) }
            try await run.sample(written: Check(items)) {
                try await Run.writeAtOnce(items[...]) { item in
                    try await store.write { tx in _ = try tx.insert(item) }
                }
            } check: {
                Check(try await store.read { tx in try tx.fetch(Item.all) })
            }
            try await store.close()
        }
    }

    func insertAndFindAtOnce() async throws {
        for _ in 0..<run.repeats {
            let items = Item.make(1...2 * run.rows)
            try fill(Array(items.prefix(run.rows)))
            let store = try run.openStore(readers: 4)
            // Runs once before the clock, so that no latency contains the opening.
            try Run.meet(4) { meet in
                try store.read { tx in
                    _ = try tx.find(Item.self, 1)
                    meet()
                }
            }
            try await run.sampleLatencies(items) { item in
                try await store.write { tx in _ = try tx.insert(item) }
            } find: { id in
                try await store.read { tx in try tx.find(Item.self, id) }
            } all: {
                try await store.read { tx in try tx.fetch(Item.all) }
            }
            try await store.close()
        }
    }

    func fetch() throws {
        try onFilled { store, written in
            try run.samples(written: written) {
                try store.read { tx in try tx.fetch(Item.all) }
            } check: {
                Check($0)
            }
        }
    }

    func find() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        try onFilled { store, _ in
            try run.samples(written: Check(asked: keys, found: items)) {
                try store.read { tx in
                    var items: [Item] = []
                    items.reserveCapacity(run.rows)
                    for index in 0..<run.rows {
                        let key = Int64(run.shuffled(index) + 1)
                        guard let item = try tx.find(Item.self, key) else { throw Missing() }
                        items.append(item)
                    }
                    return items
                }
            } check: {
                Check(asked: keys, found: $0)
            }
        }
    }

    func findMany() throws {
        let keys = (0..<run.rows).map { Int64(run.shuffled($0) + 1) }
        let asked = keys.lazy.map { Int($0) }
        let items = asked.map { Item.make($0...$0)[0] }
        try onFilled { store, _ in
            try run.samples(written: Check(asked: asked, found: items)) {
                try store.read { tx in try tx.find(Item.self, keys: keys) }
            } check: {
                Check(asked: asked, found: $0)
            }
        }
    }

    private func onFilled(_ body: (Store, Check) throws -> Void) throws {
        let items = Item.make(1...run.rows)
        try fill(items)
        let store = try run.openStore()
        try body(store, Check(items))
        try store.close()
    }

    private func fill(_ items: [Item]) throws {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in try tx.insert(items) }
        try filling.close()
    }
}
