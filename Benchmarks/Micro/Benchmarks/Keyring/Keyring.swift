import Benchmark
import Coffer
import Fixture

/// From a credential to the first row read, a change of a slot, and a look without a secret.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room()

    // Compare it with open-raw of the room Keys.
    Benchmark.add("open-key-file") { benchmark in
        try Scratch.withPath { path in
            try Scratch.fill(path, key: keyFile()) { tx in try tx.insert(Note.thousand) }
            try benchmark.measure(expecting: Note.thousand.first) {
                let connection = try Scratch.openConnection(path, key: keyFile())
                defer { connection.close() }
                return try connection.firstRow("SELECT * FROM note WHERE id = 0").map {
                    try Note($0)
                }
            }
        }
    }

    // Two areas of 16 KiB are written and synced.
    Benchmark.add("rename-slot") { benchmark in
        try withKeyedStore { store, path in
            var isOdd = false
            try benchmark.measure(expecting: true) {
                isOdd.toggle()
                return try store.keys.rename(1, to: isOdd ? "odd" : "even")
            } thenReading: { slot in
                try store.keys.slots == [slot]
            }
        }
    }

    Benchmark.add("read-public") { benchmark in
        try withKeyedStore { store, path in
            let slots = try store.keys.slots
            try benchmark.measure(expecting: slots) { try Coffer.Keyring(of: path).slots }
        }
    }
}

private func keyFile() -> StoreKey {
    .keyring(.keyFile([UInt8](repeating: 7, count: 32)))
}

private func withKeyedStore(_ body: (Store, _ path: String) throws -> Void) throws {
    try Scratch.withPath { path in
        let store = try Scratch.openStore(path, key: keyFile())
        try body(store, path)
        try store.close()
    }
}
