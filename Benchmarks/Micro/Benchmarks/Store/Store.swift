import Benchmark
import Coffer
import Fixture

/// The cost of a transaction before anything is done in it, and with one row.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room(per: .kilo)
    let notes = Note.thousand

    Benchmark.add("empty-read") { benchmark in
        try measure(benchmark) { store in
            for _ in benchmark.scaledIterations { try store.read { _ in } }
        }
    }

    Benchmark.add("empty-write") { benchmark in
        try measure(benchmark) { store in
            for _ in benchmark.scaledIterations { try store.write { _ in } }
        }
    }

    Benchmark.add("empty-savepoint") { benchmark in
        try measure(benchmark) { store in
            try store.write { tx in
                for _ in benchmark.scaledIterations { try tx.savepoint { _ in } }
            }
        }
    }

    Benchmark.add("write-one-row") { benchmark in
        try Scratch.withStore { tx in
            try tx.create(Note.self)
        } body: { store in
            try benchmark.measure(expecting: notes) {
                for note in notes { try store.write { tx in try tx.insert(note) } }
            } thenReading: {
                try store.read { tx in try tx.fetch(Note.order(by: \.id)) }
            }
        }
    }

    /// A body that does nothing leaves every row as it was.
    func measure(_ benchmark: Benchmark, _ body: (Coffer.Store) throws -> Void) throws {
        try Scratch.withStore { tx in
            try tx.insert(notes)
        } body: { store in
            try body(store)
            try benchmark.measure(expecting: notes) {
                try body(store)
            } thenReading: {
                try store.read { tx in try tx.fetch(Note.order(by: \.id)) }
            }
        }
    }
}
