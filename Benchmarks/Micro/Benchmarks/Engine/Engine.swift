import Benchmark
import Coffer
import Fixture

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room(per: .kilo)
    let notes = Note.thousand
    let insertion = "INSERT INTO note VALUES (?, ?, ?, ?, ?)"

    Benchmark.add("insert-prepared") { benchmark in
        try Scratch.withConnection { connection in
            try benchmark.measure(expecting: notes) {
                try connection.transaction {
                    let insert = try connection.prepare(insertion)
                    for note in notes {
                        try insert.bind(note.values)
                        while try insert.step() {}
                    }
                }
            } thenReading: {
                try connection.rows("SELECT * FROM note ORDER BY id").map { try Note($0) }
            }
        }
    }

    Benchmark.add("execute-cached") { benchmark in
        try Scratch.withConnection { connection in
            try benchmark.measure(expecting: notes) {
                try connection.transaction {
                    for note in notes {
                        try connection.execute(SQL(text: insertion, arguments: note.values))
                    }
                }
            } thenReading: {
                try connection.rows("SELECT * FROM note ORDER BY id").map { try Note($0) }
            }
        }
    }

    Benchmark.add("step-prepared") { benchmark in
        try Scratch.withConnection(notes: notes) { connection in
            let select = try connection.prepare("SELECT id FROM note ORDER BY id")
            try benchmark.measure(expecting: notes.map(\.id)) {
                try connection.transaction(.deferred) {
                    var ids: [Int64] = []
                    while try select.step() { ids.append(try select.value(at: 0, as: Int64.self)) }
                    return ids
                }
            }
        }
    }

    Benchmark.add("rows") { benchmark in
        try Scratch.withConnection(notes: notes) { connection in
            try benchmark.measure(expecting: notes.map(\.values)) {
                try connection.rows("SELECT * FROM note ORDER BY id").map(\.values)
            }
        }
    }

    // BEGIN, the probe, COMMIT: the price of knowing that a result is authentic.
    Benchmark.add("empty-transaction") { benchmark in
        try Scratch.withConnection(notes: notes) { connection in
            try benchmark.measure(expecting: notes.count) {
                for _ in benchmark.scaledIterations { try connection.transaction(.deferred) {} }
            } thenReading: {
                try connection.rows("SELECT id FROM note").count
            }
        }
    }
}
