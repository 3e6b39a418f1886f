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
    /// After a commit, 16 bytes of each page are read: 4 MB for a store of a gigabyte.
    public var interval = Duration.seconds(60)

    /// The name of the owner: by default that of the machine and the path of the file.
    ///
    /// An owner of the same name takes over unasked from one that is silent: after a crash this
    /// takes up to three intervals and ten seconds. An owner of another name is refused, so that a
    /// copy of the file on another machine does not stop the replica of the first. A clone of a
    /// machine that keeps its host name needs another name here.
    public var owner: String?

    /// The owner to take over from, although it has another name or still writes: its name, as the
    /// error `.ownedElsewhere` has it. That owner can replicate no longer; its store goes on.
    ///
    /// The name makes the option harmless where it is left behind: it says nothing about a later
    /// owner.
    public var takesOverFrom: String?

    /// The position at which to go on from the file although the replica has later commits: the one
    /// that the error `.remoteAhead` has, as after an old copy of the file was put back. The later
    /// commits can still be restored by their position.
    public var keepsFileAt: ReplicaPosition?

    /// How often a snapshot is made, if something was committed since the last one: once a day
    /// without this option. A restore begins at the snapshot before its moment.
    ///
    /// A snapshot has the pages in parts of 8 MiB. A part that has not changed since the last
    /// snapshot is not sent again.
    public var snapshotInterval = Duration.seconds(86_400)

    /// How many snapshots are kept: 30 without this option. At least two.
    ///
    /// Snapshots are counted and not dated, so that a clock that is wrong deletes nothing.
    public var keptSnapshotCount = 30

    /// From which snapshot on each commit is kept: the seventh newest without this option. At least
    /// the second newest. Of the time before, only the snapshots are kept.
    public var keptHistorySnapshotCount = 7

    /// Whether this owner deletes what is not kept. It does so after each snapshot, with what an
    /// earlier one has left out a day ago or more, by the remote's clock. Otherwise somebody who
    /// may delete calls `purge(key:)`.
    public var deletes = true

    /// Called when the replication waits until a former owner of the same name is surely gone, with
    /// the longest time that it takes: three of that owner's intervals and ten seconds.
    public var waiting: @Sendable (Duration) -> Void = { _ in }

    /// Called with each failure to read the store, to reach the remote or to make a snapshot, and
    /// with the one that ends the replication. `Replica.status` has the last one.
    public var failed: @Sendable (any Error) -> Void = { _ in }

    /// Called while pages are sent: after each 8 MiB, and at the end of a transfer.
    public var progress: @Sendable (ReplicaProgress) -> Void = { _ in }

    /// Makes the default options.
    public init() {}

    /// For tests: the pauses between two tries.
    var patience = RemoteAccess.Patience()
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    var currentDate: @Sendable () -> Date = { Date.now }
    var currentInstant: @Sendable () -> ContinuousClock.Instant = { .now }

    func ownerName(of path: String) -> String {
        owner ?? "\(ProcessInfo.processInfo.hostName):\(path)"
    }
}
