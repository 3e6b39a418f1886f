import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Which state of a store a restore makes.
///
/// ```swift
/// try await Store.restore(from: remote, to: "notes.db", key: key, at: .time(noon))
/// ```
public struct ReplicaMoment: Sendable {
    enum Kind {
        case newest
        case position(ReplicaPosition)
        case time(Date)
    }

    let kind: Kind

    /// The newest commit that the remote has.
    public static let newest = ReplicaMoment(kind: .newest)

    /// The commit at a position.
    public static func position(_ position: ReplicaPosition) -> ReplicaMoment {
        ReplicaMoment(kind: .position(position))
    }

    /// The last commit before the first one that is later than a time, by the clock of the machine
    /// that sent it, or by the remote's clock if they differed by more than a minute.
    public static func time(_ time: Date) -> ReplicaMoment { ReplicaMoment(kind: .time(time)) }
}

/// The result of `Store.restore` from a remote.
public struct ReplicaRestoreReport: Sendable {
    /// The path of the restored store.
    public let path: String
    /// The position that was restored.
    public let position: ReplicaPosition
    /// When its commit was sent, by the clock of the machine that sent it.
    public let time: Date
    /// Whether the key was rotated after that commit. The restored store has the earlier key again:
    /// call `Store.rotate` if that key was thrown away.
    public let isFromBeforeRotation: Bool
    /// The damage of a snapshot or a record that the restore did without; `nil` if none was
    /// noticed. The store is whole, but the replica is not: make a new one soon.
    public let damage: StoreError?
    /// The content of the restored store, which was checked.
    public let copy: CopyReport
}

extension Store {
    /// Makes a store from a replica.
    ///
    /// ```swift
    /// let report = try await Store.restore(from: remote, to: "notes.db", key: key)
    /// print(report.position, report.copy.rowCount)
    /// ```
    ///
    /// Nothing is believed: each record must follow the one before, all pages together must have
    /// the digest that the owner has sealed, each page its MAC, and SQLite checks the structure.
    /// Only then the file gets its name. After a failure there is no file.
    ///
    /// - Parameters:
    ///   - remote: Where a store was replicated to. It is only read.
    ///   - path: Of the new store. Nothing may be there.
    ///   - key: Of the store that was replicated; a credential (`.keyring`) for one with a keyring,
    ///     which the new store gets too. An identity does not prove who made the replica, because
    ///     everybody can seal a keyring to its public key: pass a position with it.
    ///   - moment: Which of its states.
    ///   - position: One that `Replica.caughtUp()` has returned. A remote that does not have it, or
    ///     has another record there, is refused: it hides the newest records, or is an old one.
    ///   - configuration: How to open the new store for its check.
    ///   - progress: Called for pages that were read from the remote, and then for those that were
    ///     authenticated. A page that several records have counts for each.
    /// - Throws: `StoreError` `.notFound` if there is no replica, or none of that moment;
    ///   `.wrongKey`, also for a credential that was removed, and for a key of its own if the store
    ///   has a keyring; `.keyringMissing` for a credential if it has none; `.tooCostly`;
    ///   `.needsNewerProgram`; `.remoteDamaged` if records are missing or changed; `.damaged` if
    ///   the pages or the structure are not sound; `.alreadyExists`; `.needsNewerEngine`; `.full`,
    ///   `.io`; `.remoteDenied`; `.remoteUnavailable` if the remote cannot be reached for a minute;
    ///   `CancellationError`.
    /// - Complexity: O(*records* and *pages*): every record since the last transfer of all pages is
    ///   read.
    @discardableResult
    public static func restore(
        from remote: any Remote, to path: String, key: consuming StoreKey,
        at moment: ReplicaMoment = .newest, atLeast position: ReplicaPosition? = nil,
        configuration: Configuration = .init(),
        progress: (@Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> ReplicaRestoreReport {
        try await restore(
            from: remote, to: path, key: key, at: moment, atLeast: position,
            configuration: configuration, looksAtAll: false, progress: progress)
    }

    /// Restores a store, as `restore(from:to:key:at:atLeast:configuration:progress:)`.
    ///
    /// - Parameter looksAtAll: Whether to look for all records that are kept, also those that the
    ///   moment does not need: one that is missing is the `damage` of the report.
    package static func restore(
        from remote: any Remote, to path: String, key: consuming StoreKey, at moment: ReplicaMoment,
        atLeast position: ReplicaPosition?, configuration: Configuration, looksAtAll: Bool,
        progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> ReplicaRestoreReport {
        let patience = RemoteAccess.Patience(limit: RemoteAccess.beginningLimit)
        return try await ReplicaRestoration(
            access: RemoteAccess(remote, patience: patience), path: path, moment: moment,
            atLeast: position, configuration: configuration, looksAtAll: looksAtAll,
            progress: progress
        ).run(key: key)
    }
}
