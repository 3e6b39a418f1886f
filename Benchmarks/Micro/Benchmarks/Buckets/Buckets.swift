import Benchmark
import Coffer
import Fixture
import Foundation

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room(per: .kilo)
    let bucket = Bucket<String, Data>("bodies")
    let keys = Note.thousand.map { String(format: "note/%04d", $0.id) }
    let values = Note.thousand.map(\.body)
    let pairs = Dictionary(uniqueKeysWithValues: zip(keys, values))

    Benchmark.add("set-new") { benchmark in
        try measureSetting(benchmark) { _ in }
    }

    Benchmark.add("set-again") { benchmark in
        try measureSetting(benchmark) { tx in
            for key in keys { try tx.set(Data(), for: key, in: bucket) }
        }
    }

    Benchmark.add("get") { benchmark in
        try Scratch.withStore(fill: setAll) { store in
            try benchmark.measure(expecting: values) {
                try store.read { tx in try keys.map { try tx.get($0, in: bucket) } }
            }
        }
    }

    Benchmark.add("scan-prefix") { benchmark in
        try Scratch.withStore(fill: setAll) { store in
            _ = try store.read { tx in try tx.count(in: bucket) }  // as `get`: nothing to decrypt
            try benchmark.measure(expecting: pairs) {
                try store.read { tx in try tx.entries(in: bucket, .prefix("note/")) }
            } thenReading: {
                Dictionary(uniqueKeysWithValues: $0.map { ($0.key, $0.value) })
            }
        }
    }

    func setAll(_ tx: inout WriteTransaction) throws {
        for (key, value) in zip(keys, values) { try tx.set(value, for: key, in: bucket) }
    }

    func measureSetting(
        _ benchmark: Benchmark, after fill: (inout WriteTransaction) throws -> Void
    ) throws {
        try Scratch.withStore(fill: fill) { store in
            try benchmark.measure(expecting: pairs) {
                try store.write(setAll)
            } thenReading: {
                let entries = try store.read { tx in try tx.entries(in: bucket) }
                return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
            }
        }
    }
}
