import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What is known about a replica.
///
/// ```swift
/// let status = await replica.status
/// if let failure = status.failure { logger.warning("no replica since \(failure.date)") }
/// ```
public struct ReplicaStatus: Sendable {
    /// The newest commit that the remote has acknowledged in this process; `nil` before the first.
    public let position: ReplicaPosition?
    /// When the remote last had everything that was committed, by this machine's clock; `nil` if it
    /// never had.
    public let sentDate: Date?
    /// The last failure since then; `nil` if there is none.
    public let failure: ReplicaFailure?
    /// When this process last made a snapshot, by this machine's clock; `nil` if it has made none.
    public let snapshotDate: Date?
    /// Why the last snapshot, or the deletion after it, failed, although commits are sent; `nil` if
    /// neither did. Restores take longer, and nothing is deleted, until one succeeds. Another try
    /// follows in an hour.
    public let snapshotFailure: ReplicaFailure?
    /// Why the replication has ended; `nil` while it goes on.
    public let end: StoreError?
}

/// How far a transfer is: what was committed since the last one, or all pages the first time.
public struct ReplicaProgress: Sendable {
    /// Bytes of pages that are in the remote.
    public let sentByteCount: Int
    /// Bytes of pages that it needs. Commits that follow meanwhile add to it.
    public let byteCountTotal: Int

    /// The most bytes of pages between two calls of `ReplicaOptions.progress`.
    package static let step = ReplicaRecord.maximumPageByteCount
}

/// A failure to send commits. Another try follows, unless the replication has ended.
public struct ReplicaFailure: Sendable {
    /// When it happened, by this machine's clock.
    public let date: Date
    /// What happened.
    public let error: any Error
}
