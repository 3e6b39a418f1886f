import Coffer

/// Finds a state of the file in the history of a replica, by the summaries of all records.
struct HistorySearch {
    let reader: LogReader
    /// The last record of the replica.
    let end: Slot
    /// Of the last snapshot; `nil` if there is none.
    let index: SnapshotIndex?

    /// The records after which the file had these pages: beginnings of terms first, then commits,
    /// each in their order.
    ///
    /// - Complexity: As `LogSummaries.readAll`.
    // With optimisation, Swift 6.3.1 makes code of it that crashes.
    @_optimize(none)
    func slots(of tags: PageTags) async throws -> [Slot] {
        var begins: [Slot] = []
        var commits: [Slot] = []
        try await LogSummaries(reader: reader, end: end).readAll(index) { slot, header, record in
            // A term that goes on begins with the file as it was.
            guard record.describes(tags) else { return }
            if header.kind == .begin { begins.append(slot) }
            if header.kind == .segment { commits.append(slot) }
        }
        return begins + commits
    }

    func position(at slot: Slot) async throws -> ReplicaPosition {
        ReplicaPosition(slot, try await reader.existing(slot).sealed.hash)
    }
}
