import Coffer
import Synchronization

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
    /// Why the replication has ended; `nil` while it goes on.
    public let end: StoreError?
}

/// A failure to send commits. Another try follows, unless the replication has ended.
public struct ReplicaFailure: Sendable {
    /// When it happened, by this machine's clock.
    public let date: Date
    /// What happened.
    public let error: any Error
}

/// Keeps the last failure, and tells each to the program.
final class ReplicaFailures: Sendable {
    private let failure = Mutex<ReplicaFailure?>(nil)
    private let options: ReplicaOptions

    init(_ options: ReplicaOptions) {
        self.options = options
    }

    var last: ReplicaFailure? { failure.withLock(\.self) }

    func note(_ error: any Error) {
        let new = ReplicaFailure(date: options.currentDate(), error: error)
        failure.withLock { $0 = new }
        options.failed(error)
    }

    func clear() { failure.withLock { $0 = nil } }
}
