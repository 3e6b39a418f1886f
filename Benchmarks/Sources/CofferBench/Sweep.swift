import CWorkload
import Coffer
import Foundation
import Workloads

/// A writer that sets an entry a thousand times a second, alone and beside the sweep of many
/// entries that have expired.
struct Sweep {
    let run: Run
    private let bucket = Bucket<Data, Data>("entry")
    private let sessions = Bucket<Data, Data>("session")

    private let interval = Duration.seconds(3)

    init(_ run: Run) { self.run = run }

    func measure() throws {
        let entries = Entry.make(Int(bench_paced_keys))
        for _ in 0..<run.repeats {
            // The quiet store holds as many entries, and none of them expires meanwhile.
            try measure("sweep-quiet", entries, lifetime: .seconds(3600), swept: 0...0)
            try measure("sweep-beside", entries, lifetime: interval, swept: 1...run.rows)
        }
    }

    private func measure(
        _ workload: String, _ entries: [Entry], lifetime: Duration, swept: ClosedRange<Int>
    ) throws {
        run.removeFile()
        var configuration = run.configuration(connections: 2)
        configuration.expirySweepInterval = interval
        let store = try Store(
            path: run.path, key: .raw(Run.key), configuration: configuration)
        try run.describe(store)
        let expiring = Entry.make(run.rows)
        // The sweep begins an interval after the first entry was set, and the writer shortly
        // before it.
        let start = bench_now() + Double(interval.components.seconds) * 1e6 - 1e5
        try store.write { tx in
            for entry in expiring {
                try tx.set(
                    entry.value, for: entry.key, in: sessions, expiring: .after(lifetime))
            }
        }
        bench_wait_until(start)
        let latencies = try write(entries, to: store)
        let left = try store.read { tx in
            try tx.requireScalar("SELECT count(*) FROM \"bucket:session\"", as: Int.self)
        }
        guard swept.contains(run.rows - left) else {
            bench_fail("sweep", "\(run.rows - left) entries were swept")
        }
        let read = try store.read { tx in
            try entries.map { entry in
                guard let value = try tx.get(entry.key, in: bucket) else { throw Missing() }
                return Entry(key: entry.key, value: value)
            }
        }
        run.latencies(workload, latencies, written: Check(entries), read: Check(read))
        run.describe("swept_\(workload)", "\(run.rows - left)")
        try store.close()
    }

    private func write(_ entries: [Entry], to store: Store) throws -> [Double] {
        var latencies: [Double] = []
        latencies.reserveCapacity(Int(bench_paced_writes))
        let start = bench_now()
        for index in 0..<Int(bench_paced_writes) {
            let entry = entries[index % entries.count]
            bench_wait_until(start + Double(index * Int(bench_pace_us)))
            let begun = bench_now()
            try store.set(entry.value, for: entry.key, in: bucket)
            latencies.append(bench_now() - begun)
        }
        return latencies
    }
}
