import Benchmark
import Coffer
import Fixture

/// From a key to the first row read: the cost of a connection, with and without a derivation.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room()

    Benchmark.add("open-raw") { benchmark in
        try measureOpening(benchmark) { .raw(Scratch.rawKey) }
    }

    // 256 000 rounds, so that a second holds only a few of them.
    Benchmark.add("open-passphrase", configuration: .room(maxDuration: .seconds(4))) { benchmark in
        try measureOpening(benchmark) { .passphrase("correct horse battery staple") }
    }
}

private func measureOpening(_ benchmark: Benchmark, key: () -> StoreKey) throws {
    try Scratch.withPath { path in
        try Scratch.fill(path, key: key()) { tx in try tx.insert(Note.thousand) }
        try benchmark.measure(expecting: Note.thousand.first) {
            let connection = try Scratch.openConnection(path, key: key())
            defer { connection.close() }
            return try connection.firstRow("SELECT * FROM note WHERE id = 0").map { try Note($0) }
        }
    }
}
