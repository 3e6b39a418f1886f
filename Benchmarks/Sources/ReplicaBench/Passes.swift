import CWorkload
import Coffer
import CofferReplica
import Workloads

/// Sends pages: all of them, those of some commits, and none.
struct Passes {
    private let place: Place

    init(_ place: Place) { self.place = place }

    /// The first transfer.
    func copy() async throws {
        let store = try await place.open()
        let (start, cpu) = (bench_now(), ProcessUse.cpu)
        try await store.replicateOnce(to: place.remote)
        try Place.say([
            "seconds": (bench_now() - start) / 1e6, "cpu": ProcessUse.cpu - cpu,
            "bytes": place.remote.now.putByteCount, "peak": ProcessUse.peakByteCount,
        ])
        try await store.close()
    }

    /// Counts the bytes and pages that one pass sends after some commits of one row.
    func ship(_ count: Int, of rowCount: Int) async throws {
        try await withReplica(every: .seconds(3600)) { store, replica in
            try await RowWriter(store: store, rowCount: rowCount).write(0..<count)
            let before = place.remote.now
            try await replica.caughtUp()
            let sent = place.remote.now - before
            try Place.say(["puts": sent.putCount, "bytes": sent.putByteCount])
        }
    }

    /// Measures passes that send one page each.
    func pass(_ count: Int, of rowCount: Int) async throws {
        try await withReplica(every: .seconds(3600)) { store, replica in
            let writer = RowWriter(store: store, rowCount: rowCount)
            for index in 0..<count {
                try await writer.write(index..<index + 1)
                let (start, cpu) = (bench_now(), ProcessUse.cpu)
                try await replica.caughtUp()
                try Place.say([
                    "seconds": (bench_now() - start) / 1e6, "cpu": ProcessUse.cpu - cpu,
                    "peak": ProcessUse.peakByteCount,
                ])
            }
        }
    }

    /// Counts the objects that are put while nothing is committed.
    func idle(seconds: Int) async throws {
        try await withReplica(every: .seconds(1)) { _, _ in
            // The first pass by itself is over.
            try await Task.sleep(for: .seconds(2))
            let (before, cpu) = (place.remote.now, ProcessUse.cpu)
            try await Task.sleep(for: .seconds(seconds))
            let sent = place.remote.now - before
            try Place.say([
                "puts": sent.putCount, "requests": sent.requestCount, "cpu": ProcessUse.cpu - cpu,
            ])
        }
    }

    private func withReplica(
        every interval: Duration, _ body: (Store, Replica) async throws -> Void
    ) async throws {
        let store = try await place.open()
        let replica = try await place.replicate(store, every: interval)
        try await body(store, replica)
        try await replica.close()
        try await store.close()
    }
}
