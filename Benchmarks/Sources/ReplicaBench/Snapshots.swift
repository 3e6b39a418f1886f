import CWorkload
import CofferReplica
import Workloads

/// A snapshot of a store whose first transfer began a minute ago, or earlier.
struct Snapshots {
    private let place: Place

    init(_ place: Place) { self.place = place }

    func run() async throws {
        let store = try await place.open()
        let replica = try await place.replicate(
            store, every: .seconds(3600), snapshots: .seconds(60))
        // It is due only if something was committed since.
        try await RowWriter(store: store, rowCount: 1).write(0..<1)
        try await replica.caughtUp()
        let rest = ProcessUse.residentByteCount
        try ProcessUse.resetPeak()
        let (before, written) = (place.remote.now, ProcessUse.writtenByteCount)
        let (start, cpu) = (bench_now(), ProcessUse.cpu)
        guard try await replica.maintain() else { throw Missing() }
        let sent = place.remote.now - before
        try Place.say([
            "seconds": (bench_now() - start) / 1e6, "cpu": ProcessUse.cpu - cpu,
            "bytes": sent.putByteCount, "peak": ProcessUse.peakByteCount, "rest": rest,
            // Writes that were not to the remote, which is a folder.
            "staged": ProcessUse.writtenByteCount - written - sent.putByteCount,
        ])
        try await replica.close()
        try await store.close()
    }
}
