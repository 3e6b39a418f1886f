/// One entry of a keyring: the root key, wrapped for one credential.
///
/// 1024 bytes in the file. Nothing in it is secret.
struct KeyringSlot: Hashable, Sendable {
    enum Kind: UInt8, Sendable {
        case passphrase = 1
        case keyFile = 2
        case recoveryKey = 3
        case external = 4
        case recipient = 5
    }

    static let byteCount = 1024
    static let saltByteCount = 32
    static let maximumExtensionByteCount = 702

    let kind: Kind
    /// Never reused in a keyring.
    let id: UInt16
    /// Only of a passphrase.
    let cost: KeyCost?
    /// 32 bytes of a passphrase, otherwise zeros.
    let derivationSalt: [UInt8]
    /// 32 bytes, fresh in every write of the slot; zeros for a recipient.
    let slotSalt: [UInt8]
    /// 32 bytes that show the right credential; zeros for a recipient.
    var commitment: [UInt8]
    /// The wrapped root: 80 bytes for a recipient, otherwise 60.
    var wrapped: [UInt8]
    /// Seconds since 1970.
    let made: Int64
    let changed: Int64
    var label: SlotLabel
    /// The blob of an external slot, or the public key of a recipient.
    let blob: [UInt8]

    /// How many bytes the wrapped root of a kind has.
    static func wrappedByteCount(_ kind: Kind) -> Int { kind == .recipient ? 80 : 60 }

    /// The slot's bytes in the file.
    func rendered() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        bytes[Offset.kind] = kind.rawValue
        bytes.replace(from: Offset.id, with: id.bigEndianBytes)
        if let cost {
            bytes.replace(
                from: Offset.derivation, with: [1, cost.log2N, KeyCost.blockSize, cost.parallelism])
        }
        bytes.replace(from: Offset.derivationSalt, with: derivationSalt)
        bytes.replace(from: Offset.slotSalt, with: slotSalt)
        bytes.replace(from: Offset.commitment, with: commitment)
        bytes.replace(from: Offset.wrapped, with: wrapped)
        bytes.replace(from: Offset.made, with: made.bigEndianBytes)
        bytes.replace(from: Offset.changed, with: changed.bigEndianBytes)
        let text = Array(label.text.utf8)
        bytes.replace(from: Offset.label, with: UInt16(text.count).bigEndianBytes + text)
        bytes.replace(from: Offset.blob, with: UInt16(blob.count).bigEndianBytes + blob)
        return bytes
    }

    /// The fields in front of the commitment, which decide how the root is unwrapped.
    func boundBytes() -> [UInt8] { Array(rendered()[..<Offset.commitment]) }

    init(
        kind: Kind, id: UInt16, cost: KeyCost?, derivationSalt: [UInt8], slotSalt: [UInt8],
        made: Int64, changed: Int64, label: SlotLabel, blob: [UInt8] = []
    ) {
        self.kind = kind
        self.id = id
        self.cost = cost
        self.derivationSalt = derivationSalt
        self.slotSalt = slotSalt
        self.made = made
        self.changed = changed
        self.label = label
        self.blob = blob
        commitment = [UInt8](repeating: 0, count: Self.saltByteCount)
        wrapped = [UInt8](repeating: 0, count: Self.wrappedByteCount(kind))
    }

    /// Reads a slot. `nil` for bytes that no writer of this version makes.
    ///
    /// - Parameter bytes: 1024 bytes whose first is a kind of this version.
    init?(stored bytes: [UInt8]) {
        func field(_ offset: Int, _ count: Int) -> [UInt8] { Array(bytes[offset..<offset + count]) }
        func isZero(_ range: Range<Int>) -> Bool { bytes[range].allSatisfy { $0 == 0 } }

        guard let kind = Kind(rawValue: bytes[Offset.kind]), bytes[Offset.kind + 1] == 0 else {
            return nil
        }
        let derivation = field(Offset.derivation, 4)
        switch (kind, derivation[0], derivation[2]) {
        case (.passphrase, 1, KeyCost.blockSize):
            cost = KeyCost(log2N: derivation[1], parallelism: derivation[3])
        case (.passphrase, _, _): return nil
        default:
            guard isZero(Offset.derivation..<Offset.slotSalt) else { return nil }
            cost = nil
        }
        if kind == .recipient {
            guard isZero(Offset.slotSalt..<Offset.wrapped) else { return nil }
        }
        let wrappedByteCount = Self.wrappedByteCount(kind)
        let textByteCount = Int(UInt16(bigEndianAt: Offset.label, of: bytes))
        let blobByteCount = Int(UInt16(bigEndianAt: Offset.blob, of: bytes))
        let blobCounts =
            switch kind {
            case .external: 0...Self.maximumExtensionByteCount
            case .recipient: 32...32
            default: 0...0
            }
        guard isZero(Offset.wrapped + wrappedByteCount..<Offset.made),
            textByteCount <= SlotLabel.maximumByteCount, blobCounts.contains(blobByteCount),
            isZero(Offset.label + 2 + textByteCount..<Offset.blob),
            isZero(Offset.blob + 2 + blobByteCount..<Self.byteCount),
            let label = SlotLabel(stored: bytes[(Offset.label + 2)...].prefix(textByteCount))
        else { return nil }
        self.kind = kind
        self.label = label
        id = UInt16(bigEndianAt: Offset.id, of: bytes)
        derivationSalt = field(Offset.derivationSalt, Self.saltByteCount)
        slotSalt = field(Offset.slotSalt, Self.saltByteCount)
        commitment = field(Offset.commitment, Self.saltByteCount)
        wrapped = field(Offset.wrapped, wrappedByteCount)
        made = Int64(bigEndianAt: Offset.made, of: bytes)
        changed = Int64(bigEndianAt: Offset.changed, of: bytes)
        blob = field(Offset.blob + 2, blobByteCount)
    }

    private enum Offset {
        static let kind = 0
        static let id = 2
        static let derivation = 4
        static let derivationSalt = 8
        static let slotSalt = 40
        static let commitment = 72
        static let wrapped = 104
        static let made = 184
        static let changed = 192
        static let label = 200
        static let blob = 320
    }
}
