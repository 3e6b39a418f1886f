import CWorkload
import Coffer
import Foundation
import Synchronization
import Workloads

/// What the store's queue adds: short reads, writes during a long read, observers, idle stores.
struct Queue {
    let run: Run

    init(_ run: Run) { self.run = run }

    /// A read for each lookup.
    func readOne() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        let store = try filled(Item.make(1...run.rows))
        try run.samples(written: Check(asked: keys, found: items)) {
            var items: [Item] = []
            items.reserveCapacity(run.rows)
            for index in 0..<run.rows {
                let key = Int64(run.shuffled(index) + 1)
                guard let item = try store.read({ tx in try tx.find(Item.self, key) }) else {
                    throw Missing()
                }
                items.append(item)
            }
            return items
        } check: {
            Check(asked: keys, found: $0)
        }
        try store.close()
    }

    /// Reads whose bodies ask for nothing.
    func readNothing() throws {
        let store = try filled(Item.make(1...1))
        try run.samples(written: Check(digest: UInt64(run.rows))) {
            var endedCount: UInt64 = 0
            for _ in 0..<run.rows { endedCount += try store.read { _ in 1 } }
            return endedCount
        } check: {
            Check(digest: $0)
        }
        try store.close()
    }

    /// Durable writes one after the other, and the same during one long read.
    ///
    /// - Parameter walByteCount: The bound of the WAL; `nil` for the default.
    func writeBesideRead(walByteCount: Int? = nil) throws {
        for _ in 0..<run.repeats {
            let items = Item.make(1...3 * run.rows)
            let store = try filled(Array(items.prefix(run.rows))) {
                if let walByteCount { $0.maximumWALByteCount = walByteCount }
            }
            let quiet = try write(items[run.rows..<2 * run.rows], to: store)
            let reading = LongRead()
            try reading.begin(on: store, rows: run.rows)
            let beside = try write(items[(2 * run.rows)...], to: store)
            try reading.end()
            let written = Check(items)
            let read = Check(try store.read { tx in try tx.fetch(Item.all) })
            if walByteCount == nil {
                run.latencies("W6-quiet", quiet, written: written, read: read)
            }
            run.latencies(run.workload, beside, written: written, read: read)
            try store.close()
        }
    }

    private func write(_ items: ArraySlice<Item>, to store: Store) throws -> [Double] {
        var latencies: [Double] = []
        latencies.reserveCapacity(items.count)
        for item in items {
            let start = bench_now()
            try store.write { tx in try tx.insert(item) }
            latencies.append(bench_now() - start)
        }
        return latencies
    }

    /// Transactions of some rows each, while nobody watches, or somebody does.
    func insertWatched(_ watch: Watch) async throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try await store.write { tx in
                try tx.create(Item.self)
                if watch == .log { try tx.keepHistory(of: Item.table) }
            }
            let watching = try await watch.begin(store)
            try insert(items, into: store)
            watching?.cancel()
            try? await watching?.value
            try await store.close()
        }
    }

    /// Synchronous, so that it writes on this thread, as C does.
    private func insert(_ items: [Item], into store: Store) throws {
        try run.sample(written: Check(items)) {
            for first in stride(from: 0, to: items.count, by: Int(bench_batch)) {
                let batch = items[first..<min(first + Int(bench_batch), items.count)]
                try store.write { tx in try tx.insert(batch) }
            }
        } check: {
            Check(try store.read { tx in try tx.fetch(Item.all) })
        }
    }

    /// Holds this many stores that have written and read once.
    func holdIdle() throws {
        let before = bench_resources_now()
        var stores: [Store] = []
        bench_start()
        for number in 0..<run.rows {
            let path = number == 0 ? run.path : "\(run.path)-\(number)"
            let store = try Store(
                path: path, key: .raw(Run.key), configuration: run.configuration(connections: 2))
            try store.write { tx in try tx.create(Item.self) }
            _ = try store.read { tx in try tx.count(Item.all) }
            stores.append(store)
        }
        bench_stop()
        if let store = stores.first { try run.describe(store) }
        bench_idle(Int64(run.rows), before)
        for store in stores { try store.close() }
    }

    private func filled(
        _ items: [Item], _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in try tx.insert(items) }
        try filling.close()
        return try run.openStore(change)
    }
}

/// The observers of the writes.
enum Watch {
    case nobody, value, changes, log

    /// Ready when the first value is there, or the first change can no longer be missed.
    func begin(_ store: Store) async throws -> Task<Void, any Error>? {
        let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
        let task: Task<Void, any Error>
        switch self {
        case .nobody, .log: return nil
        case .value:
            task = Task {
                for try await _ in store.observe({ tx in try tx.count(Item.all) }) { ready.yield() }
            }
        case .changes:
            task = Task {
                let changes = store.changes(in: Item.self).makeAsyncIterator()
                ready.yield()
                while try await changes.next() != nil {}
            }
        }
        for await _ in isReady { break }
        return task
    }
}

/// One read that lasts until it is asked to end.
final class LongRead: Sendable {
    private let isOver = Atomic(false)
    private let begun = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    func begin(on store: Store, rows: Int) throws {
        Thread.detachNewThread { [self] in
            try? store.read { tx in
                var index = 0
                while !isOver.load(ordering: .relaxed) {
                    let key = Int64(Run.shuffled(index, rows) + 1)
                    guard try tx.find(Item.self, key) != nil else { throw Missing() }
                    if index == 0 { begun.signal() }
                    index += 1
                    usleep(UInt32(bench_pause_us))
                }
            }
            ended.signal()
        }
        guard begun.wait(timeout: .now() + 10) == .success else { throw Missing() }
    }

    /// Fails if it has ended by itself.
    func end() throws {
        guard ended.wait(timeout: .now()) == .timedOut else { throw Missing() }
        isOver.store(true, ordering: .relaxed)
        ended.wait()
    }
}
