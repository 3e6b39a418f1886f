import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a store is replicated.
///
/// ```swift
/// var options = ReplicaOptions()
/// options.interval = .seconds(300)
/// let replica = try await store.replicate(to: remote, options)
/// ```
public struct ReplicaOptions: Sendable {
    /// How long commits wait until they are sent, at most: a minute without this option. At least a
    /// second.
    ///
    /// Each time, 16 bytes of each page are read: 4 MB for a store of a gigabyte.
    public var interval = Duration.seconds(60)

    /// The name of the owner: by default that of the machine and the path of the file.
    ///
    /// An owner of the same name takes over unasked from one that is silent: after a crash this
    /// takes up to three intervals and ten seconds. An owner of another name is refused, so that a
    /// copy of the file on another machine does not stop the replica of the first. A clone of a
    /// machine that keeps its host name needs another name here.
    public var owner: String?

    /// Whether to take over from an owner of another name, or one that still writes. That owner can
    /// replicate no longer; its store goes on.
    public var takesOver = false

    /// Whether to go on from the file although the replica has later commits, as after an old copy
    /// of the file was put back. The later ones can still be restored by their position.
    public var keepsFile = false

    /// Called with each failure to read the store or to reach the remote, and with the one that
    /// ends the replication. `Replica.status` has the last one.
    public var failed: @Sendable (any Error) -> Void = { _ in }

    /// Makes the options of a store that nobody else replicates.
    public init() {}

    /// For tests: the pauses between two tries.
    var patience = RemoteAccess.Patience()
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    var currentDate: @Sendable () -> Date = { Date.now }

    func ownerName(of path: String) -> String {
        owner ?? "\(ProcessInfo.processInfo.hostName):\(path)"
    }
}
