import Coffer

/// The summaries of all records of a replica, in their order, without their pages.
struct LogSummaries {
    let reader: LogReader
    /// The last record of the replica.
    let end: Slot

    /// How many summaries are read at the same time.
    private static let batchCount: UInt64 = 32

    /// Calls `visit` for each record that is kept.
    ///
    /// - Parameter index: Of the last snapshot; `nil` if there is none.
    /// - Throws: `.remoteDamaged` if a record is missing; errors of the remote.
    /// - Complexity: O(*records*): some hundred bytes of each are read.
    // With optimisation, Swift 6.3.1 makes code of it that crashes.
    @_optimize(none)
    func readAll(
        _ index: SnapshotIndex?,
        _ visit: (Slot, RecordHeader, ReplicaRecord) -> Void
    ) async throws {
        let first = index?.wholeFrom ?? .first
        for kept in index?.kept ?? [] where kept.record < first {
            let last = try await readTerm(from: kept.first, to: kept.record, visit)
            guard last?.slot == kept.record else { throw missing(after: last?.slot, kept.first) }
        }
        for term in stride(from: first.term, through: end.term, by: 1) {
            let begin = term == first.term ? first : Slot(term: term, number: 0)
            let last = try await readTerm(from: begin, to: end, visit)
            // The next owner ends a term by a takeover.
            let isWhole = term == end.term ? last?.slot == end : last?.header.kind == .takeover
            guard isWhole else { throw missing(after: last?.slot, begin) }
        }
    }

    private func missing(after last: Slot?, _ begin: Slot) -> StoreError {
        LogReader.missing(last?.next ?? begin)
    }

    /// - Returns: The last record of the term up to a slot, or up to the first slot that is free.
    // With optimisation, Swift 6.3.1 makes code of it that crashes.
    @_optimize(none)
    private func readTerm(
        from begin: Slot, to end: Slot,
        _ visit: (Slot, RecordHeader, ReplicaRecord) -> Void
    ) async throws -> (slot: Slot, header: RecordHeader)? {
        var last: (slot: Slot, header: RecordHeader)?
        var first = begin.number
        while true {
            let found = try await batch(of: begin.term, from: first)
            for (slot, header, record) in found where slot <= end {
                last = (slot, header)
                visit(slot, header, record)
            }
            guard found.count == Int(Self.batchCount), last?.slot ?? begin < end else {
                return last
            }
            first += Self.batchCount
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

    /// The last record of the last term that has pages; `nil` if that has none.
    ///
    /// - Throws: `.remoteDamaged` if a record is missing; errors of the remote.
    func lastSegment() async throws -> Slot? {
        for number in stride(from: end.number, to: 0, by: -1) {
            let slot = Slot(term: end.term, number: number)
            guard let header = try await reader.header(at: slot) else {
                throw LogReader.missing(slot)
            }
            if header.kind == .segment { return slot }
        }
        return nil
    }

    /// The position of the last commit of the last term before its last record; `nil` if no commit
    /// of that term has ended.
    ///
    /// - Throws: `.remoteDamaged` if a record is missing; errors of the remote.
    func lastPosition(before last: LogReader.Found) async throws -> ReplicaPosition? {
        // The hash of a record is in the one after it.
        var (next, number) = (last.header, last.slot.number)
        while number > 0 {
            number -= 1
            let slot = Slot(term: last.slot.term, number: number)
            guard let (header, record) = try await reader.summary(at: slot) else {
                throw LogReader.missing(slot)
            }
            if Self.endsCommit(header, record) { return ReplicaPosition(slot, next.previous) }
            next = header
        }
        return nil
    }

    /// Whether a record ends a commit. A term that goes on begins with the file as it was.
    static func endsCommit(_ header: RecordHeader, _ record: ReplicaRecord) -> Bool {
        header.kind == .segment
            ? record.endsCommit : header.kind == .begin && record.pageCount > 0
    }

    /// Some summaries of a term, up to the first slot that is free.
    // With optimisation, Swift 6.3.1 makes code of it that crashes.
    @_optimize(none)
    private func batch(
        of term: UInt64, from first: UInt64
    ) async throws -> [(Slot, RecordHeader, ReplicaRecord)] {
        let numbers = first..<first + Self.batchCount
        let found = try await withThrowingTaskGroup(
            of: ReadAhead<(RecordHeader, ReplicaRecord)?>.self
        ) { group in
            for number in numbers {
                group.addTask {
                    ReadAhead(
                        number, try await reader.summary(at: Slot(term: term, number: number)))
                }
            }
            return try await group.reduce(into: [UInt64: (RecordHeader, ReplicaRecord)]()) {
                $0[$1.number] = $1.value
            }
        }
        var batch: [(Slot, RecordHeader, ReplicaRecord)] = []
        for number in numbers {
            guard let (header, record) = found[number] else { break }
            batch.append((Slot(term: term, number: number), header, record))
        }
        return batch
    }
}
