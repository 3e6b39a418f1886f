import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The content of a snapshot's record: where the pages are, and which earlier moments are kept.
///
/// Commits go on while a snapshot is made, so its parts are of several moments. The records after
/// `begin` make them one: from `end` on, parts and records give the file.
struct SnapshotIndex: Codable, Equatable, Sendable {
    /// A record: the pages of it and of all before are in the parts, unless a later one has them.
    let begin: Slot
    /// The first commit that can be restored from the snapshot.
    let end: Slot
    /// The earlier snapshots that are kept, the oldest first.
    let kept: [Kept]
    /// The snapshot from which on every commit is kept; `nil` if all are since the beginning.
    let whole: Kept?
    /// The facts of each part, one after the other: see `Part`.
    private let packed: Data

    /// A snapshot that can be restored.
    struct Kept: Codable, Equatable, Sendable {
        /// Its record.
        let record: Slot
        let begin: Slot
        let end: Slot
        /// When its record was sent, as `ReplicaRecord.moment` has it.
        let moment: Date
        /// The same by the remote's clock; `nil` if that was not known.
        let remoteTime: Date?

        /// The first record that restoring the snapshot needs; the last is its own.
        var first: Slot { min(begin.next, end) }
    }

    /// A part: as many neighbouring pages as fit into 8 MiB.
    struct Part: Equatable, Sendable {
        let name: SnapshotPartName
        /// SHA-256 of the object.
        let hash: [UInt8]
        /// Digest of its pages: as long as it is the same, the next snapshot takes the same part.
        let digest: UInt128

        fileprivate static let byteCount = 72
    }

    init(begin: Slot, end: Slot, kept: [Kept], whole: Kept?, parts: [Part]) {
        (self.begin, self.end, self.kept, self.whole) = (begin, end, kept, whole)
        packed = parts.reduce(into: Data()) { data, part in
            data += part.name.begin.term.bigEndianBytes + part.name.begin.number.bigEndianBytes
            data += part.name.attempt.bigEndianBytes + part.hash + part.digest.bigEndianBytes
        }
    }

    var partCount: Int { packed.count / Part.byteCount }

    /// A part, counted from 0; `nil` after the last one.
    func part(_ index: Int) -> Part? {
        guard index < partCount else { return nil }
        let bytes = Array(packed.dropFirst(index * Part.byteCount).prefix(Part.byteCount))
        let begin = Slot(
            term: UInt64(bigEndianAt: 0, of: bytes), number: UInt64(bigEndianAt: 8, of: bytes))
        return Part(
            name: SnapshotPartName(
                begin: begin, attempt: UInt64(bigEndianAt: 16, of: bytes), index: index),
            hash: Array(bytes[24..<56]), digest: UInt128(bigEndianAt: 56, of: bytes))
    }

    var parts: [Part] { (0..<partCount).compactMap(part) }

    // MARK: Retention

    /// The first record from which on all are kept.
    var wholeFrom: Slot { whole?.first ?? .first }

    /// Whether a record is kept. Marks, takeovers and the first record of a term always are.
    func keeps(_ slot: Slot) -> Bool {
        slot >= wholeFrom || kept.contains { slot >= $0.first && slot <= $0.record }
    }

    /// Whether a commit can be restored.
    func restores(_ slot: Slot) -> Bool {
        guard let whole else { return true }
        return slot >= whole.end || kept.contains { $0.end == slot }
    }
}

/// The name of a part of a snapshot.
struct SnapshotPartName: Hashable, Sendable {
    /// The begin of the snapshot for which it was made.
    let begin: Slot
    /// A random number: a snapshot may be begun twice at the same record.
    let attempt: UInt64
    let index: Int

    static let folder = "snap/"

    var name: String {
        let parts = [begin.term, begin.number, attempt].map(\.bigEndianBytes.hexDigits)
        return Self.folder + parts.joined(separator: "/") + "/"
            + UInt32(truncatingIfNeeded: index).bigEndianBytes.hexDigits
    }
}

extension SnapshotPartName {
    /// Reads the name of an object; `nil` for that of no part.
    init?(name: String) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        let numbers = parts.compactMap { UInt64($0, radix: 16) }
        guard numbers.count == 4, let index = Int(exactly: numbers[3]) else { return nil }
        self.init(
            begin: Slot(term: numbers[0], number: numbers[1]), attempt: numbers[2], index: index)
        guard self.name == name else { return nil }
    }
}
