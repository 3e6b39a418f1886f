import Coffer
import Foundation
import Workloads

/// open, rekey, verify and compact: whole files.
struct Files {
    let run: Run

    init(_ run: Run) { self.run = run }

    /// - Parameter readers: The number of reads held open at once; 0 for a store that only opens.
    func open(_ key: @autoclosure () -> StoreKey, readers: Int) throws {
        run.removeFile()
        let items = Item.make(1...run.rows)
        let configuration = run.configuration(connections: 5)
        // Ends here: what is left of this store must not be released while the clock runs.
        do {
            let filling = try Store(path: run.path, key: key(), configuration: configuration)
            try filling.write { tx in try tx.insert(items) }
            try filling.close()
        }
        for _ in 0..<run.repeats {
            var written = Check()
            var read = Check()
            written.add(run.rows)
            try run.sample(written: written) {
                let store = try Store(path: run.path, key: key(), configuration: configuration)
                if readers > 0 { try store.hold(readers) }
                return store
            } check: { store in
                read.add(try store.read { tx in try tx.count(Item.all) })
                try run.describe(store)
                // Closed here, because a thread that ends may still hold the last reference.
                try store.close()
                return read
            }
        }
    }

    func rekey() throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            try fill(items)
            let store = try run.openStore()
            try run.sample(written: Check(items), units: Double(run.fileByteCount) / 1e6) {
                try store.rekey(to: .raw(Run.otherKey))
            } check: {
                try store.close()
                let other = try Store(path: run.path, key: .raw(Run.otherKey))
                let read = Check(try other.read { tx in try tx.fetch(Item.all) })
                try other.close()
                return read
            }
        }
    }

    func verify() throws {
        try fill(Item.make(1...run.rows))
        for _ in 0..<run.repeats {
            let store = try run.openStore()
            try run.sample(written: Check(), units: Double(run.fileByteCount) / 1e6) {
                try store.verify()
            } check: { report in
                guard report.isGood else { throw Missing() }
                return Check()
            }
            try store.close()
        }
        try run.requireFound { copy in
            let store = try Store(path: copy, key: .raw(Run.key))
            return try !store.verify().isGood
        }
    }

    /// Compacts the file after every second row was deleted.
    func compact() throws {
        for _ in 0..<run.repeats {
            try fill(Item.make(1...run.rows))
            let byteCount = run.fileByteCount
            let store = try run.openStore()
            try store.write { tx in try tx.execute("DELETE FROM item WHERE id % 2 = 0") }
            try store.checkpoint(.truncate)
            try run.sample(written: Check(), units: Double(byteCount) / 1e6) {
                try store.compact()
            } check: { report in
                guard report.isShortened, report.content.rowCount == run.rows / 2 else {
                    throw Missing()
                }
                return Check()
            }
            try store.close()
        }
    }

    private func fill(_ items: [Item]) throws {
        run.removeFile()
        let store = try run.openStore()
        try store.write { tx in try tx.insert(items) }
        try store.close()
    }
}

extension Store {
    /// Opens this many readers.
    func hold(_ count: Int) throws {
        try Run.meet(count) { meet in
            try self.read { tx in
                _ = try tx.firstRow("SELECT count(*) FROM sqlite_master")
                meet()
            }
        }
    }
}
