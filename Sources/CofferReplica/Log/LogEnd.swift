import Coffer

/// Finds the last record of a replica by reads alone. A list may be old, and an old end would be
/// the beginning of a second history.
///
/// Slot 0 of each term is never deleted, nor are the marks, nor what follows the last mark. So
/// terms are searched by doubling, then the marks of the last one, then the slots after the last
/// mark.
struct LogEnd {
    let access: RemoteAccess

    /// The end of a log.
    struct Found: Equatable, Sendable {
        /// The slot of the last record.
        let last: Slot
        /// Where a record before it is lost; `nil` if none was noticed.
        let hole: Hole?
    }

    /// A place in a log where a record is lost.
    struct Hole: Equatable, Sendable {
        /// The record before; `nil` if the first one is lost.
        let before: Slot?
    }

    /// The end; `nil` for a replica without records.
    ///
    /// A list may be old, but what it names has existed. So it shows a record that is lost, if the
    /// search took it for the end: there is a later one.
    ///
    /// - Complexity: O(log *terms* + log *records of the last term*) reads, about 30, and a list of
    ///   what follows.
    func find() async throws -> Found? {
        let last = try await last()
        guard let later = try await record(after: last) else {
            return last.map { Found(last: $0, hole: nil) }
        }
        return Found(last: try await self.last(from: later), hole: Hole(before: last))
    }

    /// The slot of the last record before a hole; `nil` for a replica without records.
    func last() async throws -> Slot? {
        guard try await exists(.first) else { return nil }
        return try await last(from: .first)
    }

    /// The last slot from one on that has a record.
    func last(from known: Slot) async throws -> Slot {
        let term =
            known.term
            + (try await Self.last { try await exists(Slot(term: known.term + $0, number: 0)) })
        let first = term == known.term ? known.number : 0
        let firstMark = first / Slot.markDistance
        let mark =
            firstMark
            + (try await Self.last {
                try await exists(Slot(term: term, number: (firstMark + $0) * Slot.markDistance))
            })
        let base = max(first, mark * Slot.markDistance)
        let rest = try await Self.last { try await exists(Slot(term: term, number: base + $0)) }
        return Slot(term: term, number: base + rest)
    }

    /// The latest record that a list names after one, or after the beginning. `nil` if there is
    /// none, and if an owner has just written the next one.
    private func record(after last: Slot?) async throws -> Slot? {
        let slots = try await listed(after: last?.name ?? "")
        guard !slots.isEmpty else { return nil }
        let nexts = last.map { [$0.next, $0.beginningOfNextTerm] } ?? [.first]
        for next in nexts where try await exists(next) { return nil }
        for slot in slots.sorted(by: >) where try await exists(slot) { return slot }
        return nil
    }

    private func listed(after name: String) async throws -> [Slot] {
        var slots: [Slot] = []
        var name = name
        while true {
            let names = try await access.names(withPrefix: Slot.folder, after: name)
            // Other programs leave files of their own in a folder, and a remote may ignore where
            // the list shall begin.
            slots += names.filter { $0 > name }.compactMap(Slot.init(name:)).filter {
                $0.term < Self.numberMax && $0.number < Self.numberMax
            }
            guard let last = names.last, last > name else { return slots }
            name = last
        }
    }

    private func exists(_ slot: Slot) async throws -> Bool { try await access.exists(slot.name) }

    /// No owner writes so many records.
    private static let numberMax: UInt64 = 1 << 40

    /// The largest number of a run from 0 on for which `holds`; it is not asked for 0.
    static func last(_ holds: (UInt64) async throws -> Bool) async throws -> UInt64 {
        var known: UInt64 = 0
        var step: UInt64 = 1
        while try await holds(known + step) {
            known += step
            step *= 2
            // Below it, the products of callers cannot overflow.
            guard known < Self.numberMax else {
                throw StoreError(
                    .remoteDamaged, "the remote says that every record exists",
                    hint: "It is no storage that keeps a replica.")
            }
        }
        // It holds for `known`, and not for `known + step`.
        while step > 1 {
            step /= 2
            if try await holds(known + step) { known += step }
        }
        return known
    }
}
