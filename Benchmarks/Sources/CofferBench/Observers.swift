import CWorkload
import Coffer
import Dispatch
import Workloads

/// Measures a commit while one observer reads the table that is written, and many others read other
/// tables.
struct Observers {
    /// The numbers of observers, each a figure of one run.
    static let counts = [0, 1, 10, 100, 1000]
    /// The tables that the observers read that no write concerns.
    private static let tables = 50

    let run: Run

    init(_ run: Run) { self.run = run }

    /// Commits of one record each. The clock stops when the write has returned; the next write
    /// begins when the observer concerned has its value.
    func write() async throws {
        for _ in 0..<run.repeats {
            for count in Self.counts {
                let items = Item.make(1...run.rows)
                let store = try await filled()
                let watching = Watching(store, count, tables: Self.tables)
                await watching.begin()
                let latencies = try write(items, to: store, watching)
                await watching.end()
                let read = Check(try await store.read { tx in try tx.fetch(Item.all) })
                run.latencies(
                    "observers-\(count)", latencies, written: Check(items), read: read)
                try await store.close()
            }
        }
    }

    private func filled() async throws -> Store {
        run.removeFile()
        let store = try run.openStore()
        try await store.write { tx in
            try tx.create(Item.self)
            for number in 0..<Self.tables {
                try tx.execute(SQL(text: "CREATE TABLE other\(number) (id INTEGER PRIMARY KEY)"))
            }
        }
        return store
    }

    /// Synchronous, so that one thread writes.
    private func write(
        _ items: [Item], to store: Store, _ watching: Watching
    ) throws -> [Double] {
        var latencies: [Double] = []
        latencies.reserveCapacity(items.count)
        for item in items {
            let start = bench_now()
            try store.write { tx in try tx.insert(item) }
            latencies.append(bench_now() - start)
            watching.waitForValue()
        }
        return latencies
    }
}

/// Observers, the first of which reads the newest record.
private final class Watching: Sendable {
    private let count: Int
    private let values = DispatchSemaphore(value: 0)
    private let tasks: [Task<Void, any Error>]
    private let isReady: AsyncStream<Void>
    /// Asks for a read by a task that does not observe, which is the twin of one observer.
    private let asks: AsyncStream<Void>.Continuation

    init(_ store: Store, _ count: Int, tables: Int) {
        self.count = count
        let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
        self.isReady = isReady
        let values = values
        let (asked, asks) = AsyncStream.makeStream(of: Void.self)
        self.asks = asks
        let twin = Task {
            for await _ in asked {
                _ = try await store.read { tx in
                    try tx.scalar("SELECT max(id) FROM item", as: Int64.self)
                }
                values.signal()
            }
        }
        tasks =
            [twin]
            + (0..<count).map { number in
                Task {
                    let observed = store.observe { tx in
                        number == 0
                            ? try tx.scalar("SELECT max(id) FROM item", as: Int64.self)
                            : try tx.scalar(
                                "SELECT max(id) FROM \(identifier: "other\(number % tables)")",
                                as: Int64.self)
                    }
                    for try await value in observed {
                        if number == 0, value != nil { values.signal() } else { ready.yield() }
                    }
                }
            }
    }

    /// Returns when each observer has its first value.
    func begin() async {
        var missing = count
        if missing == 0 { return }
        for await _ in isReady {
            missing -= 1
            if missing == 0 { return }
        }
    }

    /// Waits until the observer has got the value of the commit just made. Without observers a
    /// task reads it.
    func waitForValue() {
        if count == 0 { asks.yield() }
        values.wait()
    }

    func end() async {
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
    }
}
