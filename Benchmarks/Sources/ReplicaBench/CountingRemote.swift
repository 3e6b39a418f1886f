import CofferReplica
import Synchronization

/// A remote that counts what another one gets.
final class CountingRemote: Remote {
    private let remote: FolderRemote
    private let counts = Mutex(Counts())

    struct Counts {
        var putCount = 0
        var putByteCount = 0
        var requestCount = 0

        static func - (now: Counts, before: Counts) -> Counts {
            Counts(
                putCount: now.putCount - before.putCount,
                putByteCount: now.putByteCount - before.putByteCount,
                requestCount: now.requestCount - before.requestCount)
        }
    }

    init(_ remote: FolderRemote) {
        self.remote = remote
    }

    /// Since the process began.
    var now: Counts { counts.withLock { $0 } }

    var place: String { remote.place }

    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation> {
        counts.withLock {
            $0.putCount += 1
            $0.putByteCount += bytes.count
            $0.requestCount += 1
        }
        return try await remote.create(name, bytes)
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        counts.withLock { $0.requestCount += 1 }
        return try await remote.read(name, range)
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        counts.withLock { $0.requestCount += 1 }
        return try await remote.names(withPrefix: prefix, after: name)
    }

    func delete(_ name: String) async throws {
        counts.withLock { $0.requestCount += 1 }
        try await remote.delete(name)
    }
}
