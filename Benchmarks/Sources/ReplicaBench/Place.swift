import Coffer
import CofferReplica
import Foundation
import Workloads

/// A store, and the folder that it is replicated to.
struct Place: Sendable {
    let path: String
    let remote: CountingRemote

    init(path: String, folder: String) throws {
        self.path = path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        remote = CountingRemote(try FolderRemote(folder))
    }

    static var key: StoreKey { .raw(Run.key) }

    /// Every returned commit survives a loss of power. The page cache is that of the twin.
    static var configuration: Configuration {
        var configuration = Configuration()
        configuration.maximumReaderCount = 1
        configuration.maximumCacheByteCount = 128 << 20
        return configuration
    }

    func open() async throws -> Store {
        try await Store(path: path, key: Self.key, configuration: Self.configuration)
    }

    /// Replicates, so that every commit until now is in the remote.
    ///
    /// - Parameters:
    ///   - interval: An hour means that nothing is sent unasked.
    ///   - snapshotInterval: A day means that no snapshot is made.
    func replicate(
        _ store: Store, every interval: Duration, snapshots snapshotInterval: Duration = .day
    ) async throws -> Replica {
        var options = ReplicaOptions()
        (options.interval, options.snapshotInterval) = (interval, snapshotInterval)
        return try await store.replicate(to: remote, options)
    }

    /// Prints the figures of a measurement.
    static func say(_ figures: [String: Any]) throws {
        let data = try JSONSerialization.data(withJSONObject: figures, options: .sortedKeys)
        print(String(decoding: data, as: UTF8.self))
        fflush(nil)
    }
}

extension Duration {
    static let day = Duration.seconds(86_400)
}
