import Coffer
import Foundation
import Workloads

/// How the cost of each verb grows with the number of rows.
struct Growth {
    let run: Run
    /// Records are made in portions, so that ten million need no memory for all of them.
    private let portion = 10_000
    private let lookups = 10_000
    private let ranges = 1000
    private let rangeRows = 100

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

    /// Looks up rows by a text that has an index.
    func findByName() throws {
        let making = try run.openStore()
        try making.write { tx in
            try tx.execute("CREATE INDEX IF NOT EXISTS item_name ON item (name)")
        }
        try making.checkpoint(.truncate)
        try making.close()
        try onFile { store in
            let expected = (0..<lookups).map { index in
                let key = Run.shuffled(index, run.rows) + 1
                return Item.make(key...key)[0]
            }
            try run.sample(written: Check(expected)) {
                try store.read { tx in
                    var items: [Item] = []
                    items.reserveCapacity(lookups)
                    for name in expected.lazy.map(\.name) {
                        guard let item = try tx.first(Item.where(\.name == name)) else {
                            throw Missing()
                        }
                        items.append(item)
                    }
                    return items
                }
            } check: {
                Check($0)
            }
        }
    }

    /// Fetches rows that follow each other.
    func findRanges() throws {
        try onFile { store in
            let keys = (0..<ranges).map { index in
                let first = Run.shuffled(index, run.rows - rangeRows) + 1
                return Int64(first)...Int64(first + rangeRows - 1)
            }
            var written = Check()
            for range in keys {
                written.add(Check(Item.make(Int(range.lowerBound)...Int(range.upperBound))))
            }
            try run.sample(written: written) {
                try store.read { tx in
                    try keys.map { range in try tx.fetch(Item.where(range.contains(\.id))) }
                }
            } check: { found in
                Check(found.joined())
            }
        }
    }

    /// Counts the rows of each kind.
    func group() throws {
        try onFile { store in
            try run.sample {
                try store.read { tx in try tx.counts(by: \Item.kind) }
            } sameAs: { counts in
                Check(counts: counts)
            }
        }
    }

    func verify() throws {
        try onFile { store in
            try run.sample(written: Check()) {
                try store.verify()
            } check: { report in
                guard report.isGood else { throw Missing() }
                return Check()
            }
        }
    }

    /// Runs `body` on a store that was opened for it, as often as requested.
    private func onFile(_ body: (Store) throws -> Void) throws {
        for _ in 0..<run.repeats {
            let store = try run.openStore()
            try body(store)
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
