import CWorkload
import Coffer
import CofferReplica
import Foundation
import Workloads

/// A restore, and the download of the same bytes: what a restore without any check would take.
struct Restores {
    private let place: Place
    /// As many as a restore reads at once.
    private static let readAheadCount = 4

    init(_ place: Place) { self.place = place }

    /// Makes the store at a path where nothing is.
    func restore() async throws {
        let (start, cpu) = (bench_now(), ProcessUse.cpu)
        let report = try await Store.restore(
            from: place.remote, to: place.path, key: Place.key,
            configuration: Place.configuration)
        try Place.say([
            "seconds": (bench_now() - start) / 1e6, "cpu": ProcessUse.cpu - cpu,
            "rows": report.copy.rowCount, "peak": ProcessUse.peakByteCount,
        ])
    }

    /// Writes all objects into one file, which survives a loss of power afterwards.
    func download() async throws {
        let start = bench_now()
        let names = try await allNames()
        guard let file = fopen(place.path, "w") else { throw Missing() }
        for first in stride(from: 0, to: names.count, by: Self.readAheadCount) {
            let some = names[first..<min(first + Self.readAheadCount, names.count)]
            for bytes in try await objects(some) {
                guard fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw Missing() }
            }
        }
        guard fflush(file) == 0, fsync(fileno(file)) == 0, fclose(file) == 0 else {
            throw Missing()
        }
        try Place.say(["seconds": (bench_now() - start) / 1e6, "objects": names.count])
    }

    private func allNames() async throws -> [String] {
        var names: [String] = []
        while case let some = try await place.remote.names(
            withPrefix: "", after: names.last ?? ""), !some.isEmpty
        {
            names += some
        }
        return names
    }

    private func objects(_ names: ArraySlice<String>) async throws -> [[UInt8]] {
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for name in names {
                group.addTask { try await place.remote.read(name).value ?? [] }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}
