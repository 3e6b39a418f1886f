import Coffer

/// Finds the last record of a replica by reads alone. A list may be old, and an old end would be
/// the beginning of a second history.
///
/// Slot 0 of each term is never deleted, nor are the marks, nor what follows the last mark. So
/// terms are searched by doubling, then the marks of the last one, then the slots after the last
/// mark.
struct LogEnd {
    let access: RemoteAccess

    /// The slot of the last record; `nil` for a replica without any.
    ///
    /// - Complexity: O(log *terms* + log *records of the last term*) reads: about 30.
    func last() async throws -> Slot? {
        guard try await exists(.first) else { return nil }
        let term =
            1
            + (try await Self.last { try await exists(Slot(term: 1 + $0, number: 0)) })
        let mark = try await Self.last {
            try await exists(Slot(term: term, number: $0 * Slot.markDistance))
        }
        let base = mark * Slot.markDistance
        let rest = try await Self.last { try await exists(Slot(term: term, number: base + $0)) }
        return Slot(term: term, number: base + rest)
    }

    /// Refuses a log whose end was found before a hole.
    ///
    /// A list may be old, but what it names has existed. So a later record without the next one is
    /// after a hole.
    ///
    /// - Throws: `.remoteDamaged`; errors of the remote.
    func requireNothing(after last: Slot) async throws {
        let names = try await access.names(withPrefix: Slot.folder, after: last.name)
        guard !names.isEmpty, try await !exists(last.next),
            try await !exists(last.beginningOfNextTerm)
        else { return }
        // Other programs leave files of their own in a folder.
        let records = names.filter { Slot(name: $0) != nil }
        for name in records where try await access.exists(name) {
            throw StoreError(
                .remoteDamaged, "there is a record \(name), and none at \(last.next.name)",
                hint: "Somebody has deleted records, or the service has lost them. To restore what "
                    + "is before, name the position \(last).")
        }
    }

    private func exists(_ slot: Slot) async throws -> Bool { try await access.exists(slot.name) }

    /// The largest number of a run from 0 on for which `holds`; it is not asked for 0.
    static func last(_ holds: (UInt64) async throws -> Bool) async throws -> UInt64 {
        var known: UInt64 = 0
        var step: UInt64 = 1
        while try await holds(known + step) {
            known += step
            step *= 2
            // No owner writes so many records. The products of callers cannot overflow.
            guard known < 1 << 40 else {
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
