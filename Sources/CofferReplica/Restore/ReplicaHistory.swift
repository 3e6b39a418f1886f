import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Lists the commits of a store that can be restored from a remote, and names the owner.
///
/// ```swift
/// let history = try await ReplicaHistory(of: remote, key: key)
/// for commit in history.commits { print(commit.position, commit.date, commit.byteCount) }
/// ```
public struct ReplicaHistory: Sendable {
    /// A commit that can be restored: what was committed up to one pass, or what a later run of the
    /// owner found unchanged at its beginning.
    public struct Commit: Sendable, Hashable {
        /// Names the commit for `Store.restore`, with `.position(_:)`.
        public let position: ReplicaPosition
        /// When it was sent: by the owner's clock, or by the remote's if they differed by more than
        /// a minute.
        public let date: Date
        /// Bytes of the store then.
        public let byteCount: Int
        /// Whether a snapshot has the store of this commit: a restore of it reads nothing that was
        /// sent before the snapshot began.
        public let hasSnapshot: Bool
    }

    /// The commits, the oldest first.
    public let commits: [Commit]
    /// The loss of a record, or its damage; `nil` if none was noticed. Otherwise `commits` are
    /// those before it. A restore of the newest commit may succeed, from a snapshot that was made
    /// later.
    public let damage: StoreError?
    /// The name of the last owner.
    public let owner: String
    /// Whether the last owner has said that it stopped.
    public let isClosed: Bool
    /// When the last owner wrote its last record. It writes when something was committed, so an
    /// idle store has an old date too.
    public let lastWriteDate: Date

    /// Reads the history, without the pages.
    ///
    /// Records without their pages prove less than a restore: whether all pages are there, only
    /// `Store.restore` tells.
    ///
    /// - Parameters:
    ///   - remote: Where a store was replicated to. It is only read.
    ///   - key: Of the store that was replicated.
    /// - Throws: `StoreError` `.notFound` if the remote has no replica, `.wrongKey` if the key is
    ///   not that of the replica, `.remoteDamaged` if the last record was changed, or its keyring
    ///   is lost, `.needsNewerEngine` for a file that only SQLCipher 4 opens, `.remoteDenied` if
    ///   the remote refuses the access, `.remoteUnavailable` if it cannot be reached for a minute;
    ///   `CancellationError`.
    /// - Complexity: O(*records*): some hundred bytes of each are read.
    public init(of remote: any Remote, key: borrowing StoreKey) async throws {
        let access = RemoteAccess(
            remote, patience: RemoteAccess.Patience(limit: RemoteAccess.beginningLimit))
        let replica = try await OpenReplica.at(access, "", key.copy())
        let (reader, end, description) = (replica.reader, replica.end, replica.description)
        var damage = end.damage
        (owner, isClosed) = (end.owner, end.last.header.kind == .closed)
        lastWriteDate = end.last.record.moment
        var commits: [Commit] = []
        // The hash of a record is in the one after it.
        var last: (slot: Slot, record: ReplicaRecord)?
        let snapshot = try await reader.lastSnapshot(upTo: end.last)
        let index = snapshot.found?.index
        damage = damage ?? snapshot.damage
        let snapshots = Set((index?.kept.map(\.end) ?? []) + (index.map { [$0.end] } ?? []))
        func add(_ slot: Slot, _ record: ReplicaRecord, _ hash: [UInt8]) {
            guard index?.restores(slot) ?? true else { return }
            commits.append(
                Commit(
                    position: ReplicaPosition(slot, hash), date: record.moment,
                    byteCount: Int(record.pageCount) * description.pageByteCount,
                    hasSnapshot: snapshots.contains(slot)))
        }
        let summaries = LogSummaries(reader: reader, end: end.last.slot)
        do {
            try await summaries.readAll(index) { slot, header, record in
                if let last { add(last.slot, last.record, header.previous) }
                last = LogSummaries.endsCommit(header, record) ? (slot, record) : nil
            }
            if let last { add(last.slot, last.record, end.last.sealed.hash) }
        } catch let error as StoreError where error.code == .remoteDamaged {
            damage = damage ?? error
            // The record that would have its hash is lost.
            if let last, let found = try await reader.whole(at: last.slot) {
                add(last.slot, last.record, found.sealed.hash)
            }
        }
        self.damage = damage
        self.commits = commits
    }

    /// Whether an object of this name is of a replica.
    package static func isObject(_ name: String) -> Bool {
        name == ReplicaDescription.name || Slot(name: name) != nil
            || SnapshotPartName(name: name) != nil || KeyringName(name: name) != nil
    }
}
