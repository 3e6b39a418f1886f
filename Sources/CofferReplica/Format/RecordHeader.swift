import Coffer

/// The clear bytes at the beginning of each record, which need no key to be read.
///
/// | Offset | Bytes | |
/// |--:|--:|---|
/// | 0 | 8 | `CofferRp` |
/// | 8 | 1 | version: 1 |
/// | 9 | 1 | kind |
/// | 10 | 6 | zeros |
/// | 16 | 16 | the replica's random number |
/// | 32 | 8 | term |
/// | 40 | 8 | slot |
/// | 48 | 8 | key id |
/// | 56 | 32 | seed of the object's key |
/// | 88 | 32 | SHA-256 of the whole record before; zeros for the first |
///
/// Numbers have their most significant byte first. The chain of hashes can be followed without a
/// key.
struct RecordHeader: Equatable {
    static let byteCount = 120
    private static let magic = Array("CofferRp".utf8)
    private static let version: UInt8 = 1

    let kind: RecordKind
    let replica: [UInt8]
    let slot: Slot
    let keyID: [UInt8]
    let seed: [UInt8]
    let previous: [UInt8]

    /// The hash that the first record of a replica has for the one before.
    static let nothingBefore = [UInt8](repeating: 0, count: 32)

    var bytes: [UInt8] {
        Self.magic + [Self.version, kind.rawValue] + [UInt8](repeating: 0, count: 6) + replica
            + slot.term.bigEndianBytes + slot.number.bigEndianBytes + keyID + seed + previous
    }

    init(
        _ kind: RecordKind, in replica: [UInt8], at slot: Slot, keyID: [UInt8], seed: [UInt8],
        after previous: [UInt8]
    ) {
        (self.kind, self.replica, self.slot) = (kind, replica, slot)
        (self.keyID, self.seed, self.previous) = (keyID, seed, previous)
    }

    /// Reads the header of an object.
    ///
    /// - Throws: `.remoteDamaged` for bytes that are no header, or that of another slot;
    ///   `.unsupported` for a version or a kind that this version of Coffer does not know.
    init(_ object: [UInt8], at slot: Slot) throws(StoreError) {
        guard object.count >= Self.byteCount, object.starts(with: Self.magic) else {
            throw StoreError(.remoteDamaged, "\(slot.name) is not a record of a replica")
        }
        guard object[8] == Self.version, let kind = RecordKind(rawValue: object[9]),
            object[10..<16].allSatisfy({ $0 == 0 })
        else {
            throw StoreError(
                .unsupported, "\(slot.name) was written by a newer version of Coffer",
                hint: "Update the program.")
        }
        self.kind = kind
        replica = Array(object[16..<32])
        self.slot = Slot(
            term: UInt64(bigEndianAt: 32, of: object), number: UInt64(bigEndianAt: 40, of: object))
        keyID = Array(object[48..<56])
        seed = Array(object[56..<88])
        previous = Array(object[88..<120])
        guard self.slot == slot else {
            throw StoreError(.remoteDamaged, "\(slot.name) has the record of \(self.slot)")
        }
    }
}

/// The purpose of a record.
enum RecordKind: UInt8, Sendable {
    /// The first record of a term: its owner.
    case begin = 1
    /// The last record of a term: the next owner.
    case takeover = 2
    /// Pages of commits.
    case segment = 3
    /// No pages: a record that is never deleted.
    case mark = 4
    /// Names and hashes the parts of a snapshot, and says which earlier moments are kept.
    case snapshot = 5
    // 6 is kept free for a record that names objects to be deleted.
    /// The owner has stopped: everybody may take over.
    case closed = 7
    /// Pages of a snapshot: not in the log, but an object of its own.
    case part = 8
}
