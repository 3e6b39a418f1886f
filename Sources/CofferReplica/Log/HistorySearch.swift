import Coffer

/// Finds a state of the file in the history of a replica, by the summaries of all records.
struct HistorySearch {
    let reader: LogReader
    /// The last record of the replica.
    let end: Slot
    /// Of the last snapshot; `nil` if there is none.
    let index: SnapshotIndex?

    /// The last position at which the file had these pages; `nil` if it never had.
    ///
    /// - Complexity: As `LogSummaries.readAll`.
    func position(of tags: PageTags) async throws -> ReplicaPosition? {
        var found: Slot?
        try await LogSummaries(reader: reader, end: end).readAll(index) { slot, header, record in
            if header.kind == .segment, record.describes(tags) { found = slot }
        }
        guard let found else { return nil }
        return ReplicaPosition(found, try await reader.existing(found).sealed.hash)
    }
}
