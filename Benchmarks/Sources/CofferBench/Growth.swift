import Coffer
import Foundation
import Workloads

/// How the cost of each verb grows with the number of rows.
struct Growth {
    let run: Run
    /// Records are made in portions, so that ten million need no memory for all of them.
    private let portion = 10_000
    private let lookups = 10_000

    init(_ run: Run) { self.run = run }

    func insert() throws {
        run.removeFile()
        let store = try run.openStore()
        try run.portions { make in
            try store.write { tx in
                for first in stride(from: 1, through: run.rows, by: portion) {
                    try tx.insert(make(first...min(first + portion - 1, run.rows)))
                }
            }
        } read: {
            Check(try store.read { tx in try tx.fetch(Item.all) })
        }
        try store.close()
    }

    /// The file is the one that `insert` left.
    func get() throws {
        for _ in 0..<run.repeats {
            let store = try run.openStore()
            let keys = (0..<lookups).map { Run.shuffled($0, run.rows) + 1 }
            let written = Check(asked: keys, found: keys.lazy.map { Item.make($0...$0)[0] })
            try run.sample(written: written) {
                try store.read { tx in
                    var items: [Item] = []
                    items.reserveCapacity(lookups)
                    for key in keys {
                        guard let item = try tx.find(Item.self, Int64(key)) else { throw Missing() }
                        items.append(item)
                    }
                    return items
                }
            } check: {
                Check(asked: keys, found: $0)
            }
            try store.close()
        }
    }

    func scan() throws {
        for _ in 0..<run.repeats {
            let store = try run.openStore()
            try run.sample {
                try store.read { tx in try tx.fetch(Item.all) }
            } sameAs: {
                Check($0)
            }
            try store.close()
        }
    }

    func open() throws {
        let written = Check(Item.make(run.rows...run.rows))
        try run.openStore().close()
        let configuration = run.configuration(connections: 2)
        for _ in 0..<run.repeats {
            var opened: Store?
            try run.sample(written: written) {
                let store = try Store(
                    path: run.path, key: .raw(Run.key), configuration: configuration)
                opened = store
                return try store.read { tx in try tx.find(Item.self, Int64(run.rows)) }
            } check: {
                Check([$0].compactMap { $0 })
            }
            try opened?.close()
        }
    }
}
