import Benchmark
import Coffer
import Fixture

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room(per: .kilo)
    let notes = Note.thousand
    let changed = notes.map { Note(Int($0.id), version: 2) }

    Benchmark.add("insert") { benchmark in
        try measureWriting(benchmark, from: [], to: notes) { tx in try tx.insert(notes) }
    }

    Benchmark.add("update") { benchmark in
        try measureWriting(benchmark, from: notes, to: changed) { tx in
            for note in changed { try tx.update(note) }
        }
    }

    Benchmark.add("insert-or-update") { benchmark in
        let half = Array(notes.prefix(notes.count / 2))
        try measureWriting(benchmark, from: half, to: changed) { tx in
            for note in changed { try tx.upsert(note) }
        }
    }

    Benchmark.add("find") { benchmark in
        try measureReading(benchmark) { tx in try notes.map { try tx.find(Note.self, $0.id) } }
    }

    Benchmark.add("fetch-all") { benchmark in
        try measureReading(benchmark) { tx in try tx.fetch(Note.order(by: \.id)) }
    }

    // As `find`, but the SQL is made and looked up each time.
    Benchmark.add("first-of-query") { benchmark in
        try measureReading(benchmark) { tx in
            try notes.map { try tx.first(Note.where(\.id == $0.id)) }
        }
    }

    func measureWriting(
        _ benchmark: Benchmark, from before: [Note], to after: [Note],
        _ body: (inout WriteTransaction) throws -> Void
    ) throws {
        try Scratch.withStore { tx in
            try tx.create(Note.self)
            try tx.insert(before)
        } body: { store in
            try benchmark.measure(expecting: after) {
                try store.write(body)
            } thenReading: {
                try store.read { tx in try tx.fetch(Note.order(by: \.id)) }
            }
        }
    }

    func measureReading(
        _ benchmark: Benchmark, _ body: (inout ReadTransaction) throws -> [Note?]
    ) throws {
        try Scratch.withStore { tx in
            try tx.insert(notes)
        } body: { store in
            try benchmark.measure(expecting: notes) { try store.read(body) }
        }
    }
}
