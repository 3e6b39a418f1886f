import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides whether a replica may be taken over unasked.
///
/// A copy of a machine, with the configuration of production, must not fence production. So only an
/// owner of the same name takes over by itself, and only from one that has stopped or is silent.
struct OwnershipRule {
    let access: RemoteAccess
    let owner: LogWriter.Owner
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// Called before a wait, with the longest time that it takes.
    var waiting: @Sendable (Duration) -> Void = { _ in }

    private static let pollInterval = Duration.seconds(1)

    /// Waits until the last owner has stopped, or has been silent for long enough, if it has the
    /// same name.
    ///
    /// - Throws: `.ownedElsewhere` if it has another name, or still writes; `CancellationError`.
    func requireFree(_ end: LogReader.End) async throws {
        let hasStopped = end.last.header.kind == .closed
        guard end.owner == owner.name else {
            throw elsewhere(end, "\(end.owner) \(hasStopped ? "replicated" : "replicates") to it")
        }
        if hasStopped { return }
        let silence = end.interval * 3 + .seconds(10)
        if let now = access.time, let then = end.last.record.remoteTime,
            now.timeIntervalSince(then) > silence / .seconds(1)
        {
            return
        }
        waiting(silence)
        // The remote's time is not known for each answer, and ours may be wrong.
        var waited = Duration.zero
        while waited < silence {
            try await sleep(Self.pollInterval)
            waited += Self.pollInterval
            guard try await !access.exists(end.last.slot.next.name),
                try await !access.exists(end.last.slot.beginningOfNextTerm.name)
            else {
                throw elsewhere(end, "a process of the same name is writing to it")
            }
        }
    }

    private func elsewhere(_ end: LogReader.End, _ reason: String) -> StoreError {
        StoreError(
            .ownedElsewhere,
            "the replica at \(access.remote.place) is not this process's: \(reason), last at "
                + end.last.record.time.formatted(.iso8601),
            hint: "Give the file another remote. Or take over from \(end.owner), by this name, if "
                + "that process does not run any more and this file has what you need: it becomes "
                + "the newest commit. If the machine has only got a new name, set the owner's name."
        )
    }
}
