import CWorkload
import CofferReplica
import Workloads

/// Commits of one row, in turns without a replica and with one that sends each second.
struct Commits {
    private let place: Place
    private let rowCount: Int

    init(_ place: Place, rowCount: Int) { (self.place, self.rowCount) = (place, rowCount) }

    func run(seconds: Int, rounds: Int) async throws {
        let store = try await place.open()
        let writer = RowWriter(store: store, rowCount: rowCount)
        var index = 0
        for _ in 0..<rounds {
            for isReplicated in [false, true] {
                let replica =
                    isReplicated ? try await place.replicate(store, every: .seconds(1)) : nil
                let end = bench_now() + Double(seconds) * 1e6
                let latencies = try await writer.write(from: index, until: end)
                index += latencies.count
                try Place.say(["replicated": isReplicated, "latencies_us": latencies])
                try await replica?.close()
            }
        }
        try await store.close()
    }
}
