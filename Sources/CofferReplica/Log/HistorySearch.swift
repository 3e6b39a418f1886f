import Coffer

/// Finds a state of the file in the history of a replica, by the summaries of all records.
struct HistorySearch {
    let reader: LogReader
    /// The last record of the replica.
    let end: Slot

    /// How many summaries are read at the same time.
    private static let batchCount: UInt64 = 32

    /// The last position at which the file had these pages; `nil` if it never had.
    ///
    /// - Complexity: O(*records*): some hundred bytes of each are read.
    func position(of tags: PageTags) async throws -> ReplicaPosition? {
        var found: Slot?
        for term in stride(from: 1, through: end.term, by: 1) {
            var first: UInt64 = 0
            while let batch = try await summaries(of: term, from: first) {
                for (slot, kind, record) in batch
                where kind == .segment && record.endsCommit && record.digest == tags.digest
                    && Int(record.pageCount) == tags.count
                {
                    found = slot
                }
                guard batch.count == Self.batchCount else { break }
                first += Self.batchCount
            }
        }
        guard let found else { return nil }
        let record = try await reader.existing(found).sealed
        return ReplicaPosition(found, record.hash)
    }

    /// Some summaries of a term, up to the first slot that is free; `nil` if there is none.
    private func summaries(
        of term: UInt64, from first: UInt64
    ) async throws -> [(Slot, RecordKind, ReplicaRecord)]? {
        let found = try await withThrowingTaskGroup(
            of: (UInt64, (RecordHeader, ReplicaRecord)?).self
        ) { group in
            for number in first..<first + Self.batchCount {
                group.addTask {
                    (number, try await reader.summary(at: Slot(term: term, number: number)))
                }
            }
            return try await group.reduce(into: [:]) { all, one in all[one.0] = one.1 }
        }
        var batch: [(Slot, RecordKind, ReplicaRecord)] = []
        for number in first..<first + Self.batchCount {
            guard let (header, record) = found[number] else { break }
            batch.append((Slot(term: term, number: number), header.kind, record))
        }
        return batch.isEmpty ? nil : batch
    }
}
