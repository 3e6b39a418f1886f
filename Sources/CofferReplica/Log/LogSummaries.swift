import Coffer

/// The summaries of all records of a replica, in their order, without their pages.
struct LogSummaries {
    let reader: LogReader
    /// The last record of the replica.
    let end: Slot

    /// How many summaries are read at the same time.
    private static let batchCount: UInt64 = 32

    /// Calls `visit` for each record.
    ///
    /// - Throws: `.remoteDamaged` if a record is missing; errors of the remote and of `visit`.
    /// - Complexity: O(*records*): some hundred bytes of each are read.
    func readAll(
        _ visit: (Slot, RecordHeader, ReplicaRecord) async throws -> Void
    ) async throws {
        for term in stride(from: 1, through: end.term, by: 1) {
            var last: (slot: Slot, header: RecordHeader)?
            var first: UInt64 = 0
            var count = Self.batchCount
            while count == Self.batchCount {
                count = 0
                for (slot, header, record) in try await batch(of: term, from: first)
                where slot <= end {
                    count += 1
                    last = (slot, header)
                    try await visit(slot, header, record)
                }
                first += Self.batchCount
            }
            // The next owner ends a term by a takeover.
            let isWhole = term == end.term ? last?.slot == end : last?.header.kind == .takeover
            guard isWhole else {
                throw LogReader.missing(last?.slot.next ?? Slot(term: term, number: 0))
            }
        }
    }

    /// The last record at which a commit ends, without its pages; `nil` if the last term began with
    /// no page, and no commit of it has ended.
    ///
    /// - Parameter last: The last record of the replica.
    /// - Throws: `.remoteDamaged` if a record is missing; errors of the remote.
    /// - Complexity: O(*records after the commit*): some hundred bytes of each are read.
    func lastCommit(of last: LogReader.Found) async throws -> ReplicaRecord? {
        var commit = last.record.endsCommit ? last.record : nil
        var upper = end.number
        while commit == nil, upper > 0 {
            let first = upper - min(upper, Self.batchCount)
            let found = try await batch(of: end.term, from: first).filter { $0.0.number < upper }
            guard found.count == Int(upper - first) else {
                throw LogReader.missing(Slot(term: end.term, number: first + UInt64(found.count)))
            }
            commit = found.last { $0.2.endsCommit }?.2
            upper = first
        }
        // The first record of a term that sends all pages has none.
        return commit.flatMap { $0.pageCount > 0 ? $0 : nil }
    }

    /// Some summaries of a term, up to the first slot that is free.
    private func batch(
        of term: UInt64, from first: UInt64
    ) async throws -> [(Slot, RecordHeader, ReplicaRecord)] {
        let numbers = first..<first + Self.batchCount
        let found = try await withThrowingTaskGroup(
            of: (UInt64, (RecordHeader, ReplicaRecord)?).self
        ) { group in
            for number in numbers {
                group.addTask {
                    (number, try await reader.summary(at: Slot(term: term, number: number)))
                }
            }
            return try await group.reduce(into: [:]) { all, one in all[one.0] = one.1 }
        }
        var batch: [(Slot, RecordHeader, ReplicaRecord)] = []
        for number in numbers {
            guard let (header, record) = found[number] else { break }
            batch.append((Slot(term: term, number: number), header, record))
        }
        return batch
    }
}
