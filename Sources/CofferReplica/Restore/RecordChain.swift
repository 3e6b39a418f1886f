import Coffer

/// Follows the records of a replica, each after the one that it names.
struct RecordChain {
    let reader: LogReader
    /// The last record of the replica: all up to it must exist.
    let end: Slot

    /// How many records are read at the same time.
    private static let readAheadCount = 8

    /// Calls `visit` for each record from a slot on.
    ///
    /// - Parameter visit: Returns whether to go on.
    /// - Throws: `.remoteDamaged` if a record is missing, or is not the one that the next record
    ///   follows; what `visit` throws.
    func follow(from first: Slot, _ visit: (LogReader.Found) async throws -> Bool) async throws {
        var slot = first
        var hash: [UInt8]?
        while slot <= end {
            var hasTakeover = false
            for found in try await records(from: slot) {
                guard hash == nil || found.header.previous == hash else {
                    throw StoreError(
                        .remoteDamaged, "\(found.slot.name) does not follow the record before",
                        hint: "Somebody has exchanged records, or put older ones back.")
                }
                hash = found.sealed.hash
                slot = found.slot.next
                guard try await visit(found) else { return }
                if found.header.kind == .takeover {
                    hasTakeover = true
                    break
                }
            }
            if hasTakeover { slot = Slot(term: slot.term + 1, number: 0) }
        }
    }

    /// Some records from a slot on, as many as exist of its term.
    private func records(from first: Slot) async throws -> [LogReader.Found] {
        let lastNumber = first.term == end.term ? end.number : .max
        let count = UInt64(Self.readAheadCount)
        let numbers = first.number...min(first.number + count - 1, lastNumber)
        let found = try await withThrowingTaskGroup(of: ReadAhead<LogReader.Found?>.self) { group in
            for number in numbers {
                group.addTask {
                    let slot = Slot(term: first.term, number: number)
                    return ReadAhead(number, try await reader.record(at: slot))
                }
            }
            return try await group.reduce(into: [UInt64: LogReader.Found]()) {
                $0[$1.number] = $1.value
            }
        }
        var records: [LogReader.Found] = []
        for number in numbers {
            guard let record = found[number] else { break }
            records.append(record)
            if record.header.kind == .takeover { break }
        }
        guard !records.isEmpty else {
            throw LogReader.missing(first)
        }
        return records
    }
}
