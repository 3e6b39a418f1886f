import Benchmark
import Coffer
import Fixture

/// Work on a whole store, here of a thousand rows.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room()
    let notes = Note.thousand

    Benchmark.add("rekey") { benchmark in
        try withStore { store in
            // The salt stays, so the key does not include it.
            let otherKey = [UInt8](repeating: 7, count: 32)
            try benchmark.measure(expecting: notes) {
                try store.rekey(to: .raw(otherKey))
            } thenReading: {
                try store.read { tx in try tx.fetch(Note.order(by: \.id)) }
            }
        }
    }

    Benchmark.add("verify") { benchmark in
        try withStore { store in
            try benchmark.measure(expecting: true) {
                let report = try store.verify()
                return report.isGood && report.isStructureChecked
            }
        }
    }

    Benchmark.add("backup") { benchmark in
        try withStore { store in
            let path = store.path + "-copy"
            try benchmark.measure(expecting: notes) {
                try store.backup(to: path)
            } thenReading: { _ in
                let copy = try Scratch.openStore(path)
                defer { try? copy.close() }
                return try copy.read { tx in try tx.fetch(Note.order(by: \.id)) }
            }
        }
    }

    func withStore(_ body: (Store) throws -> Void) throws {
        try Scratch.withStore(fill: { tx in try tx.insert(notes) }, body: body)
    }
}
