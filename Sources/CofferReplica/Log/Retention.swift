import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Deletes what no moment that is kept needs.
///
/// A snapshot says what is kept. What it leaves out is deleted a day later, by the remote's clock:
/// until then a restore that has begun finds it. Nothing is ever kept again that one snapshot has
/// left out, so an owner that slept and wakes up deletes nothing that a later one needs.
struct Retention {
    let reader: LogReader
    /// The record of the last snapshot; `nil` if there is none.
    let end: Slot?

    private static let delay: TimeInterval = 24 * 3600

    /// - Returns: How many objects were deleted.
    /// - Throws: Errors of the remote.
    func run() async throws -> Int {
        guard let end, let last = try await LogEnd(access: reader.access).last(),
            let now = reader.access.estimatedTime
        else { return 0 }
        let newest = try await reader.index(at: end)
        guard let old = try await old(newest, end, now) else { return 0 }
        let needed = try await neededParts(newest, end, old)
        return try await deleteRecords(last, newest, old.index)
            + deleteParts(before: old.index.begin, but: needed)
    }

    /// The newest snapshot that is a day old.
    private func old(
        _ newest: SnapshotIndex, _ end: Slot, _ now: Date
    ) async throws -> (record: Slot, index: SnapshotIndex)? {
        func isOld(_ time: Date?) -> Bool {
            time.map { now.timeIntervalSince($0) >= Self.delay } ?? false
        }
        if isOld(try await reader.existing(end).record.remoteTime) { return (end, newest) }
        guard let kept = newest.kept.last(where: { isOld($0.remoteTime) }) else { return nil }
        return (kept.record, try await reader.index(at: kept.record))
    }

    // MARK: Records

    private func deleteRecords(
        _ last: Slot, _ newest: SnapshotIndex, _ old: SnapshotIndex
    ) async throws -> Int {
        // The end is found by reads of the last mark and of what follows it.
        let mark = Slot(
            term: last.term, number: last.number / Slot.markDistance * Slot.markDistance)
        var count = 0
        var name = Slot.folder
        while true {
            let names = try await reader.access.names(withPrefix: Slot.folder, after: name)
            for slot in names.compactMap({ Slot(name: $0) }) {
                guard slot < mark, slot < old.wholeFrom else { return count }
                guard !old.keeps(slot), !newest.keeps(slot), !slot.isForMark,
                    try await isForDeletion(slot)
                else { continue }
                try await reader.access.delete(slot.name)
                count += 1
            }
            guard let next = names.last else { return count }
            name = next
        }
    }

    /// Whether the record is none that has to stay: a takeover keeps an owner that sleeps from
    /// writing.
    private func isForDeletion(_ slot: Slot) async throws -> Bool {
        guard let header = try await reader.header(at: slot) else { return false }
        return [.segment, .snapshot, .closed].contains(header.kind)
    }

    // MARK: Parts

    private func neededParts(
        _ newest: SnapshotIndex, _ end: Slot, _ old: (record: Slot, index: SnapshotIndex)
    ) async throws -> Set<SnapshotPartName> {
        var needed: Set<SnapshotPartName> = []
        let kept = Set([end, old.record] + newest.kept.map(\.record))
        for record in kept {
            needed.formUnion(try await reader.index(at: record).parts.map(\.name))
        }
        // The newest snapshot may have had these deleted already.
        for record in Set(old.index.kept.map(\.record)).subtracting(kept) {
            guard let found = try await reader.record(at: record) else { continue }
            needed.formUnion(found.record.note.index?.parts.map(\.name) ?? [])
        }
        return needed
    }

    /// Deletes parts of snapshots that began before a record.
    ///
    /// - Returns: How many were deleted.
    func deleteParts(before begin: Slot, but needed: Set<SnapshotPartName>) async throws -> Int {
        var count = 0
        var name = SnapshotPartName.folder
        while true {
            let names = try await reader.access.names(
                withPrefix: SnapshotPartName.folder, after: name)
            for part in names.compactMap({ SnapshotPartName(name: $0) })
            where part.begin < begin && !needed.contains(part) {
                try await reader.access.delete(part.name)
                count += 1
            }
            guard let next = names.last else { return count }
            name = next
        }
    }
}
